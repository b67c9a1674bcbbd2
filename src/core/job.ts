// The vocabulary of a job: its states, its fields, its lease, and what a bad run leaves behind.
// Types and a few constants only; whoever wants to know what a word means looks here.

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
/** What kind of failure a bad run was. */
export type FailureClass = (typeof FAILURE_CLASSES)[number];

/** How much a failure matters to people; shared with logs and alerts. */
export type Severity = "info" | "warning" | "error" | "critical";

/** What a bad run left behind; plain data, made from anything thrown by `failureFrom`. */
export interface Failure {
  readonly class: FailureClass;
  readonly severity: Severity;
  readonly name: string;
  readonly message: string;
  readonly stack: string | null;
  /** Equal for failures of one cause. */
  readonly fingerprint: string;
  /** The delay the other side asked for, in milliseconds, where it did. */
  readonly retryAfterMs?: number;
  /** The delay its handler asked for, for this job alone; it counts instead of what the other side asked for. */
  readonly delayMs?: number;
  /** Machine-readable code where there was one: `ECONNRESET`, `429`, `SIGKILL`. */
  readonly code?: string;
}

/** Why a job died. */
export const DEATH_REASONS = ["exhausted", "permanent", "deadline", "stuck", "crashed", "breaker", "manual"] as const;
/** One of `DEATH_REASONS`. */
export type DeathReason = (typeof DEATH_REASONS)[number];

/** The right to run a job; every write about a run carries it and is refused if it is not the current one. */
export interface Lease {
  readonly id: string;
  /** Grows by one per claim and never falls. */
  readonly epoch: number;
  /** 128 random bits of the claim, as hexadecimal text. */
  readonly nonce: string;
}

/** The limits stored on every job, so that a process that does not know its type can still judge it. */
export interface JobLimits {
  /** Runs that may end badly before the job dies, the first one included. */
  readonly maxAttempts: number;
  /** Worker deaths the job may be part of before it dies. */
  readonly maxCrashes: number;
  /** Time over all attempts, counted from the first due time; null for none. */
  readonly deadlineMs: number | null;
  /** A run longer than this is given up; null for never. */
  readonly stuckMs: number | null;
  /** The wait after a stuck run; null for that of the backoff. */
  readonly stuckRetryMs: number | null;
  /** Retries after stuck runs before the job dies; null for as many as there are attempts. */
  readonly stuckLimit: number | null;
  /**
   * These limits were said, by the definition of the type or by whoever enqueued the job. False where only the name of the
   * type was known: then they are defaults, and a worker that knows the type goes by what the type says, and writes that
   * down with its verdict.
   */
  readonly limited: boolean;
}

/** How long a job is kept once it has ended; null where only the name of its type was known, until a judge says it. */
export interface JobKeep {
  /** After it completed or was cancelled. */
  readonly keepFinishedMs: number | null;
  /** After it died. */
  readonly keepDeadMs: number | null;
}

/** What a run was judged by. */
export type Terms = Omit<JobLimits, "limited"> & JobKeep;

/** The last instant that a date can name. */
export const LATEST_INSTANT = 8_640_000_000_000_000;

/** What a job belongs to; interned to one lane at enqueue. */
export interface Belonging {
  readonly type: string;
  readonly queue: string;
  readonly service: string | null;
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
  readonly id: string;
  readonly key: string | null;
  readonly state: State;
  /** JSON text, byte for byte as it was enqueued. */
  readonly payload: string;
  /** The version of the payload's form, as whoever enqueued it knew it. */
  readonly version: number;
  readonly runAt: number;
  /** The first due time; deadlines count from here. */
  readonly dueAt: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  /**
   * When retention deletes it: null before it has ended, and as long as nobody has said how long it is kept;
   * `LATEST_INSTANT` for a dead one that is over and goes only through an archive.
   */
  readonly expiresAt: number | null;
  readonly attempts: number;
  readonly crashes: number;
  /** Times the job was handed back uncharged. */
  readonly releases: number;
  /** Grows by one at every redrive. */
  readonly generation: number;
  readonly epoch: number;
  /** The worker that runs it, or ran it last. */
  readonly worker: string | null;
  readonly cancelRequested: boolean;
  /** The delay before the current try, in milliseconds; decorrelated jitter continues from it. */
  readonly lastDelayMs: number;
  /** How many jobs a batch may have at most that this one is run in, after one of unknown outcome; null for no limit. */
  readonly batchMost: number | null;
  /** JSON text of what the run last said about its progress. */
  readonly progress: string | null;
  /** JSON text of what the handler returned. */
  readonly result: string | null;
  readonly failure: Failure | null;
}

/** One bad run in the history of a job. */
export interface AttemptRecord {
  readonly jobId: string;
  readonly generation: number;
  readonly epoch: number;
  /** Attempts charged when the run ended; a run that was not charged repeats the number before it. */
  readonly attempt: number;
  readonly worker: string | null;
  readonly startedAt: number | null;
  readonly endedAt: number;
  /** The wait that followed; null after the last run. */
  readonly delayMs: number | null;
  readonly failure: Failure;
}

/** The record of a death; a redriven one stays as history. */
export interface DeadLetter {
  readonly job: Job;
  readonly generation: number;
  readonly reason: DeathReason;
  readonly failure: Failure;
  readonly attempts: number;
  readonly crashes: number;
  readonly diedAt: number;
  readonly redrivenAt: number | null;
}
