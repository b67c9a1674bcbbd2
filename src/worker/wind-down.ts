// How a worker gets out of its work: give back what has not started, let runs finish, then abort them, then release them
// over their heads; nothing is charged on the way.
import type { System } from "../system/system.ts";
import type { Hands } from "./hands.ts";
import type { Reaping } from "./reaping.ts";
import type { Settler } from "./settler.ts";

/** How long an aborted run may take to end before it is released over its head. */
const LAST_WORDS_MS = 1_000;

/** Empties a worker's hands within the time; `hurry` cuts every wait short. */
export async function windDown(
  worker: {
    readonly hands: Hands;
    readonly reaping: Reaping;
    readonly settler: Settler;
    readonly claimed: Promise<unknown>;
    /** Tells the children. */
    readonly stopped: AbortController;
  },
  options: { readonly system: System; readonly withinMs: number; readonly hurry: AbortSignal },
): Promise<void> {
  const { hands, reaping, settler, claimed, stopped } = worker;
  const { system, withinMs, hurry } = options;
  const atMost = async (work: Promise<unknown>, ms: number): Promise<void> => {
    const done = new AbortController();
    await Promise.race([work, system.sleep(ms, AbortSignal.any([done.signal, hurry]))]);
    done.abort();
  };
  hands.releaseAhead();
  await atMost(claimed, withinMs);
  await Promise.all([hands.empty(withinMs, hurry), atMost(reaping.empty(), withinMs)]);
  stopped.abort();
  hands.stop("shutdown");
  await Promise.all([hands.empty(LAST_WORDS_MS, hurry), atMost(reaping.empty(), LAST_WORDS_MS)]);
  hands.abandon();
  await atMost(settler.idle(), Math.max(withinMs, LAST_WORDS_MS));
}
