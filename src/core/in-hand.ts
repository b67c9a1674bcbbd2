// How much a worker may claim ahead and how much it may leave unsettled, as one rule. All is counted in slots: a batch is
// one slot, from its claim until the last of its jobs is settled.
//
//   ahead   ≤ what was settled in the last tenth of a second, and ≤ 20 for each slot, or 40 where the store is a server away
//   held    = ahead + running + ended and not settled yet
//           ≤ 2 × concurrency + what a tenth of a second of settling takes, of which no more than 5,000 count
//
// So fast work is fetched by the hundred and commits are shared, slow work is left to the worker that is free first, and a
// store that settles slowly slows the claims down: what a worker holds follows its concurrency, never the backlog. A tenth
// of a second of settling is measured on a clock that stands still while nothing is being settled: a worker that had to wait
// for its claims must not take that for a slow store, and claim even less.

/** What a worker has in hand and how fast it goes, in slots. */
export interface WorkInHand {
  /** Slots of the worker, and those of them that no handler has kept beyond its abort. */
  readonly concurrency: number;
  readonly slots: number;
  /** Slots that are free now, those among them that are kept for suspects, and batches in a slot that wait for more jobs. */
  readonly free: number;
  readonly reserved: number;
  readonly gathering: number;
  /** Claimed and not begun. */
  readonly ahead: number;
  /** Claimed and not settled. */
  readonly held: number;
  /** Jobs on their way back without having started. */
  readonly returning: number;
  /** Settled in the last tenth of a second. */
  readonly settled: number;
  /** Settled in the last tenth of a second of settling. */
  readonly settling: number;
  /** How long each suspect that runs here has been running. */
  readonly suspectsMs: readonly number[];
}

/** Slots ahead for each slot at most; more where the answer to a claim takes longer than short jobs do. */
const AHEAD_PER_SLOT = { here: 20, remote: 40 } as const;
/** What may be held beyond twice the concurrency, however fast the store settles. */
const BEYOND_MOST = 5_000;
/** Slots, and jobs, in one claim at most. */
export const CLAIM_MOST = 1_000;
/** How long a suspect is watched before the next one may join it. */
const SUSPECT_WATCH_MS = 100;

/** How many slots a worker may hold, where a tenth of a second of settling takes so many. */
export function mayHold(concurrency: number, settling: number): number {
  return 2 * concurrency + Math.min(BEYOND_MOST, settling);
}

/** Slots that any job may have now: those that are free, and batches that wait for more jobs, which are as good. */
export function fillable({ free, reserved, gathering }: Pick<WorkInHand, "free" | "reserved" | "gathering">): number {
  return Math.max(0, free - reserved) + gathering;
}

/**
 * How many slots to fill now: those that are free, and what may be fetched ahead of them; no more than may be held.
 * Nothing while more than half of what may be ahead is still there, so that claims are few and large.
 */
export function wantedNow(inHand: Omit<WorkInHand, "concurrency" | "suspectsMs">, isRemote: boolean): number {
  const { slots, ahead, held, returning, settled, settling } = inHand;
  // Later tickets that start would make these count as started, and a crash now would charge them for it.
  if (returning > 0) return 0;
  const free = fillable(inHand);
  // What is fetched ahead waits for slots that come back, and those of leaked handlers may not.
  const target = Math.min(AHEAD_PER_SLOT[isRemote ? "remote" : "here"] * slots, settled);
  if (free === 0 && ahead * 2 > target) return 0;
  return Math.max(0, Math.min(CLAIM_MOST, mayHold(slots, settling) - held, free + target - ahead));
}

/**
 * Suspects come one by one: while one is watched, only as many may join as have run for a while without harm, so that
 * a dead worker's many long jobs are all at work again within a second.
 */
export function mayTakeSuspect({ concurrency, free, held, settling, suspectsMs }: WorkInHand): boolean {
  if (free === 0 || held >= mayHold(concurrency, settling)) return false;
  const watched = suspectsMs.filter((ms) => ms < SUSPECT_WATCH_MS).length;
  return watched === 0 || watched < suspectsMs.length - watched;
}
