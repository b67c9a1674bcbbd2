// What is counted per minute, and how long in which detail it is kept: minutes for six hours, then hours for two weeks,
// then days for 400 days. Counts are only ever added up, so that no writer has to know what another has written.

/** What is counted of a type; times are sums over its completed, retried and dead runs. */
export interface FlowCounts {
  /** Jobs that were written. */
  readonly enqueued: number;
  /** Runs that succeeded. */
  readonly completed: number;
  /** Runs after which the job waits for its next attempt. */
  readonly retried: number;
  /** Jobs that became dead letters. */
  readonly dead: number;
  /** Runs handed back without using an attempt. */
  readonly released: number;
  /** How long the runs took, in milliseconds. */
  readonly runMs: number;
  /** How long their jobs had waited for the start of the run since they were due, in milliseconds. */
  readonly waitMs: number;
}

/** Their names, in the order of the columns. */
export const FLOW_COUNTS = [
  "enqueued",
  "completed",
  "retried",
  "dead",
  "released",
  "runMs",
  "waitMs",
] as const satisfies readonly (keyof FlowCounts)[];

/** What is counted of a cause. Its live letters are the deaths less the redriven and the removed. */
export interface CauseCounts {
  /** Runs that failed by it, those that a death followed included. */
  readonly failures: number;
  /** Dead letters that were written. */
  readonly deaths: number;
  /** Dead letters that were sent back to work. */
  readonly redriven: number;
  /** Dead letters that were deleted before they were sent back. */
  readonly removed: number;
}

/** Their names, in the order of the columns. */
export const CAUSE_COUNTS = [
  "failures",
  "deaths",
  "redriven",
  "removed",
] as const satisfies readonly (keyof CauseCounts)[];

/** A minute in milliseconds: the finest detail. */
export const MINUTE = 60_000;
/** The next coarser one. */
export const HOUR = 3_600_000;
/** The coarsest. */
export const DAY = 86_400_000;

/** The start of the minute of an instant. */
export function minuteOf(at: number): number {
  return at - (at % MINUTE);
}

/** The name under which rare old causes are counted together. */
export const OTHER_CAUSES = "other";
/** Most causes with a count of their own; those with live letters stay even beyond it. */
export const CAUSES_MOST = 10_000;

/** The instants by which counts are folded. */
export interface Folding {
  /** Minutes before this are closed: what several holders have counted becomes one count. */
  readonly closedBefore: number;
  /** Minutes before this become hours; always a full hour. */
  readonly hoursBefore: number;
  /** Hours before this become days; always a full day. */
  readonly daysBefore: number;
  /** Counts before this are deleted; the sums of a cause stay. */
  readonly forgetBefore: number;
  /** A cause that was last seen before this is idle. */
  readonly idleBefore: number;
}

/** What is folded at this moment. A minute is closed one minute after its end: the writes of its last second are in. */
export function foldingAt(now: number): Folding {
  const before = (ms: number, size: number): number => now - ms - ((now - ms) % size);
  return {
    closedBefore: before(MINUTE, MINUTE),
    hoursBefore: before(6 * HOUR, HOUR),
    daysBefore: before(14 * DAY, DAY),
    forgetBefore: before(400 * DAY, DAY),
    idleBefore: now - HOUR,
  };
}
