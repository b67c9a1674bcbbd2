// The vocabulary of a job: its states, its fields, its lease, and the record of a failed run. Types and a few constants
// only; every term is defined here.

/** The states that are stored. `scheduled`, `retrying`, `parked` and `paused` are derived when read. */
export const STATES = ["queued", "running", "completed", "dead", "cancelled"] as const;
/** A stored state of a job. */
export type State = (typeof STATES)[number];

/** Failure classes, in the order of the documentation: retried ones, final ones, and those the runtime finds. */
export const FAILURE_CLASSES = [
  "transient",
  "rate_limited",
  "network",
  "system",
  "permanent",
  "validation",
  "authentication",
  "timeout",
  "stuck",
  "crashed",
] as const;
/** What kind of failure a failed run was. */
export type FailureClass = (typeof FAILURE_CLASSES)[number];

/** How much a failure matters to people; shared with logs and alerts. */
export type Severity = "info" | "warning" | "error" | "critical";

/** The failure that a run left, as plain data. */
export interface Failure {
  /** What kind of failure it is; it decides about a retry. */
  readonly class: FailureClass;
  /** How much it matters to people. */
  readonly severity: Severity;
  /** The error's name, e.g. `TypeError`. */
  readonly name: string;
  /** The error's message. */
  readonly message: string;
  /** Its stack trace; null without one. */
  readonly stack: string | null;
  /** A text that is equal for failures of one cause. */
  readonly fingerprint: string;
  /** The delay that the service asked for (`Retry-After`). */
  readonly retryAfterMs?: number;
  /** The delay that the handler asked for, for this job alone; it counts instead of `retryAfterMs`. */
  readonly delayMs?: number;
  /** A code for programs where the error had one: `ECONNRESET`, `429`, `SIGKILL`. */
  readonly code?: string;
}

/** Why a job died. */
export const DEATH_REASONS = ["exhausted", "permanent", "deadline", "stuck", "crashed", "breaker", "manual"] as const;
/** One of `DEATH_REASONS`. */
export type DeathReason = (typeof DEATH_REASONS)[number];

/**
 * What became of a job that was sent back to work: `failing` when its first run failed, until it ends; `recalled` when it
 * was taken back before a worker took it.
 */
export const LETTER_OUTCOMES = ["completed", "failing", "dead", "cancelled", "recalled"] as const;
/** One of `LETTER_OUTCOMES`. */
export type LetterOutcome = (typeof LETTER_OUTCOMES)[number];

/**
 * The right to run a job. Every write about a run carries its lease, and the store refuses it if a newer one exists.
 */
export interface Lease {
  /** The id of the job. */
  readonly id: string;
  /** Grows by one per claim and never falls. */
  readonly epoch: number;
  /** 128 random bits of the claim, as hexadecimal text. */
  readonly nonce: string;
}

/** The limits stored on every job, so that a process that does not know its type can still judge it. */
export interface JobLimits {
  /** Attempts in all, the first one included. */
  readonly maxAttempts: number;
  /** Worker deaths the job may be part of before it dies. */
  readonly maxCrashes: number;
  /** Time over all attempts, counted from the first due time; null for none. */
  readonly deadlineMs: number | null;
  /** A run longer than this is ended as stuck; null for never. */
  readonly stuckMs: number | null;
  /** The wait after a stuck run; null for that of the backoff. */
  readonly stuckRetryMs: number | null;
  /** Retries after stuck runs before the job dies; null for as many as there are attempts. */
  readonly stuckLimit: number | null;
  /**
   * True if the definition of the type or the producer set these limits. False if the producer knew only the name of
   * the type: then they are defaults, and a worker that defines the type judges by its limits and writes them to the
   * job.
   */
  readonly limited: boolean;
}

/** How long a job is kept once it has ended; null where only the name of its type was known, until a judge says it. */
export interface JobKeep {
  /** How long it is kept after it completed or was cancelled. */
  readonly keepFinishedMs: number | null;
  /** How long it is kept after it died. */
  readonly keepDeadMs: number | null;
}

/** The terms by which a run is judged, and how long its job is kept afterwards. */
export type Terms = Omit<JobLimits, "limited"> & JobKeep;

/** The facts about one term. */
export interface TermFacts {
  /** Its name among the options of a job. */
  readonly option: string;
  readonly least: number;
  readonly most: number;
  /** Its value where nothing sets it. */
  readonly usual: number | null;
  /** Null means no limit. */
  readonly mayBeNull: boolean;
  /** Reads it from a job; a function, because a property whose name is in a variable is slow to read. */
  readonly of: (terms: Terms) => number | null;
}

