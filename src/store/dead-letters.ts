// Queries about dead letters: which ones, their counts, and requests to send them back to work.
import type { DeadLetter, DeathReason, FailureClass, LetterOutcome } from "../core/job.ts";
import { REDRIVE_SUMS, REDRIVE_TICK, type RedriveSums } from "../core/recovery/outcome.ts";
import type { LetterFields } from "../core/recovery/selection.ts";
import type { Page, Reach } from "./job-queries.ts";
import type { PayloadChange } from "./payloads.ts";

/** Which dead letters are meant; every field narrows. */
export interface LetterFilter extends LetterFields {
  /** Only those of this job. */
  readonly jobId?: string;
  /** Only deaths for this reason. */
  readonly reason?: DeathReason;
  /** True adds those that were sent back to work; default false. */
  readonly redriven?: boolean;
  /** Only those that this redrive run has sent back to work, whatever `redriven` says. */
  readonly redrive?: string;
  /** Only those that were sent back to work and have this outcome; `none` where it is not known yet. */
  readonly outcome?: LetterOutcome | "none";
  /** Only those that have expired and wait for a worker with their archive. */
  readonly aside?: boolean;
}

/** How far a list in the order of enqueue, or a tally, goes. */
export interface LetterRange {
  /** Only letters with a number up to this one, which the `through` of a page in the order of enqueue has told. */
  readonly through?: number;
  /** Only letters up to this place in the order of enqueue, which the `next` of such a page has told. */
  readonly upTo?: string;
}

/** Which dead letters to list. */
export interface DeadLetterQuery extends LetterFilter, Reach, LetterRange {
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

/** A page of dead letters. */
export interface LetterPage extends Page<DeadLetter> {
  /** In the order of enqueue: the number of the newest letter that belongs to the list; 0 where there is none. */
  readonly through?: number;
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
  /** The id of the redrive run that sends it; its letter keeps it, and what becomes of the job is counted for the run. */
  readonly redrive?: string;
  /** Another payload, JSON text: the job gets it as a new version, and the one before is kept. */
  readonly payload?: string;
}

/** A job to take back, named by the death that was redriven. */
export interface RecallTarget extends DeadTarget {
  /** Another payload for the job, written in the same commit; only where its payload is the one that was seen. */
  readonly repair?: Pick<PayloadChange, "was" | "payload" | "actor" | "why">;
}

/**
 * The result of a redrive; `refused` means not dead, or another generation by now; `fenced` that the cell had another
 * version, so that nothing was written.
 */
export type RedriveAnswer = "redriven" | "refused" | "missing" | "fenced";

/**
 * The result of a recall; `refused` means that a worker has taken the job since, that it does not wait any more, or, with
 * another payload, that its payload is not the one that was seen.
 */
export type RecallAnswer = "recalled" | "refused" | "missing";

/** What was counted of a redrive run. */
export interface RedriveCounts extends RedriveSums {
  /** The id of the run. */
  readonly id: string;
  /**
   * The same counts of its newest ticks of ten seconds that together have 100 first runs (good, same and other); of all
   * ticks where there are fewer.
   */
  readonly recent: RedriveSums;
}

/** What one write changes of redrive runs, added up by run. */
export class RedriveChanges {
  readonly #all = new Map<string, { -readonly [K in keyof RedriveSums]: number }>();

  /** Adds to the counts of a run; a letter that no run has sent is not counted. */
  add(redrive: string | null, counts: Partial<RedriveSums>): void {
    if (redrive === null) return;
    let sum = this.#all.get(redrive);
    if (!sum) this.#all.set(redrive, (sum = { ...NO_SUMS }));
    for (const count of REDRIVE_SUMS) sum[count] += counts[count] ?? 0;
  }

  /** The sums of each run of which any was counted. */
  all(): [string, RedriveSums][] {
    return [...this.#all].filter(([, sums]) => REDRIVE_SUMS.some((count) => sums[count] !== 0));
  }
}

/** Nothing counted. */
export const NO_SUMS: RedriveSums = Object.freeze(
  Object.fromEntries(REDRIVE_SUMS.map((count) => [count, 0])),
) as unknown as RedriveSums;

/** The start of the tick of an instant. */
export function redriveTickOf(at: number): number {
  return at - (at % REDRIVE_TICK);
}
