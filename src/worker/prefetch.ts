// Counts what was settled in the last tenth of a second of a clock; core/in-hand.ts decides how much is claimed by it.
// Of a write that took longer, only the tenth of a second's share counts: otherwise slow writes would lead to larger
// ones, and these to more claims.

/** The count of recently settled slots. */
export interface Prefetch {
  /** The jobs of so many slots were settled, by a write that took so long; default no time. */
  settled(nowMs: number, slots: number, tookMs?: number): void;
  /** Slots that were settled within the last `HORIZON_MS`. */
  read(nowMs: number): number;
}

/** Only jobs that will start within this time are fetched ahead. */
export const HORIZON_MS = 100;
const STEPS = 10;
const STEP_MS = HORIZON_MS / STEPS;

/** A counter that begins at zero. */
export function openPrefetch(): Prefetch {
  const counts = Array.from({ length: STEPS }, () => 0);
  let last = 0;
  let sum = 0;
  /** Drops the steps older than the horizon; answers the index of the present one. */
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
      // Fractions do not add up exactly.
      return Math.floor(sum + 1e-6);
    },
  };
}
