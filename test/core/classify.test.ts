// What the ecosystem throws and what each error is taken for; hostile values; the user's rules.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type ClassifyRule, DEFAULT_SEVERITY, isRetryable, resolveRules } from "../../src/core/classify-rules.ts";
import { classify } from "../../src/core/classify.ts";
import { PermanentError, RedriveError, RetryAfterError } from "../../src/core/errors.ts";
import { FAILURE_CLASSES, type FailureClass } from "../../src/core/job.ts";
import { cpuMs } from "../support/cpu-time.ts";

const NOW = Date.parse("2025-01-15T12:00:00Z");
const judge = (thrown: unknown, rules: readonly ClassifyRule[] = [], context = {}) =>
  classify(thrown, context, rules, NOW);
const error = (fields: object, message = "failed") => Object.assign(new Error(message), fields);
const caused = (cause: unknown) => new TypeError("fetch failed", { cause });
const google = (status: number, reason: string) => ({
  status,
  data: { error: { errors: [{ reason }], status: "PERMISSION_DENIED" } },
});

describe("classes", () => {
  test.each<[string, unknown, FailureClass, string | undefined]>([
    ["a plain error", new Error("boom"), "transient", undefined],
    ["a thrown string", "boom", "transient", undefined],
    ["undefined", undefined, "transient", undefined],
    ["a SyntaxError of JSON.parse", new SyntaxError("Unexpected end of JSON input"), "transient", undefined],
    ["PermanentError", new PermanentError("no"), "permanent", undefined],
    ["PermanentError of another copy", error({ name: "PermanentError" }), "permanent", undefined],
    [
      "a subclass of PermanentError",
      new (class Gone extends PermanentError {
        override name = "Gone";
      })("no"),
      "permanent",
      undefined,
    ],
    ["PermanentError as a cause", caused(new PermanentError("no")), "permanent", undefined],
    ["RetryAfterError", new RetryAfterError("slow down", "30s"), "rate_limited", undefined],
    ["RedriveError invalid_payload", new RedriveError("invalid_payload", "x"), "validation", "invalid_payload"],
    ["RedriveError store_unavailable", new RedriveError("store_unavailable", "x"), "transient", "store_unavailable"],
    ["AbortError", new DOMException("aborted", "AbortError"), "transient", undefined],
    ["TimeoutError", new DOMException("timed out", "TimeoutError"), "timeout", undefined],
    ["ZodError", error({ name: "ZodError", issues: [] }), "validation", undefined],
    ["ValidationError", error({ name: "ValidationError" }), "validation", undefined],
    ["BullMQ UnrecoverableError", error({ name: "UnrecoverableError" }), "permanent", undefined],
    ["fetch Response 503", new Response("", { status: 503 }), "transient", "503"],
    ["fetch Response in .response", error({ response: new Response("", { status: 404 }) }), "permanent", "404"],
    ["axios 422", error({ code: "ERR_BAD_REQUEST", response: { status: 422, headers: {} } }), "validation", "422"],
    ["axios timeout", error({ code: "ECONNABORTED" }, "timeout of 1000ms exceeded"), "timeout", "ECONNABORTED"],
    ["axios network error", error({ code: "ERR_NETWORK" }), "network", "ERR_NETWORK"],
    ["got 500", error({ name: "HTTPError", response: { statusCode: 500 } }), "transient", "500"],
    ["got timeout", error({ name: "TimeoutError", code: "ETIMEDOUT" }), "timeout", "ETIMEDOUT"],
    ["undici status", error({ code: "UND_ERR_RESPONSE_STATUS_CODE", statusCode: 401 }), "authentication", "401"],
    [
      "undici connect timeout",
      caused(error({ code: "UND_ERR_CONNECT_TIMEOUT" })),
      "timeout",
      "UND_ERR_CONNECT_TIMEOUT",
    ],
    ["undici socket", caused(error({ code: "UND_ERR_SOCKET" })), "network", "UND_ERR_SOCKET"],
    ["gaxios numeric code", error({ code: 404 }), "permanent", "404"],
    ["gaxios code as text", error({ code: "429" }), "rate_limited", "429"],
    ["Google quota", error({ code: 403, errors: [{ reason: "userRateLimitExceeded" }] }), "rate_limited", "403"],
    ["Google quota in the body", error({ response: google(403, "quotaExceeded") }), "rate_limited", "403"],
    ["Google forbidden", error({ response: google(403, "forbidden") }), "authentication", "403"],
    [
      "GitHub limit",
      error({ status: 403, response: { headers: { "x-ratelimit-remaining": "0" } } }),
      "rate_limited",
      "403",
    ],
    [
      "GitHub secondary limit",
      error({ status: 403 }, "You have exceeded a secondary rate limit"),
      "rate_limited",
      "403",
    ],
    ["403 with Retry-After", error({ status: 403, headers: { "Retry-After": "60" } }), "rate_limited", "403"],
    [
      "AWS throttling by name",
      error({ name: "ThrottlingException", $metadata: { httpStatusCode: 400 } }),
      "rate_limited",
      "400",
    ],
    ["AWS throttling by trait", error({ name: "X", $retryable: { throttling: true } }), "rate_limited", undefined],
    ["AWS retryable", error({ name: "X", $retryable: {} }), "transient", undefined],
    [
      "AWS expired token",
      error({ name: "ExpiredTokenException", $metadata: { httpStatusCode: 400 } }),
      "authentication",
      "400",
    ],
    ["AWS 404", error({ name: "NoSuchKey", $metadata: { httpStatusCode: 404 } }), "permanent", "404"],
    ["exit code", error({ code: 1 }), "transient", "1"],
    ["a killed child", error({ signal: "SIGKILL", code: null }), "transient", "SIGKILL"],
    ["status 200 in an error", error({ status: 200 }), "transient", undefined],
    ["Mongo duplicate key", error({ code: 11000 }), "transient", "11000"],
    ["ECONNRESET", error({ code: "ECONNRESET" }), "network", "ECONNRESET"],
    ["ENOSPC", error({ code: "ENOSPC" }), "system", "ENOSPC"],
    ["ENOENT", error({ code: "ENOENT" }), "permanent", "ENOENT"],
    ["fetch failed by its cause", caused(error({ code: "ENOTFOUND" })), "network", "ENOTFOUND"],
    ["fetch failed without cause", caused(undefined), "transient", undefined],
    [
      "happy eyeballs",
      caused(Object.assign(new AggregateError([]), { code: "ECONNREFUSED" })),
      "network",
      "ECONNREFUSED",
    ],
  ])("%s", (_name, thrown, expected, code) => {
    const { class: found, severity, code: actual } = judge(thrown);
    expect({ found, code: actual }).toEqual({ found: expected, code });
    expect(severity).toBe(DEFAULT_SEVERITY[expected]);
  });

  test.each<[FailureClass, number[]]>([
    ["validation", [400, 422]],
    ["authentication", [401, 403, 407]],
    ["timeout", [408]],
    ["rate_limited", [429]],
    ["transient", [425, 500, 501, 502, 503, 504, 507, 529, 599]],
    ["permanent", [402, 404, 405, 406, 409, 410, 411, 412, 413, 414, 415, 416, 418, 423, 428, 431, 451]],
  ])("HTTP %s: %j", (expected, statuses) => {
    for (const status of statuses) expect(judge(error({ response: { status } })).class).toBe(expected);
  });

  test.each<[FailureClass, number[]]>([
    ["network", [14]],
    ["timeout", [4]],
    ["rate_limited", [8]],
    ["authentication", [7, 16]],
    ["validation", [3, 11]],
    ["permanent", [5, 6, 9, 12, 15]],
    ["transient", [1, 2, 10, 13]],
  ])("gRPC %s: %j", (expected, codes) => {
    for (const code of codes) expect(judge(error({ code, details: "", metadata: {} })).class).toBe(expected);
    for (const code of codes) expect(judge(error({ code })).class).toBe("transient");
  });

  test("an aggregate is retried if any member is, and a rate limit rules", () => {
    const gone = error({ status: 404 });
    const reset = error({ code: "ECONNRESET" });
    const limit = (seconds: number) => error({ status: 429, headers: { "retry-after": `${seconds}` } });
    expect(judge(new AggregateError([gone, reset])).class).toBe("network");
    expect(judge(new AggregateError([gone, new Error("?")])).class).toBe("transient");
    expect(judge(new AggregateError([gone, gone])).class).toBe("permanent");
    expect(judge(new AggregateError([reset, limit(3), limit(9)]))).toMatchObject({
      class: "rate_limited",
      retryAfterMs: 9000,
    });
    expect(judge(new AggregateError([new AggregateError([gone])])).class).toBe("permanent");
    expect(judge(new AggregateError([])).class).toBe("transient");
  });

  test("retryable are all but permanent, validation and authentication", () => {
    expect(FAILURE_CLASSES.filter((found) => !isRetryable(found))).toEqual([
      "permanent",
      "validation",
      "authentication",
    ]);
  });
});

