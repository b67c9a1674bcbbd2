// The clock of the day: how long it has gone on, and what part of it is over. More jobs make a longer day, within bounds.

/** A clock that stands still until it begins. */
export interface Clock {
  readonly elapsedMs: () => number;
  /** The time of the day; the jobs come in from 0 to 1. */
  readonly at: () => number;
  readonly begin: () => void;
  /** Does not go beyond this time of the day until it may; null for as far as it likes. */
  holdAt: number | null;
}

const MS_PER_JOB = 43;
const SHORTEST_MS = 5_000;
const LONGEST_MS = 15_500;

/** The clock of a day with so many jobs. */
export function openClock(jobs: number): Clock {
  const spanMs = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, jobs * MS_PER_JOB));
  let begun: number | null = null;
  let waitedMs = 0;
  const elapsedMs = (): number => (begun === null ? 0 : performance.now() - begun);
  return {
    elapsedMs,
    begin: () => void (begun ??= performance.now()),
    holdAt: null,
    at() {
      const at = (elapsedMs() - waitedMs) / spanMs;
      if (this.holdAt === null || at <= this.holdAt) return at;
      waitedMs += (at - this.holdAt) * spanMs;
      return this.holdAt;
    },
  };
}
