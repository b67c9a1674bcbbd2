// The verbs of a store as plain synchronous functions, and the way from them to the contract. Memory and SQLite both
// decide and write without waiting, so what they share (argument checks, closing, wake-ups) is here.
import { RedriveError } from "../core/errors.ts";
import type { Store, StoreDescription } from "./store.ts";
import { type Verb, VERB_NAMES, VERBS } from "./verb-facts.ts";

/** Every verb without its promise. */
export type Verbs = { readonly [K in Verb]: (...args: Parameters<Store[K]>) => Awaited<ReturnType<Store[K]>> };

/** Of the failed runs of a generation the first and this many of the last are kept. */
export const HISTORY_TAIL = 9;

/** The error every verb gives after `close`. */
export function closedError(): RedriveError {
  return new RedriveError("closed", "The store was closed. Open a new one to continue.");
}

/** True for a value with the form of a lease; anything else counts as stale. */
export function isLease(value: { id: unknown; epoch: unknown; nonce: unknown }): boolean {
  return typeof value.id === "string" && Number.isSafeInteger(value.epoch) && typeof value.nonce === "string";
}

/** Calls all listeners; an error in one must not fail the write that caused the call. */
export function ring(listeners: Iterable<() => void>): void {
  for (const listener of listeners) {
    try {
      listener();
    } catch {
      // One hint less; polling finds the work.
    }
  }
}

interface AnyFacts {
  readonly check?: (...args: never[]) => void;
  readonly wakes?: (...args: never[]) => boolean;
}

/** What a store has besides its verbs. */
export interface StoreLife {
  /** The listeners for work that may have become due. */
  readonly wake: Set<() => void>;
  readonly remote?: boolean;
  readonly pulse?: NonNullable<Store["pulse"]>;
  readonly within?: NonNullable<Store["within"]>;
  readonly close: () => Promise<void>;
}

/** Makes a store from a function that carries out one verb, in this thread or another. */
export function storeFrom(
  description: StoreDescription,
  carryOut: (verb: Verb, args: readonly unknown[]) => Promise<unknown>,
  life: StoreLife,
): Store {
  let closing: Promise<void> | null = null;
  const call =
    (verb: Verb) =>
    async (...args: never[]): Promise<unknown> => {
      if (closing) throw closedError();
      const { check, wakes } = VERBS[verb] as AnyFacts;
      check?.(...args);
      const answer = await carryOut(verb, args);
      if (life.wake.size > 0 && wakes?.(...args)) ring(life.wake);
      return answer;
    };
  const verbs = Object.fromEntries(VERB_NAMES.map((verb) => [verb, call(verb)])) as unknown as Pick<Store, Verb>;
  return {
    name: description.name,
    remote: life.remote ?? false,
    describe: () => description,
    ...verbs,
    ...(life.pulse && { pulse: life.pulse }),
    ...(life.within && { within: life.within }),
    onWake(listener) {
      life.wake.add(listener);
      return () => life.wake.delete(listener);
    },
    close() {
      closing ??= life.close();
      return closing;
    },
  };
}
