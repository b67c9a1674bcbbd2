// Functions that fail as they are told, for the tests of retries.
import { expect } from "vitest";
import type { System } from "../../src/system/system.ts";

/** The error that a promise rejects with. */
export const caught = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => expect.fail("it did not fail"),
    (error: unknown) => error,
  );

/** A function that fails in these ways and then succeeds, and when it was called, counted from the first call. */
export function failing(system: System, ...errors: readonly unknown[]) {
  const startedAt = system.now();
  const calledAt: number[] = [];
  const fn = async (): Promise<string> => {
    calledAt.push(system.now() - startedAt);
    if (calledAt.length <= errors.length) throw errors[calledAt.length - 1];
    return "done";
  };
  return { fn, calledAt };
}

/** The error of a connection that broke off. */
export const reset = (): Error => Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
