// Queries about dead letters: which ones, their counts, and requests to send them back to work.
import type { DeathReason, FailureClass } from "../core/job.ts";
import type { Reach } from "./store.ts";

/** Which dead letters are meant; every field narrows. */
export interface LetterFilter {
  /** Only those of this job. */
  readonly jobId?: string;
  /** Only those of this type. */
  readonly type?: string;
  /** Only those of this service. */
  readonly service?: string;
  /** Only those of this tenant. */
  readonly tenant?: string;
  /** Only those of jobs with this key. */
  readonly key?: string;
  /** Only failures of this class. */
  readonly class?: FailureClass;
  /** Only deaths for this reason. */
  readonly reason?: DeathReason;
  /** Only those of one cause. */
  readonly fingerprint?: string;
  /** Died at this instant or later, in milliseconds. */
  readonly from?: number;
  /** Died before this instant, in milliseconds. */
  readonly until?: number;
  /** Only those whose error's name or message contains this, 1 to 200 characters, in upper or lower case (A to Z). */
  readonly text?: string;
  /** True adds those that were sent back to work; default false. */
  readonly redriven?: boolean;
  /** Only those that have expired and wait for a worker with their archive. */
  readonly aside?: boolean;
}

/** Which dead letters to list. */
export interface DeadLetterQuery extends LetterFilter, Reach {
  readonly limit: number;
  /** The `next` of a page in the same direction. */
  readonly cursor?: string | null;
  /** Oldest first instead of newest first. */
  readonly oldest?: boolean;
  /**
   * By the order in which the jobs were enqueued, the oldest first, whatever `oldest` says; only the letters that
   * existed when the first page was read.
   */
  readonly sort?: "enqueued";
  /** False leaves out payload, progress and result: the payload comes as `null`, the others as nothing. Default true. */
  readonly payloads?: boolean;
}

/** Counts of dead letters. */
export interface Tally {
  /** All that match. */
  readonly total: number;
  /** How many of each failure class. */
  readonly byClass: Readonly<Record<string, number>>;
  /** How many of each job type. */
  readonly byType: Readonly<Record<string, number>>;
  /** How many died for each reason. */
  readonly byReason: Readonly<Record<string, number>>;
  /** At most 100, those with the most letters first, then by fingerprint. */
  readonly causes: readonly CauseCount[];
  /** Letters whose cause is not among those listed. */
  readonly otherCauses: number;
  /** Only where it has looked at as many as it may: when the oldest of them died. There may be more. */
  readonly seenTo?: number;
}

/** The dead letters of one cause. */
export interface CauseCount {
  /** The fingerprint of the cause, for `deadLetters` filters. */
  readonly fingerprint: string;
  /** How many there are. */
  readonly count: number;
  /** The name of the newest error. */
  readonly name: string;
  /** Its message. */
  readonly message: string;
  /** Its class. */
  readonly class: FailureClass;
  /** When the first of them died. */
  readonly firstAt: number;
  /** When the last of them died. */
  readonly lastAt: number;
}

/** One death: a job that was redriven since, or died again, is another. */
export interface DeadTarget {
  readonly id: string;
  readonly generation: number;
}

/** A dead job to send back, with the generation the caller saw. */
export interface RedriveRequest {
  readonly id: string;
  readonly generation: number;
  readonly delayMs: number;
}

/** The result of a redrive; `refused` means not dead, or another generation by now. */
export type RedriveAnswer = "redriven" | "refused" | "missing";
