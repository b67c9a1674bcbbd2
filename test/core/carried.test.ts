// What an error carries decides only which rules are asked about it, never what they answer: every error is judged as if
// all of them had been asked.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { classify } from "../../src/core/classify.ts";
import { carriedBy, read } from "../../src/core/error-shape.ts";
import { revive, thrownCases } from "../support/thrown.ts";

/** A field that no rule knows: the error then carries more, so that every rule is asked. */
const UNKNOWN_FIELD = { ofNoRule: 1 };
const thrown = thrownCases().map(({ error }) => revive(error));
const texts = (key: string): string[] => {
  const found = thrown.map((each) => read(each, key)).filter((text) => typeof text === "string");
  return [...new Set(found)];
};
const CODES = [...texts("code"), 400, 429, 503, "503", 13, -32_603, 126, ""];
const CALLS = ["connect", "read", "open"];

function made(name: string, type: string, message: string, fields: object): Error {
  const classes: Record<string, new (text: string) => Error> = { [type]: class extends Error {} };
  return Object.assign(new (classes[type] ?? Error)(message), { name }, fields);
}

const anError = (names: readonly string[], messages: readonly string[]) =>
  fc.record({
    name: fc.constantFrom("Error", ...names),
    type: fc.constantFrom("Error", ...names),
    message: fc.constantFrom(...messages),
    fields: fc.oneof(
      fc.constant({}),
      fc.record({ code: fc.constantFrom(...CODES) }),
      fc.record({ code: fc.constantFrom(...CODES), syscall: fc.constantFrom(...CALLS), errno: fc.constant(-111) }),
    ),
  });

describe("an error that carries little", () => {
  test("is judged as if every rule had been asked", () => {
    const one = anError(texts("name"), texts("message"));
    const isJudgedAlike = ({
      name,
      type,
      message,
      fields,
    }: {
      name: string;
      type: string;
      message: string;
      fields: object;
    }) => {
      const few = made(name, type, message, fields);
      const all = made(name, type, message, { ...fields, ...UNKNOWN_FIELD });
      expect([carriedBy(few) === "more", carriedBy(all)]).toEqual([false, "more"]);
      expect(classify(few, {}, [], 0)).toEqual(classify(all, {}, [], 0));
    };
    fc.assert(fc.property(one, isJudgedAlike), { numRuns: 1_000 });
  });

  test("is judged as if every rule had been asked, for name, message and code of each real error", () => {
    for (const { name, constructor, message, ...fields } of thrown.filter((each) => each instanceof Error)) {
      const code = read(fields, "code");
      const carried = typeof code === "string" || typeof code === "number" ? { code } : {};
      const few = made(name, constructor.name, message, carried);
      const all = made(name, constructor.name, message, { ...carried, ...UNKNOWN_FIELD });
      expect(classify(few, {}, [], 0)).toEqual(classify(all, {}, [], 0));
    }
  });

  test("is judged as if every rule had been asked, also as the cause of another", () => {
    const one = anError(texts("name"), texts("message"));
    const wrapped = (cause: Error) => new Error("The order was not sent", { cause });
    const isJudgedAlike = ({
      name,
      type,
      message,
      fields,
    }: {
      name: string;
      type: string;
      message: string;
      fields: object;
    }) => {
      const few = wrapped(made(name, type, message, fields));
      const all = Object.assign(wrapped(made(name, type, message, { ...fields, ...UNKNOWN_FIELD })), UNKNOWN_FIELD);
      expect(classify(few, {}, [], 0)).toEqual(classify(all, {}, [], 0));
    };
    fc.assert(fc.property(one, isJudgedAlike), { numRuns: 300 });
  });

  test("is an error of the language, or of a class that adds no field", () => {
    class Late extends RangeError {}
    expect(carriedBy(new Error("x"))).toBe("nothing");
    expect(carriedBy(new Late("x", { cause: new Error("y") }))).toBe("nothing");
    expect(carriedBy(Object.assign(new Error("x"), { code: "EPIPE", syscall: "write" }))).toBe("code");
  });

  test("is none that may answer with fields that it does not list", () => {
    class Failed extends Error {
      get status(): number {
        return 429;
      }
    }
    const proxy = new Proxy(new Error("x"), { get: (_, key) => (key === "status" ? 429 : undefined) });
    const sealed = Proxy.revocable(new Error("x"), {});
    sealed.revoke();
    for (const each of [new Failed("x"), proxy, sealed.proxy, Object.create(Error.prototype), {}, "x", null, undefined])
      expect(carriedBy(each)).toBe("more");
    expect(classify(new Failed("x"), {}, [], 0).class).toBe("rate_limited");
    expect(classify(proxy, {}, [], 0).class).toBe("rate_limited");
  });
});