const DAY_MS = 86_400_000;
const TEN_YEARS_MS = 10 * 366 * DAY_MS;
const KEEP_MOST_MS = 36_500 * DAY_MS;
const NONE = { usual: null, mayBeNull: true } as const;

/** Every term once: options, checks, defaults, columns of the stores and the values written with a verdict follow from here. */
export const TERMS = {
  maxAttempts: { option: "maxAttempts", least: 1, most: 10_000, usual: 10, mayBeNull: false, of: (t) => t.maxAttempts },
  maxCrashes: { option: "maxCrashes", least: 1, most: 1_000, usual: 3, mayBeNull: false, of: (t) => t.maxCrashes },
  deadlineMs: { option: "deadline", least: 1, most: TEN_YEARS_MS, ...NONE, of: (t) => t.deadlineMs },
  stuckMs: { option: "stuck.after", least: 1, most: TEN_YEARS_MS, ...NONE, of: (t) => t.stuckMs },
  stuckRetryMs: { option: "stuck.retryAfter", least: 0, most: 7 * DAY_MS, ...NONE, of: (t) => t.stuckRetryMs },
  stuckLimit: { option: "stuck.limit", least: 0, most: 9_999, ...NONE, of: (t) => t.stuckLimit },
  keepFinishedMs: {
    option: "keep.finished",
    least: 0,
    most: KEEP_MOST_MS,
    usual: DAY_MS,
    mayBeNull: true,
    of: (t) => t.keepFinishedMs,
  },
  keepDeadMs: {
    option: "keep.dead",
    least: 0,
    most: KEEP_MOST_MS,
    usual: 7 * DAY_MS,
    mayBeNull: true,
    of: (t) => t.keepDeadMs,
  },
} as const satisfies Readonly<Record<keyof Terms, TermFacts>>;

/** The names of the terms. */
export const TERM_NAMES = Object.keys(TERMS) as (keyof Terms)[];
/** The terms that say how long a job is kept. */
export const KEEP_NAMES: readonly (keyof JobKeep)[] = ["keepFinishedMs", "keepDeadMs"];
/** The terms that limit its runs. */
export const LIMIT_NAMES = TERM_NAMES.filter((name) => !KEEP_NAMES.some((keep) => keep === name)) as Exclude<
  keyof Terms,
  keyof JobKeep
>[];

/** The terms where nothing sets them. */
export const USUAL_TERMS = Object.freeze(
  Object.fromEntries(TERM_NAMES.map((name) => [name, TERMS[name].usual])),
) as unknown as Terms & { readonly [K in keyof JobKeep]: number };

/** The terms of a job or a policy, without its other fields. */
export function termsOf(carrier: Terms): Terms {
  return Object.fromEntries(TERM_NAMES.map((name) => [name, carrier[name]])) as unknown as Terms;
}

/** Reads each term of a job, in the order of their names. */
export const TERM_READERS: readonly ((terms: Terms) => number | null)[] = TERM_NAMES.map((name) => TERMS[name].of);

/** Puts terms into a job; by name, because that takes a tenth of the time of a loop. */
export function putTerms(job: { -readonly [T in keyof Terms]: Terms[T] }, terms: Terms): void {
  job.maxAttempts = terms.maxAttempts;
  job.maxCrashes = terms.maxCrashes;
  job.deadlineMs = terms.deadlineMs;
  job.stuckMs = terms.stuckMs;
  job.stuckRetryMs = terms.stuckRetryMs;
  job.stuckLimit = terms.stuckLimit;
  job.keepFinishedMs = terms.keepFinishedMs;
  job.keepDeadMs = terms.keepDeadMs;
}

/** True if runs of both jobs are judged by the same terms. */
export function hasSameTerms(a: Terms, b: Terms): boolean {
  return TERM_READERS.every((of) => of(a) === of(b));
}

/** The last instant that a Date can represent. */
export const LATEST_INSTANT = 8_640_000_000_000_000;

/** What a job belongs to; interned to one lane at enqueue. */
export interface Belonging {
  /** The name of the job type. */
  readonly type: string;
  /** Its queue. */
  readonly queue: string;
  /** The service it depends on; null for none. */
  readonly service: string | null;
  /** The tenant it belongs to; null for none. */
  readonly tenant: string | null;
  /** Jobs of one type and group take turns; null for none. */
  readonly group: string | null;
  /** How many of the group may run at the same time, 1 for one after the other in order; null without a group. */
  readonly groupConcurrency: number | null;
  /** 0 to 9, higher first. */
  readonly priority: number;
}

