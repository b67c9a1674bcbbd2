// The wait the other side asks for, in every form it is said, and garbage.

import { describe, expect, test } from "vitest";
import { classify } from "../../src/core/classify.ts";
import { RetryAfterError } from "../../src/core/errors.ts";

const NOW = Date.parse("2025-01-15T12:00:00Z");
const judge = (thrown: unknown) => classify(thrown, {}, [], NOW);
const error = (fields: object, message = "failed") => Object.assign(new Error(message), fields);
const caused = (cause: unknown) => new TypeError("fetch failed", { cause });
const axiosHeaders = (fields: Record<string, string>) => ({ get: (name: string) => fields[name.toLowerCase()] });

describe("the delay asked for", () => {
  const after = (headers: unknown, status = 429) => judge(error({ response: { status, headers } })).retryAfterMs;

  test.each<[string, unknown, number | undefined]>([
    ["seconds", { "retry-after": "120" }, 120_000],
    ["seconds in any case", { "RETRY-After": "1" }, 1000],
    ["a number", { "retry-after": 5 }, 5000],
    ["a list", { "retry-after": ["7", "9"] }, 7000],
    ["a fraction of a second", { "retry-after": "0.5" }, 500],
    ["zero", { "retry-after": "0" }, 0],
    ["Headers", new Headers({ "Retry-After": "2" }), 2000],
    ["a Map", new Map([["retry-after", "3"]]), 3000],
    ["AxiosHeaders", axiosHeaders({ "retry-after": "4" }), 4000],
    ["milliseconds first", { "retry-after-ms": "250", "retry-after": "1" }, 250],
    ["an HTTP date", { "retry-after": "Wed, 15 Jan 2025 12:00:30 GMT" }, 30_000],
    ["an RFC 850 date", { "retry-after": "Wednesday, 15-Jan-25 12:01:00 GMT" }, 60_000],
    ["an asctime date", { "retry-after": "Wed Jan 15 12:02:00 2025" }, 120_000],
    ["an ISO date", { "retry-after": "2025-01-15T12:00:05Z" }, 5000],
    ["a past date", { "retry-after": "Wed, 15 Jan 2020 12:00:30 GMT" }, 0],
    ["epoch seconds", { "retry-after": `${NOW / 1000 + 10}` }, 10_000],
    ["a reset in epoch seconds", { "x-ratelimit-remaining": "0", "x-ratelimit-reset": `${NOW / 1000 + 60}` }, 60_000],
    ["a reset in epoch milliseconds", { "x-ratelimit-remaining": "0", "x-ratelimit-reset": `${NOW + 500}` }, 500],
    ["a reset in seconds", { "ratelimit-remaining": "0", "ratelimit-reset": "9" }, 9000],
    ["a reset with calls left", { "x-ratelimit-remaining": "5", "x-ratelimit-reset": "9" }, undefined],
    ["more seconds than make sense", { "retry-after": "99999999999" }, undefined],
    ["nothing", {}, undefined],
  ])("reads %s", (_name, headers, ms) => {
    expect(after(headers)).toBe(ms);
  });

  test.each(["", "soon", "-5", "1e9", "NaN", "12 monkeys", "Monday", "0x10", "January", "é".repeat(1e5)])(
    "ignores %j",
    (value) => {
      expect(after({ "retry-after": value, "retry-after-ms": value })).toBeUndefined();
    },
  );

  test("counts for 503, for causes, and for a RetryAfterError of any copy", () => {
    expect(after({ "retry-after": "5" }, 503)).toBe(5000);
    expect(judge(caused(new RetryAfterError("slow", "1m"))).retryAfterMs).toBe(60_000);
    expect(judge(error({ name: "RetryAfterError", retryAfter: 1500 })).retryAfterMs).toBe(1500);
    expect(judge(new RetryAfterError("slow", "nonsense"))).toEqual({ class: "rate_limited", severity: "warning" });
  });

  test("does not count where there is no retry", () => {
    expect(after({ "retry-after": "5" }, 404)).toBeUndefined();
  });
});
