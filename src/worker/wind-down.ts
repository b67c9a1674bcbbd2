// Empties a worker: releases jobs that have not started, lets runs finish, then aborts them, then releases them without
// waiting for their handlers. No attempt is charged.
import type { System } from "../system/system.ts";
import type { InFlight } from "./in-flight.ts";
import type { Reaping } from "./reaping.ts";
import type { Settler } from "./settler.ts";

/** How long a stop waits for runs before it aborts them, by default. */
export const STOP_WITHIN_MS = 25_000;
/**
 * How long an aborted run may take to end before it is released without waiting for it, and the store to take its
 * verdict.
 */
export const LAST_WORDS_MS = 1_000;

/** Waits for the work, at most so long; `hurry` cuts the wait short. */
export async function atMost(system: System, work: Promise<unknown>, ms: number, hurry?: AbortSignal): Promise<void> {
  const done = new AbortController();
  await Promise.race([work, system.sleep(ms, hurry ? AbortSignal.any([done.signal, hurry]) : done.signal)]);
  done.abort();
}

/** Empties a worker within the time; `hurry` cuts every wait short. */
export async function windDown(
  worker: {
    readonly inFlight: InFlight;
    readonly reaping: Reaping;
    readonly settler: Settler;
    readonly claimed: Promise<unknown>;
  },
  options: { readonly system: System; readonly withinMs: number; readonly hurry: AbortSignal },
): Promise<void> {
  const { inFlight, reaping, settler, claimed } = worker;
  const { system, withinMs, hurry } = options;
  const until = system.monotonic() + withinMs;
  const left = (): number => Math.max(0, until - system.monotonic());
  const wait = (work: Promise<unknown>, ms: number): Promise<void> => atMost(system, work, ms, hurry);
  inFlight.releaseAhead();
  await wait(claimed, left());
  await Promise.all([inFlight.empty(left(), hurry), wait(reaping.empty(), left())]);
  reaping.stop();
  inFlight.stop("shutdown");
  await Promise.all([inFlight.empty(LAST_WORDS_MS, hurry), wait(reaping.empty(), LAST_WORDS_MS)]);
  inFlight.abandon();
  // A store that is away gets the same time once more: every verdict that is written saves a run.
  await wait(settler.idle(), Math.max(withinMs, LAST_WORDS_MS));
}