/** A job as stores return it. Times are epoch milliseconds by the store's clock. */
export interface Job extends Belonging, JobLimits, JobKeep {
  /** Its id. */
  readonly id: string;
  /** The key it was enqueued with; null without one. */
  readonly key: string | null;
  /** Its stored state. */
  readonly state: State;
  /** JSON text of the input, byte for byte as it was enqueued. */
  readonly payload: string;
  /** The version of the payload's form, as the producer knew it. */
  readonly version: number;
  /** When it is or was due next. */
  readonly runAt: number;
  /** The first due time; deadlines count from here. */
  readonly dueAt: number;
  /** When it was enqueued. */
  readonly createdAt: number;
  /** When it last changed. */
  readonly updatedAt: number;
  /** When its present or last run started; null before the first. */
  readonly startedAt: number | null;
  /** When it completed, died or was cancelled; null before. */
  readonly finishedAt: number | null;
  /**
   * When retention deletes it; null before it has ended, and while it is not known how long it is kept.
   * `LATEST_INSTANT` (8,640,000,000,000,000) for a dead job past its retention that waits for a worker with `archive`.
   */
  readonly expiresAt: number | null;
  /** Attempts used, in this generation. */
  readonly attempts: number;
  /** Worker deaths it was part of, in this generation. */
  readonly crashes: number;
  /** Times it was handed back without using an attempt. */
  readonly releases: number;
  /** 1 when enqueued; each redrive adds one. */
  readonly generation: number;
  /** The epoch of its present or last lease. */
  readonly epoch: number;
  /** The worker that runs it, or ran it last. */
  readonly worker: string | null;
  /** True if it runs and was asked to stop. */
  readonly cancelRequested: boolean;
  /** The delay before the current attempt; decorrelated jitter continues from it. */
  readonly lastDelayMs: number;
  /** The largest batch it may run in, after a batch of unknown outcome; null for no limit. */
  readonly batchMost: number | null;
  /**
   * The trace context of the enqueue, as W3C `traceparent` text; null without one, and where a Redrive with schema
   * version 2 enqueued it. `core/trace.ts` says how it is read.
   */
  readonly trace: string | null;
  /** JSON text of what its run last stored with `context.progress`; null for nothing. */
  readonly progress: string | null;
  /** JSON text of what the handler returned; null before it completed. */
  readonly result: string | null;
  /**
   * What its last failed run of this generation left; null if none failed. A dead job that was sent back and recalled has
   * the failure it died of. Failures of earlier generations are in its history and its dead letters.
   */
  readonly failure: Failure | null;
}

/** One failed run in the history of a job. */
export interface AttemptRecord {
  /** The id of the job. */
  readonly jobId: string;
  /** The key of the job; null without one. */
  readonly key: string | null;
  /** The generation of the job then. */
  readonly generation: number;
  /** The epoch of the lease of the run. */
  readonly epoch: number;
  /** Attempts used once the run had ended; a run that used none repeats the number before it. */
  readonly attempt: number;
  /** The worker that ran it; null if that is not known. */
  readonly worker: string | null;
  /** The release of that worker; null if it has none, or if a Redrive with schema version 1 wrote the record. */
  readonly release: string | null;
  /** When the run started; null if it did not. */
  readonly startedAt: number | null;
  /** When it ended. */
  readonly endedAt: number;
  /** The wait that followed; null after the last run. */
  readonly delayMs: number | null;
  /** What went wrong. */
  readonly failure: Failure;
}

/** The record of a death; it stays as history when the job is sent back to work. */
export interface DeadLetter {
  /** The job as it is now. */
  readonly job: Job;
  /** The generation that died. */
  readonly generation: number;
  /** Why it died. */
  readonly reason: DeathReason;
  /** What went wrong in the end. */
  readonly failure: Failure;
  /** Attempts used until then. */
  readonly attempts: number;
  /** Worker deaths it was part of until then. */
  readonly crashes: number;
  /** The release of the worker that ran it last; null as in `AttemptRecord`, and for a job that no worker ran. */
  readonly release: string | null;
  /** When it died. */
  readonly diedAt: number;
  /** When it was sent back to work; null if it was not. */
  readonly redrivenAt: number | null;
  /** The id of the redrive run that sent it back; null if none did. */
  readonly redrive: string | null;
  /** What became of the job since; null until its first run has ended, and where a Redrive with schema version 1 ran it. */
  readonly outcome: LetterOutcome | null;
  /** When that was written. */
  readonly outcomeAt: number | null;
  /** The job that now holds its type and key, where that is another; null without a key. The state is null once it is deleted. */
  readonly supersededBy: { readonly id: string; readonly state: State | null } | null;
}
