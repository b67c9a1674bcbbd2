// Names of errors that a bundler made: of one or two letters, another one after every build.
import { expect, it } from "vitest";
import { fingerprint } from "../../src/core/fingerprint.ts";

it("count as Error in a fingerprint, and longer ones do not", () => {
  const print = (name: string): string => fingerprint({ name, message: "It failed.", stack: null, class: "transient" });
  expect(print("a")).toBe(print("Error"));
  expect(print("aB")).toBe(print("Error"));
  expect(print("abc")).not.toBe(print("Error"));
});
