// Every failure that a store keeps, in pages, and the rewriting of their fingerprints: what upkeep needs when the rules
// of fingerprints have changed. A failure is kept with the job (its last), in the history and in dead letters.
import { ofGeneration } from "./columns.ts";
import type { Failure } from "../core/job.ts";
import type { Value } from "./columns.ts";
import { failureFromText } from "./rows.ts";

/** Where a failure is kept. */
export const FAILURE_PLACES = ["job", "attempt", "letter"] as const;

/** The address of a failure. */
export interface FailurePlace {
  readonly of: (typeof FAILURE_PLACES)[number];
  /** The number of its job. */
  readonly seq: number;
  /** The epoch of the run for one of the history, the generation for one of a dead letter, else 0. */
  readonly at: number;
}

/** A failure and where it is kept. */
export interface KeptFailure extends FailurePlace {
  readonly failure: Failure;
}

/** Which failures to read. */
export interface FailureQuery {
  /** The `next` of the page before; 0 to begin. */
  readonly after: number;
  /** How many jobs to read; all failures of a job are on one page. */
  readonly limit: number;
}

/** A page of failures, and where to continue; null when all were read. */
export interface FailurePage {
  readonly items: readonly KeptFailure[];
  readonly next: number | null;
}

/** A fingerprint to be written, if the one that stands there is still the one that was read. */
export interface NewFingerprint extends FailurePlace {
  readonly was: string;
  readonly fingerprint: string;
}

/** A failure from the row place, number, epoch or generation, text, stack. */
export function keptFailureFromRow([of, seq, at, text, stack]: readonly Value[]): KeptFailure {
  const failure = failureFromText(text as string, stack as string | null) as Failure;
  return { of: of as FailurePlace["of"], seq: seq as number, at: at as number, failure };
}

/**
 * The fingerprint as it stands in the text of a failure. It stands there once: quotes inside of a value are escaped, so
 * no message can hold it.
 */
export function fingerprintText(fingerprint: string): string {
  return `"fingerprint":${JSON.stringify(fingerprint)}`;
}

/** The query for the failures of the jobs after one number up to another; `prefix` is the schema with its dot. */
export function failuresText(prefix: string, from: string, to: string): string {
  const range = (column: string): string => `${column} > ${from} and ${column} <= ${to}`;
  // What a redrive has left behind is not shown, and stays as it is.
  const own = ofGeneration("j", `${prefix}attempt`, "failure");
  const stack = `(select a.error_stack from ${prefix}attempt a where a.job_seq = j.seq order by a.epoch desc limit 1)`;
  return `select 'job', j.seq, 0, j.failure, ${stack} from ${prefix}job j where ${range("j.seq")} and ${own} is not null
    union all select 'attempt', job_seq, epoch, failure, error_stack from ${prefix}attempt where ${range("job_seq")}
    union all select 'letter', job_seq, generation, failure, error_stack from ${prefix}dead_letter where ${range("job_seq")}`;
}
