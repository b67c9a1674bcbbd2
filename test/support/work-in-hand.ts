// What a worker has in hand, for tests of the rules about it.
import type { WorkInHand } from "../../src/core/in-hand.ts";

/** Ten slots, all free, and nothing known of its pace. */
export const EMPTY_HANDS: WorkInHand = {
  concurrency: 10,
  slots: 10,
  free: 10,
  reserved: 0,
  forming: 0,
  ahead: 0,
  held: 0,
  returning: 0,
  settled: 0,
  settling: 0,
  suspectsMs: [],
};

/** The same with a run in every slot. */
export const FULL_HANDS: WorkInHand = { ...EMPTY_HANDS, free: 0, held: 10 };