describe("rules", () => {
  const context = { type: "thumbnail", service: "media-store", tenant: "acme" };
  const thrown = caused(error({ name: "HttpError", code: "E_BUSY", status: 409 }, "document is locked by bob"));

  test.each<[string, ClassifyRule]>([
    ["name", { class: "system", name: "HttpError" }],
    ["code", { class: "system", code: "E_BUSY" }],
    ["status", { class: "system", status: 409 }],
    ["status by glob", { class: "system", status: "4*" }],
    ["part of the message", { class: "system", message: "is locked" }],
    ["message by glob", { class: "system", message: "document*by bob" }],
    ["type, service and tenant", { class: "system", type: "thumb*", service: "media-store", tenant: "*" }],
    ["a function", (_error, { service }) => (service === "media-store" ? "system" : undefined)],
  ])("match by %s", (_name, rule) => {
    expect(judge(thrown, [rule], context).class).toBe("system");
  });

  test.each<[string, ClassifyRule]>([
    ["another name", { class: "system", name: "Http" }],
    ["one field of two", { class: "system", name: "HttpError", code: "OTHER" }],
    ["another type", { class: "system", type: "video", message: "locked" }],
    ["a glob in the wrong order", { class: "system", message: "bob*document" }],
    ["overlapping ends", { class: "system", name: "HttpError*HttpError" }],
    ["regular expression syntax", { class: "system", message: "lock.d" }],
    ["a function without opinion", () => undefined],
    ["a function with nonsense", () => "whatever" as never],
    [
      "a function that throws",
      () => {
        throw new Error("bug");
      },
    ],
  ])("do not match by %s", (_name, rule) => {
    expect(judge(thrown, [rule], context).class).toBe("permanent");
  });

  test("win over everything known, the first one first, and may set the severity", () => {
    const rules: ClassifyRule[] = [
      { class: "transient", severity: "critical", name: "PermanentError" },
      () => "system",
    ];
    expect(judge(new PermanentError("x"), rules)).toEqual({ class: "transient", severity: "critical" });
  });

  test("leave the delay asked for in place", () => {
    const limited = error({ status: 420, headers: { "retry-after": "8" } });
    expect(judge(limited, [{ class: "rate_limited", status: 420 }]).retryAfterMs).toBe(8000);
  });

  test("look at 8 KiB of a message and no more, fast", async () => {
    const long = new Error(`${"a".repeat(10_000_000)}b`);
    const look = (): void => expect(judge(long, [{ class: "system", message: "a*a*a*a*b" }]).class).toBe("transient");
    expect(await cpuMs(look)).toBeLessThan(1_000);
  });

  test("are checked when they are configured", () => {
    const rules = [{ class: "permanent", status: 409 }, () => undefined];
    expect(resolveRules(rules, "classify")).toEqual(rules);
    for (const bad of [{}, { class: "bad" }, { class: "system", severity: "loud" }, { class: "system", nme: "x" }]) {
      expect(() => resolveRules([bad], "classify")).toThrow(/classify\[0\].*expected/);
    }
    for (const bad of [
      { class: "system", message: /x/ },
      { class: "system", name: "" },
      { class: "system", name: 5 },
      null,
    ]) {
      expect(() => resolveRules([bad], "classify")).toThrow(/classify\[0\].*expected/);
    }
    expect(() => resolveRules({}, "classify")).toThrow(/a list of rules/);
  });
});

