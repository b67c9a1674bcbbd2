// How many jobs a worker may claim ahead and how many it may leave unsettled, as one rule. Everything is counted in
// slots: a batch is one slot, from its claim until the last of its jobs is settled.
//
//   ahead   ≤ what was settled in the last tenth of a second, and ≤ 20 for each slot, or 40 where the store is a server away
//   held    = ahead + running + ended and not settled yet
//           ≤ 2 × concurrency + what a tenth of a second of settling takes, of which no more than 5,000 count
//
// So fast work is fetched by the hundred and shares commits, slow work is left to the worker that is free first, and a
// store that settles slowly slows the claims down: what a worker holds follows its concurrency, never the backlog. "A
// tenth of a second of settling" is measured on a clock that stops while nothing is being settled: a worker that waited
// for its claims must not mistake that for a slow store, and claim even less.

/** What a worker holds and how fast it settles, in slots. */
export interface WorkInHand {
  /** All slots of the worker, and those that no handler occupies after ignoring its abort signal. */
  readonly concurrency: number;
  readonly slots: number;
  /** Slots that are free now, those of them reserved for suspects, and batches in a slot that wait for more jobs. */
  readonly free: number;
  readonly reserved: number;
  readonly forming: number;
  /** Claimed and not started. */
  readonly ahead: number;
  /** Claimed and not settled. */
  readonly held: number;
  /** Jobs being released without having started. */
  readonly returning: number;
  /** Settled in the last tenth of a second. */
  readonly settled: number;
  /** Settled in the last tenth of a second of settling. */
  readonly settling: number;
  /** How long each suspect that runs here has been running. */
  readonly suspectsMs: readonly number[];
}

/** Most slots ahead per slot; more where the answer to a claim takes longer than a short job. */
const AHEAD_PER_SLOT = { here: 20, remote: 40 } as const;
/** The most that may be held beyond twice the concurrency, however fast the store settles. */
const BEYOND_MOST = 5_000;
/** Most slots, and jobs, in one claim. */
export const CLAIM_MOST = 1_000;
/** How long a suspect runs before the next one may join it. */
const SUSPECT_WATCH_MS = 100;

/** How many slots a worker may hold when so many are settled in a tenth of a second of settling. */
export function mayHold(concurrency: number, settling: number): number {
  return 2 * concurrency + Math.min(BEYOND_MOST, settling);
}

/** Slots that any job may take now: free ones, and batches that wait for more jobs. */
export function fillable({ free, reserved, forming }: Pick<WorkInHand, "free" | "reserved" | "forming">): number {
  return Math.max(0, free - reserved) + forming;
}

/**
 * How many slots to fill now: the free ones, and what may be fetched ahead, within what may be held. Zero while more
 * than half of the allowance ahead is still there, so that claims are few and large.
 */
export function wantedNow(inHand: Omit<WorkInHand, "concurrency" | "suspectsMs">, isRemote: boolean): number {
  const { slots, ahead, held, returning, settled, settling } = inHand;
  // A later ticket that starts would mark these as started, and a crash now would charge them.
  if (returning > 0) return 0;
  const free = fillable(inHand);
  // Jobs fetched ahead wait for slots to become free, and those of leaked handlers may never.
  const target = Math.min(AHEAD_PER_SLOT[isRemote ? "remote" : "here"] * slots, settled);
  if (free === 0 && ahead * 2 > target) return 0;
  return Math.max(0, Math.min(CLAIM_MOST, mayHold(slots, settling) - held, free + target - ahead));
}

/**
 * Suspects start one by one: one more may join only when those that run have run for a while without harm. So the many
 * long jobs of a dead worker all run again within a second.
 */
export function mayTakeSuspect({ concurrency, free, held, settling, suspectsMs }: WorkInHand): boolean {
  if (free === 0 || held >= mayHold(concurrency, settling)) return false;
  const watched = suspectsMs.filter((ms) => ms < SUSPECT_WATCH_MS).length;
  return watched === 0 || watched < suspectsMs.length - watched;
}
