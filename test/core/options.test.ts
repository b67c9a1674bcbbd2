// Options are plain objects: what only looks like one would count as empty, and its settings would be lost in silence.
import { describe, expect, it } from "vitest";
import { didYouMean, namesOf, objectOf, parseOptions } from "../../src/core/options.ts";

describe("what is given as options", () => {
  it.each([
    ["a Promise", Promise.resolve({ a: 1 })],
    ["a Map", new Map([["a", 1]])],
    ["a Set", new Set([1])],
    ["a Date", new Date(0)],
    ["a RegExp", /a/],
    ["an Error", new Error("a")],
    // oxlint-disable-next-line unicorn/no-thenable
    ["a promise of another kind", { then: () => undefined }],
    ["an array", []],
    ["null", null],
  ])("is refused where it is %s", (what, value) => {
    const got = what === "a promise of another kind" ? "a Promise" : what;
    expect(() => parseOptions(value, ["a"], "it")).toThrow(`it: expected an object with a; got ${got};`);
    expect(() => objectOf(value as object, "it")).toThrow(`it: expected an object; got ${got};`);
  });

  it("is taken where it is an object, of a class or without a prototype", () => {
    class Settings {
      a = 1;
    }
    for (const value of [{ a: 1 }, new Settings(), Object.assign(Object.create(null), { a: 1 })])
      expect({ ...parseOptions(value, ["a"], "it") }).toEqual({ a: 1 });
  });
});

describe("the names of options", () => {
  interface Options {
    readonly a: number;
    readonly b?: number;
  }

  it("are a list as it was written", () => {
    expect(namesOf<Options>()(["b", "a"])).toEqual(["b", "a"]);
  });

  // Each line below is an error of the compiler, or the directive above it is one.
  it("do not compile without one of the type's, nor with another", () => {
    // @ts-expect-error The list lacks b.
    expect(namesOf<Options>()(["a"])).toEqual(["a"]);
    // @ts-expect-error The type has no c.
    expect(namesOf<Options>()(["a", "b", "c"])).toEqual(["a", "b", "c"]);
  });
});

describe("a word close to a known one", () => {
  it.each([
    ["tpye", 'did you mean "type"?'],
    ["tyep", 'did you mean "type"?'],
    ["tye", 'did you mean "type"?'],
    ["ytp", ""],
    ["tixx", ""],
    ["conccurency", 'did you mean "concurrency"?'],
  ])("%s: %j", (word, said) => expect(didYouMean(word, ["type", "concurrency"])).toBe(said === "" ? "" : said));
});
