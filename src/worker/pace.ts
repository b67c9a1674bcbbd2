// How fast a worker finishes jobs, and from that how many it should fetch ahead. Fast work is fetched by the hundred,
// so that commits are shared; slow work is left to whoever is free first.

/** The rate at which jobs are finished, smoothed over the last few readings. */
export interface Pace {
  finished(): void;
  /** Jobs per millisecond. */
  read(nowMs: number): number;
}

const READ_EVERY_MS = 20;
const MEMORY_MS = 50;

/** A pace that begins at nothing. */
export function openPace(nowMs: number): Pace {
  let count = 0;
  let since = nowMs;
  let rate = 0;
  return {
    finished: () => void count++,
    read(now) {
      const elapsed = now - since;
      if (elapsed >= READ_EVERY_MS) {
        // What was long ago counts for little: work may have become slow since.
        const kept = Math.exp(-elapsed / MEMORY_MS);
        rate = rate * kept + (count / elapsed) * (1 - kept);
        count = 0;
        since = now;
      }
      return rate;
    },
  };
}

/** Only what will start within this time is fetched ahead. */
const HORIZON_MS = 100;
/** Jobs ahead for each slot at most; more where the answer to a claim takes longer than short jobs do. */
const AHEAD_PER_SLOT = { here: 20, remote: 40 } as const;
/** Jobs in one claim at most. */
export const CLAIM_MOST = 1_000;

/**
 * How many jobs to take now: free slots, and ahead of them what will be finished within the horizon at the present
 * pace. Nothing while more than half of that is still there, so that claims are few and large.
 */
export function wantedNow(
  { concurrency, isRemote }: { readonly concurrency: number; readonly isRemote: boolean },
  hands: { readonly free: number; readonly ahead: number; readonly pace: number },
): number {
  const perSlot = AHEAD_PER_SLOT[isRemote ? "remote" : "here"];
  const target = Math.min(perSlot * concurrency, Math.floor(hands.pace * HORIZON_MS));
  if (hands.free === 0 && hands.ahead * 2 > target) return 0;
  return Math.max(0, Math.min(CLAIM_MOST, hands.free + target - hands.ahead));
}
