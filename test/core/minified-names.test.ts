// Names of errors that a bundler made: of up to three letters, another one after every build.
import { expect, it } from "vitest";
import { fingerprint } from "../../src/core/fingerprint.ts";

it("count as Error in a fingerprint, and longer ones do not", () => {
  const print = (name: string): string => fingerprint({ name, message: "It failed.", stack: null, class: "transient" });
  expect(print("a")).toBe(print("Error"));
  expect(print("aB")).toBe(print("Error"));
  expect(print("aBc")).toBe(print("Error"));
  expect(print("abcd")).not.toBe(print("Error"));
});
