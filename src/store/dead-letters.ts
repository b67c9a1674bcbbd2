// Dead letters as a store is asked for them: which ones, counted by what, and sent back to work.
import type { DeathReason, FailureClass } from "../core/job.ts";

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
  /** Part of the error's name or message as people see them, 1 to 200 characters; A to Z match a to z. */
  readonly text?: string;
  /** Also those that were redriven already. */
  readonly redriven?: boolean;
  /** Only those that are over and wait for a worker with their archive. */
  readonly aside?: boolean;
}

/** Which dead letters to list. */
export interface DeadLetterQuery extends LetterFilter {
  readonly limit: number;
  /** The `next` of a page in the same direction. */
  readonly cursor?: string | null;
  /** Oldest first instead of newest first. */
  readonly oldest?: boolean;
  /** False leaves out payload, progress and result: the payload comes as `null`, the others as nothing. Default true. */
  readonly payloads?: boolean;
}

/** How many dead letters there are of what. */
export interface Tally {
  readonly total: number;
  readonly byClass: Readonly<Record<string, number>>;
  readonly byType: Readonly<Record<string, number>>;
  readonly byReason: Readonly<Record<string, number>>;
  /** At most 100, those with the most letters first, then by fingerprint. */
  readonly causes: readonly CauseCount[];
  /** Letters whose cause is not among those listed. */
  readonly otherCauses: number;
}

/** The dead letters of one cause; name, message and class are those of its newest letter. */
export interface CauseCount {
  readonly fingerprint: string;
  readonly count: number;
  readonly name: string;
  readonly message: string;
  readonly class: FailureClass;
  /** When the first of them died. */
  readonly firstAt: number;
  /** When the last of them died. */
  readonly lastAt: number;
}

/** A death that is meant: a job that came back to life since, or died anew, is another. */
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

/** What a redrive did; `refused` means not dead, or another generation by now. */
export type RedriveAnswer = "redriven" | "refused" | "missing";