describe("hostile values", () => {
  const throwing = new Proxy(
    {},
    {
      get: () => {
        throw new Error("trap");
      },
      getPrototypeOf: () => {
        throw new Error("trap");
      },
    },
  );
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  const selfCaused = error({});
  Object.assign(selfCaused, { cause: selfCaused, errors: [selfCaused], name: "AggregateError" });
  class Endless extends Error {
    override get cause(): unknown {
      return new Endless();
    }
  }
  const everything: object = new Proxy(() => {}, { get: () => everything, apply: () => everything });

  test.each<[string, unknown]>([
    ["a proxy that throws", throwing],
    ["a revoked proxy", revoked.proxy],
    ["its own cause and member", selfCaused],
    ["an endless chain of causes", new Endless()],
    ["a proxy that has every property", everything],
    ["headers that throw", error({ response: { headers: throwing } })],
    [
      "headers whose get throws",
      error({
        headers: {
          get: () => {
            throw new Error("no");
          },
        },
      }),
    ],
    ["no prototype", Object.create(null)],
    ["a symbol", Symbol("x")],
    ["a function", () => {}],
    ["a bigint", 10n],
  ])("%s is transient", (_name, thrown) => {
    expect(judge(thrown, [{ class: "system", name: "nobody", message: "nothing", code: "x", status: 1 }]).class).toBe(
      "transient",
    );
  });

  test("a class comes of anything", () => {
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true, withBigInt: true }), (fields) => {
        for (const thrown of [fields, error({ response: fields, headers: fields, code: fields, cause: fields })]) {
          expect(FAILURE_CLASSES).toContain(judge(thrown).class);
        }
      }),
      { seed: 7, numRuns: 500 },
    );
  });
});

describe("AWS errors that ask for another try", () => {
  const aws = (name: string, status: number, more: object = {}): Error =>
    Object.assign(new Error(name), { name, $metadata: { httpStatusCode: status }, $fault: "client", ...more });

  test.each([
    [aws("RequestTimeout", 400), "timeout"],
    [aws("TransactionInProgressException", 400), "transient"],
    [aws("RequestTimeTooSkewed", 403), "transient"],
    [aws("SomethingElse", 400, { $retryable: {} }), "transient"],
    [aws("SomethingElse", 400, { $retryable: { throttling: true } }), "rate_limited"],
    [aws("SomethingElse", 400), "validation"],
  ])("%s is %s", (error, expected) => {
    expect(classify(error, {}, [], 0).class).toBe(expected);
  });
});
