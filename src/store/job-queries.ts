// Pages of jobs: which ones, and how far a question looks; and the changes of jobs that wait.
import type { State } from "../core/job.ts";

/** A page and the cursor of the next one. */
export interface Page<T> {
  /** The items of the page. */
  readonly items: readonly T[];
  /** The cursor of the next page; null on the last. */
  readonly next: string | null;
  /**
   * Only on a page that is not full because it has looked at as much as it may: the time of the last job or letter that it
   * looked at. The next page goes on there.
   */
  readonly seenTo?: number;
}

/** How far a question looks. */
export interface Reach {
  /**
   * The most jobs or letters that it looks at, from 1 to 1,000,000, matching or not. A page may have few items, or none,
   * and still have a `next`. Without it, it looks until the page is full.
   */
  readonly lookAt?: number;
}

/**
 * Which jobs to list; every field narrows. In order of due time, a store may find jobs by their lanes instead of looking at
 * those that do not match: then `lookAt` bounds retries alone.
 */
export interface JobQuery extends Reach {
  readonly limit: number;
  readonly cursor?: string | null;
  /** Only jobs in this stored state. */
  readonly state?: State;
  /** Only jobs of this type; this and the next are compared exactly. */
  readonly type?: string;
  /** Only jobs of this queue. */
  readonly queue?: string;
  /** Only jobs of this service. */
  readonly service?: string;
  /** Only jobs of this tenant. */
  readonly tenant?: string;
  /** Only jobs with this key. */
  readonly key?: string;
  /** Only waiting jobs that are due (true) or not yet (false). */
  readonly due?: boolean;
  /** Only jobs with a charged attempt (true) or without one (false). */
  readonly tried?: boolean;
  /** Only waiting jobs, those due first before the others. */
  readonly sort?: "due";
  /** False leaves out payload, progress and result: the payload comes as `null`, the others as nothing. Default true. */
  readonly payloads?: boolean;
}

/** What a cancel did; `requested` means that it runs and was asked to stop. */
export type CancelAnswer = "cancelled" | "requested" | "finished" | "missing";

/** A change of a waiting job; absent fields stay. */
export interface Reschedule {
  readonly id: string;
  readonly delayMs?: number;
  readonly priority?: number;
}

/** What a reschedule did; `refused` means that the job does not wait. */
export type RescheduleAnswer = "changed" | "refused" | "missing";
