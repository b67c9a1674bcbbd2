// Counts what was settled in the last tenth of a second of some clock; how much is claimed by it is said in core/in-hand.ts.
// What one write settled that took longer counts for the tenth of a second's part of it: else slow writes would make for
// large ones, and these for more claims.

/** What was settled lately. */
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
