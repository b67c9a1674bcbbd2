// What became of jobs that were sent back to work: the outcome that is written to their dead letter, and what is counted
// of the redrive run that sent them.
//
// what ended                    | outcome of the letter | counted, if it was null | counted, if it was failing
// a run completed the job       | completed             | good                    | recovered
// a failed run, charged         | failing               | same or other           | -
// the job died                  | dead                  | same or other, and dead | dead
// the job was cancelled         | cancelled             | cancelled               | -
// a failed run, and a cancel    | cancelled             | same or other           | -
// a run was handed back         | as it was             | -                       | -
//
// So the jobs sent are always good + same + other + cancelled + gone + recalled + those that are pending.
import type { Job, LetterOutcome, State } from "../job.ts";
import type { Verdict } from "../verdict.ts";

/** What is counted of a redrive run. */
export interface RedriveSums {
  /** Jobs that were sent back to work. */
  readonly sent: number;
  /** Completed in their first run. */
  readonly good: number;
  /** Their first run failed by the cause of their dead letter. */
  readonly same: number;
  /** Their first run failed otherwise. */
  readonly other: number;
  /** Completed after a run had failed. */
  readonly recovered: number;
  /** Died again. */
  readonly dead: number;
  /** Cancelled before their first run had ended. */
  readonly cancelled: number;
  /** Deleted before an outcome was known. */
  readonly gone: number;
  /** Taken back before a worker took them. */
  readonly recalled: number;
}

/** Their names, in the order of the columns. */
export const REDRIVE_SUMS = [
  "sent",
  "good",
  "same",
  "other",
  "recovered",
  "dead",
  "cancelled",
  "gone",
  "recalled",
] as const satisfies readonly (keyof RedriveSums)[];

/** The length of a tick of a redrive run, in milliseconds. */
export const REDRIVE_TICK = 10_000;

/** How many first runs the newest ticks must have for a judgement of what was sent last. */
export const RECENT_RUNS = 100;

/** The end of a run, or of a waiting job, as its dead letter sees it. */
export interface RedrivenEnd {
  /** The state of the job now. */
  readonly state: State;
  /** The fingerprint of the failure, where a run failed and was charged, or the job died; else null. */
  readonly failed: string | null;
}

/** A new outcome and what to count; null where nothing changes. */
export interface OutcomeChange {
  readonly outcome: LetterOutcome;
  readonly counts: Partial<RedriveSums>;
}

/** The outcome of a letter after its job has ended, or a run of it has failed. */
export function outcomeAfter(
  letter: { readonly outcome: LetterOutcome | null; readonly fingerprint: string },
  { state, failed }: RedrivenEnd,
): OutcomeChange | null {
  const isFirst = letter.outcome === null;
  const first: Partial<RedriveSums> =
    isFirst && failed !== null ? (failed === letter.fingerprint ? { same: 1 } : { other: 1 }) : {};
  if (state === "completed") return { outcome: "completed", counts: isFirst ? { good: 1 } : { recovered: 1 } };
  if (state === "dead") return { outcome: "dead", counts: { ...first, dead: 1 } };
  if (state === "cancelled")
    return { outcome: "cancelled", counts: isFirst && failed === null ? { cancelled: 1 } : first };
  return isFirst && failed !== null ? { outcome: "failing", counts: first } : null;
}

/** The fingerprint of a run that failed and was charged, or with which its job died; null for any other verdict. */
export function failedBy(verdict: Verdict | { readonly kind: "progress" }): string | null {
  if (verdict.kind === "dead") return verdict.failure.fingerprint;
  if (verdict.kind !== "retry" || verdict.charge.attempts + verdict.charge.crashes === 0) return null;
  return verdict.failure.fingerprint;
}

/**
 * True if a job that was sent back to work may be recalled to the letter of this generation: no worker has taken it since.
 * A run that was handed back leaves a release, and any other that ended leaves a record, so that `hasRun` is true.
 */
export function mayRecall(
  job: Pick<Job, "state" | "generation" | "releases">,
  letterGeneration: number,
  hasRun: boolean,
): boolean {
  return job.state === "queued" && job.generation === letterGeneration + 1 && job.releases === 0 && !hasRun;
}
