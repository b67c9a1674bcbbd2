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
// for its claims must not take that for a slow store, and claim even less. What one write settled that took longer counts
// for the tenth of a second's part of it: else slow writes would make for large ones, and these for more claims.

/** Counts what was settled in the last tenth of a second of some clock. */
export interface Prefetch {
  /** The jobs of so many slots are settled, by a write that took so long; default no time at all. */
  settled(nowMs: number, slots: number, tookMs?: number): void;
  /** Slots that were settled within the last `HORIZON_MS`. */
  read(nowMs: number): number;
}

/** Only what will start within this time is fetched ahead. */
export const HORIZON_MS = 100;
const STEPS = 10;
const STEP_MS = HORIZON_MS / STEPS;

/** A pace that begins at nothing. */
export function openPrefetch(): Prefetch {
  const counts = Array.from({ length: STEPS }, () => 0);
  let last = 0;
  let sum = 0;
  /** Forgets the steps that lie longer ago than the horizon; answers the place of the present one. */
  const passTo = (nowMs: number): number => {
    const step = Math.floor(nowMs / STEP_MS);
    for (let passed = Math.max(last + 1, step - STEPS + 1); passed <= step; passed++) {
      sum -= counts[passed % STEPS] as number;
      counts[passed % STEPS] = 0;
    }
    last = Math.max(last, step);
    return last % STEPS;
  };
  return {
    settled(nowMs, slots, tookMs = 0) {
      const at = passTo(nowMs);
      const part = tookMs > HORIZON_MS ? (slots * HORIZON_MS) / tookMs : slots;
      counts[at] = (counts[at] as number) + part;
      sum += part;
    },
    read(nowMs) {
      passTo(nowMs);
      // Parts do not add up exactly.
      return Math.floor(sum + 1e-6);
    },
  };
}

/** Slots ahead for each slot at most; more where the answer to a claim takes longer than short jobs do. */
const AHEAD_PER_SLOT = { here: 20, remote: 40 } as const;
/** What may be held beyond twice the concurrency, however fast the store settles. */
const BEYOND_MOST = 5_000;
/** Jobs in one claim at most. */
export const CLAIM_MOST = 1_000;

/** How many slots a worker may hold, where a tenth of a second of settling takes so many. */
export function mayHold(concurrency: number, settling: number): number {
  return 2 * concurrency + Math.min(BEYOND_MOST, settling);
}

/** What a worker has in hand and how fast it goes, in slots. */
export interface WorkInHand {
  readonly free: number;
  readonly ahead: number;
  readonly held: number;
  /** Settled in the last tenth of a second. */
  readonly settled: number;
  /** Settled in the last tenth of a second of settling. */
  readonly settling: number;
}

/**
 * How many slots to fill now: those that are free, and what may be fetched ahead of them; no more than may be held.
 * Nothing while more than half of what may be ahead is still there, so that claims are few and large.
 */
export function wantedNow(
  { concurrency, isRemote }: { readonly concurrency: number; readonly isRemote: boolean },
  { free, ahead, held, settled, settling }: WorkInHand,
): number {
  const target = Math.min(AHEAD_PER_SLOT[isRemote ? "remote" : "here"] * concurrency, settled);
  if (free === 0 && ahead * 2 > target) return 0;
  return Math.max(0, Math.min(CLAIM_MOST, mayHold(concurrency, settling) - held, free + target - ahead));
}
