// The list of errors that libraries throw: it is long and broad enough to judge the rules by, every case is whole, and
// the loader makes the values that were thrown. `npm run prove -- classes` says how many of them the rules get right.

import { describe, expect, test } from "vitest";
import { isRetryable } from "../../src/core/classify-rules.ts";
import { FAILURE_CLASSES } from "../../src/core/job.ts";
import { allowedClasses, revive, thrownCases } from "../support/thrown.ts";

const cases = thrownCases();
const twice = (keys: readonly string[]) => keys.filter((key, at) => keys.indexOf(key) !== at);

describe("the list", () => {
  test("has 300 cases of 40 libraries, and more", () => {
    expect(cases.length).toBeGreaterThanOrEqual(300);
    expect(new Set(cases.map(({ library }) => library)).size).toBeGreaterThanOrEqual(40);
  });

  test("has no case twice", () => {
    expect(twice(cases.map(({ from }) => from))).toEqual([]);
    expect(twice(cases.map(({ library, error }) => `${library} ${JSON.stringify(error)}`))).toEqual([]);
  });

  test("says of each case where it is from, what it should be, and why", () => {
    for (const each of cases) {
      expect(Object.keys(each)).toEqual(["library", "from", "how", "error", "class", "retry", "why"]);
      expect(each.from).toMatch(/^\S.* · \S/);
      expect(["provoked", "built", "written"]).toContain(each.how);
      expect(each.why.length, each.from).toBeGreaterThanOrEqual(4);
    }
  });

  test("allows several classes only where they agree about the retry", () => {
    for (const each of cases) {
      const allowed = allowedClasses(each);
      expect(allowed.length, each.from).toBeGreaterThan(0);
      for (const one of allowed) {
        expect(FAILURE_CLASSES, each.from).toContain(one);
        expect(isRetryable(one), each.from).toBe(each.retry);
      }
    }
  });

  test("has numbers that mean different things in different libraries", () => {
    const retries = (code: number) =>
      new Set(cases.filter(({ error }) => Object(error).code === code).map(({ retry }) => retry));
    for (const code of [6, 7, 13]) expect(retries(code), String(code)).toEqual(new Set([true, false]));
    expect(cases.some(({ error, retry }) => Object(error).responseCode === 503 && !retry)).toBe(true);
  });
});

describe("revive", () => {
  test("makes errors of the class, with its fields and its causes", () => {
    const cause = { $class: "Error", message: "reset", code: "ECONNRESET" };
    const made = revive({ $class: "FetchError", $base: "TypeError", name: "Error", message: "failed", cause });
    expect(made).toBeInstanceOf(TypeError);
    expect(made).toMatchObject({ name: "Error", message: "failed" });
    expect((made as Error).constructor.name).toBe("FetchError");
    expect((made as Error).cause).toBeInstanceOf(Error);
    expect((made as Error).cause).toMatchObject({ code: "ECONNRESET", message: "reset" });
  });

  test("names an error for its class where it has no other name", () =>
    expect(revive({ $class: "SqliteError", message: "busy" })).toMatchObject({ name: "SqliteError" }));

  test("makes what is no error of JavaScript's own", () => {
    expect(revive({ $dom: "AbortError", message: "x" })).toBeInstanceOf(DOMException);
    const { response } = revive({ response: { $response: { status: 503, headers: { "retry-after": "7" } } } }) as {
      response: Response;
    };
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "7"]);
    expect((revive({ $headers: { a: "b" } }) as Headers).get("a")).toBe("b");
    const several = revive({ $class: "AggregateError", message: "", errors: [{ $class: "Error", message: "one" }] });
    expect((several as AggregateError).errors[0]).toBeInstanceOf(Error);
    expect(revive("text")).toBe("text");
  });
});
