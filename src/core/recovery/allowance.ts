// How many letters a run may send now: by its rate, by how many of its jobs have not run yet, and by its limit. A driver
// sends at most one beat's worth at a time and spreads it over the beat, so that no second has more than the rate, neither
// of sends nor of due times, and a driver that takes over makes no burst.
import type { RedriveRun } from "./run.ts";
import { pendingOf } from "./judge.ts";
import type { RedriveSums } from "./outcome.ts";

/** Letters sent in one commit. */
export const CHUNK = 200;

/** The bounds of a rate, in letters a second. */
export const RATE_BOUNDS = { min: 0.01, max: 10_000 } as const;

/** The rhythm of a rate. */
export interface Rhythm {
  /** Letters sent at once, at most. */
  readonly most: number;
  /** The least time between two sends. */
  readonly everyMs: number;
}

/** The rhythm of a rate: once a second; more often only where a second's worth is more than a chunk. */
export function rhythmOf(rate: number): Rhythm {
  if (rate < 1) return { most: 1, everyMs: Math.ceil(1_000 / rate) };
  const parts = Math.ceil(rate / CHUNK);
  return { most: Math.floor(rate / parts), everyMs: Math.ceil(1_000 / parts) };
}

/** When the letter at this place of a send is due, counted from the send. */
export function spreadMs(rate: number, place: number): number {
  const { most, everyMs } = rhythmOf(rate);
  return Math.floor((place * everyMs) / most);
}

const WINDOW = { seconds: 10, min: 10, max: 1_000 } as const;

/** How many jobs of a run may wait for their first run: ten seconds of its rate. Fresh work stays close behind them. */
export function windowOf(rate: number): number {
  return Math.min(WINDOW.max, Math.max(WINDOW.min, Math.ceil(rate * WINDOW.seconds)));
}

/** How many of the run's letters may be sent now, whatever its step. */
export function allowance(
  run: Pick<RedriveRun, "rate" | "nextAt" | "selection" | "toSend">,
  counts: RedriveSums,
  now: number,
): number {
  if (now < run.nextAt) return 0;
  const room = windowOf(run.rate) - pendingOf(counts);
  const left = run.selection.limit === undefined ? Number.POSITIVE_INFINITY : run.toSend - counts.sent;
  return Math.max(0, Math.min(rhythmOf(run.rate).most, room, left));
}
