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

/** Counts before which instants are folded: how long ago that is, and the full span at which it lies. */
export const FOLD_CUTS = {
  /** Minutes before this are closed: what several holders have counted becomes one count. */
  closedBefore: [MINUTE, MINUTE],
  /** Minutes before this become hours. */
  hoursBefore: [6 * HOUR, HOUR],
  /** Hours before this become days. */
  daysBefore: [14 * DAY, DAY],
  /** Counts before this are deleted; the sums of a cause stay. */
  forgetBefore: [400 * DAY, DAY],
} as const;

/** The instants by which counts are folded. */
export type Folding = Readonly<Record<keyof typeof FOLD_CUTS, number>> & {
  /** A cause that was last seen before this is idle. */
  readonly idleBefore: number;
};

/** What is folded at this moment. A minute is closed one minute after its end: the writes of its last second are in. */
export function foldingAt(now: number): Folding {
  const cuts = Object.entries(FOLD_CUTS).map(([cut, [ms, size]]) => [cut, now - ms - ((now - ms) % size)]);
  return { ...(Object.fromEntries(cuts) as Record<keyof typeof FOLD_CUTS, number>), idleBefore: now - HOUR };
}

/** A step of folding: which rows of counts it takes, and what they become. */
export interface FoldStep {
  /** It takes rows before this. */
  readonly cut: keyof typeof FOLD_CUTS;
  /** It takes rows of single holders; otherwise those that an earlier step has made, which have none. */
  readonly isOpen: boolean;
  /** Of these it takes the starts of spans of this length, and of them those that do not start a span of `to`. */
  readonly from?: number;
  /** The span that they become; null deletes them. */
  readonly to: number | null;
}

/** The steps for counts per minute. */
export const MINUTE_FOLDS: readonly FoldStep[] = [
  { cut: "closedBefore", isOpen: true, to: MINUTE },
  { cut: "hoursBefore", isOpen: false, to: HOUR },
  { cut: "daysBefore", isOpen: false, from: HOUR, to: DAY },
  { cut: "forgetBefore", isOpen: false, from: DAY, to: null },
];

/** The steps for counts of redrive runs: a run is judged by its ticks, so they stay until they become hours. */
export const REDRIVE_FOLDS: readonly FoldStep[] = [
  { cut: "hoursBefore", isOpen: true, to: HOUR },
  { cut: "forgetBefore", isOpen: false, to: null },
];
