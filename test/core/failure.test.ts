// Anything can be thrown; a bounded, plain failure comes of it.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { classify } from "../../src/core/classify.ts";
import { cutText, failureFrom, MAX_TEXT_BYTES, plainText } from "../../src/core/failure.ts";
import { cpuMs } from "../support/cpu-time.ts";

const judged = { class: "transient", severity: "warning" } as const;
const failure = (thrown: unknown) => failureFrom(thrown, judged);
const bytes = (text: string) => new TextEncoder().encode(text).length;
const odd = (fields: object) => Object.assign(Object.create(null) as object, fields);

describe("failureFrom", () => {
  test("keeps name, message, stack and what was judged", () => {
    const error = new RangeError("too far");
    expect(failureFrom(error, { ...judged, retryAfterMs: 5, delayMs: 7, code: "429" })).toEqual({
      class: "transient",
      severity: "warning",
      name: "RangeError",
      message: "too far",
      stack: error.stack,
      fingerprint: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
      retryAfterMs: 5,
      delayMs: 7,
      code: "429",
    });
  });

  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  const cyclic: Record<string, unknown> = { reason: "x" };
  cyclic["self"] = cyclic;
  const bomb = {
    get message(): string {
      throw new Error("no");
    },
    get name(): string {
      throw new Error("no");
    },
    get stack(): string {
      throw new Error("no");
    },
    get cause(): unknown {
      throw new Error("no");
    },
  };

  test.each<[string, unknown, string, string]>([
    ["undefined", undefined, "undefined", "undefined"],
    ["null", null, "null", "null"],
    ["text", "disk full", "string", "disk full"],
    ["empty text", "", "string", ""],
    ["a number", 42, "number", "42"],
    ["a bigint", 42n, "bigint", "42"],
    ["a symbol", Symbol("s"), "symbol", "Symbol(s)"],
    ["a function", function broken() {}, "function", "function broken"],
    ["an object", { reason: "x", at: [1], n: null }, "Object", "{ reason: x, at: […], n: null }"],
    ["a list", [1, "b"], "Array", "[1, b]"],
    ["no prototype", odd({ message: "bare" }), "Object", "bare"],
    ["a cycle", cyclic, "Object", "{ reason: x, self: {…} }"],
    [
      "getters that throw",
      bomb,
      "Object",
      "{ message: undefined, name: undefined, stack: undefined, cause: undefined }",
    ],
    ["a revoked proxy", revoked.proxy, "Object", "an object that cannot be read"],
    ["a message that is a number", Object.assign(new Error(), { message: 5 }), "Error", "5"],
    ["a message that is an object", Object.assign(new Error(), { message: { a: 1 } }), "Error", "{ a: 1 }"],
    ["a name that is not text", Object.assign(new TypeError("x"), { name: 5 }), "TypeError", "x"],
    [
      "toString that throws",
      {
        toString: () => {
          throw new Error("no");
        },
      },
      "Object",
      "{ toString: function toString }",
    ],
    ["a Response", new Response("", { status: 503, statusText: "Busy" }), "Response", "HTTP 503 Busy"],
  ])("describes %s", (_name, thrown, name, message) => {
    expect(failure(thrown)).toMatchObject({ name, message });
  });

  test("cuts a message of 10 MB, keeps the frames, and is quick about it", async () => {
    const error = new Error("€".repeat(10_000_000));
    // V8 builds long text lazily; its own cost of putting it together is not measured here.
    for (const text of [error.message, error.stack]) text?.charCodeAt(5);
    const cut: ReturnType<typeof failure>[] = [];
    expect(await cpuMs(() => cut.push(failure(error)))).toBeLessThan(1_000);
    const { message, stack } = cut[0] as ReturnType<typeof failure>;
    expect(message).toBe("€".repeat(2730));
    expect(bytes(stack ?? "")).toBeLessThanOrEqual(MAX_TEXT_BYTES);
    expect(stack).toContain("failure.test.ts");
  });

  test("cuts a long message that the stack begins with, and keeps the frames", () => {
    const message = "x".repeat(2 * MAX_TEXT_BYTES);
    const { stack } = failure(Object.assign(new Error(message), { stack: `${message}\n    at work (a.js:1:1)` }));
    expect(stack).toMatch(/^x+…\n {4}at work \(a\.js:1:1\)$/);
  });

  test("adds the causes to the stack, each once", () => {
    const root = new Error("root");
    const middle = Object.assign(new Error("middle", { cause: root }), {});
    Object.assign(root, { cause: middle });
    const { stack } = failure(new Error("top", { cause: middle }));
    expect(stack?.match(/Caused by: /g)).toHaveLength(2);
    expect(stack).toMatch(/^Error: top[^]*Caused by: Error: middle[^]*Caused by: Error: root/);
    expect(failure(odd({ message: "top", cause: "plain" })).stack).toBe("Object: top\nCaused by: string: plain");
  });

  test("is bounded, plain JSON for anything thrown, as itself or as the parts of an error", () => {
    const fields = fc.anything({ withNullPrototype: true, withBigInt: true, withDate: true });
    fc.assert(
      fc.property(fields, (value) => {
        for (const thrown of [
          value,
          Object.assign(new Error(), { name: value, message: value, stack: value, cause: value }),
        ]) {
          const made = failureFrom(thrown, classify(thrown, {}, [], 0));
          expect(JSON.parse(JSON.stringify(made))).toEqual(made);
          expect(bytes(made.message)).toBeLessThanOrEqual(MAX_TEXT_BYTES);
          expect(bytes(made.stack ?? "")).toBeLessThanOrEqual(MAX_TEXT_BYTES);
        }
      }),
      { seed: 8, numRuns: 500 },
    );
  });

  test("keeps U+0000 and lone surrogates of the message", () => {
    expect(failure(new Error("a\u0000b\uD800c")).message).toBe("a\u0000b\uD800c");
  });
});

describe("cutText", () => {
  test("answers the longest start of whole characters within the limit", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "é", "€", "😀", "\uD83D", "\uDE00"), maxLength: 60 });
    fc.assert(
      fc.property(text, fc.nat(80), (value, limit) => {
        const cut = cutText(value, limit);
        const next = String.fromCodePoint(value.codePointAt(cut.length) ?? 0x61);
        expect(value.startsWith(cut)).toBe(true);
        expect(bytes(cut)).toBeLessThanOrEqual(limit);
        if (cut !== value) expect(bytes(cut) + bytes(next)).toBeGreaterThan(limit);
      }),
      { seed: 9, numRuns: 1000 },
    );
  });
});

describe("plainText", () => {
  test("shows U+0000 and replaces lone surrogates, and nothing else", () => {
    expect(plainText("a\u0000b")).toBe("a␀b");
    expect(plainText("\uD800x\uDC00")).toBe("\uFFFDx\uFFFD");
    expect(plainText("\uD83D\uDE00 é\n")).toBe("😀 é\n");
  });
});
