// How a conformance test is registered: it gets a world of its own, closes it, and can be left out only with a reason.
import { it } from "vitest";
import type { Store } from "../../src/store/store.ts";

/** The clock of a store; setting it moves the store's time. Real clocks refuse that. */
export interface Clock {
  now: number;
}

/** A fresh store that nobody else uses. */
export interface World {
  readonly store: Store;
  readonly clock: Clock;
  /** Another way to the same data, as a second process has it; the same store where there is only one process. */
  peer(): Promise<Store>;
  close(): Promise<void>;
}

/** Tests that a store does not take part in: by name, or all that need a clock in the test's hands. */
export interface Skip {
  readonly reason: string;
  readonly tests: "timed" | readonly string[];
}

/** A test gets its world, and a way out where the store lacks what the contract leaves to it. */
type Body = (world: World, skip: (reason: string) => never) => Promise<void>;

/** The way to register the tests of one store. */
export interface Suite {
  /** A test that holds whatever the time is. */
  fact(name: string, body: Body): void;
  /** A test that moves the store's clock or knows its value exactly. */
  timed(name: string, body: Body): void;
}

/** A suite over worlds opened by `open`, without the tests in `skip`. */
export function suiteOf(open: () => Promise<World>, skip: readonly Skip[]): Suite {
  const register = (name: string, timed: boolean, body: Body): void => {
    if (skip.some(({ tests }) => (tests === "timed" ? timed : tests.includes(name)))) return;
    it(name, async (context) => {
      const world = await open();
      try {
        await body(world, (reason) => context.skip(reason));
      } finally {
        await world.close();
      }
    });
  };
  return {
    fact: (name, body) => register(name, false, body),
    timed: (name, body) => register(name, true, body),
  };
}
