// Workers as a store sees them: which exist, until when, and which runs the dead ones left.
import type { Job, Lease } from "../core/job.ts";

/** A worker that registers to take work. */
export interface NewWorker {
  readonly id: string;
  readonly leaseMs: number;
  readonly pid: number;
  readonly host: string;
  /** Version of the user's program, to tell which version failed a job. */
  readonly release: string | null;
}

/** A heartbeat. */
export interface Beat {
  readonly worker: string;
  readonly leaseMs: number;
  readonly startedThrough: number;
}

/** Whether the worker is still registered, and which of its runs it must cancel. */
export interface BeatAnswer {
  readonly alive: boolean;
  readonly cancel: readonly Lease[];
  readonly now: number;
}

/** A heartbeat that repeats by itself. */
export interface PulseRequest {
  readonly worker: string;
  readonly leaseMs: number;
  readonly everyMs: number;
  /** It pauses when the owner has not shown itself for this long, so that a permanently blocked loop loses its jobs. */
  readonly stallMs: number;
}

/** Receives the answers to a heartbeat. */
export interface PulseListener {
  answer(answer: BeatAnswer): void;
  failure(error: Error): void;
}

/** A heartbeat that was started. */
export interface Pulse {
  /** Shows that the owner's event loop is alive, with its progress. */
  show(startedThrough: number): void;
  stop(): void;
}

/** Which workers to give up: those whose lease has ended, and the named ones, whose process is known to be gone. */
export interface ExpiredRequest {
  readonly gone: readonly string[];
  readonly limit: number;
  /** Continue after this position, so that no run can hide another. */
  readonly after?: number;
  /**
   * Give up workers whose lease had ended by this store time; default now. A reaper passes the time of its last look,
   * so that a delayed request does not give up workers that were delayed as long.
   */
  readonly lapsedBy?: number;
  /** Only these of them; default all. A reaper names those that it may judge by their lease. */
  readonly late?: readonly string[];
}

/** A run that a given-up worker holds. */
export interface ExpiredRun {
  /** Its position in the order of the list. */
  readonly position: number;
  readonly job: Job;
  readonly lease: Lease;
  readonly started: boolean;
  /** Its handler ran in a child process. Stores do not know this; workers publish it. */
  readonly isOutside?: boolean;
}

/** Which runs exceed a limit. */
export interface OverdueRequest {
  readonly limit: number;
  /** Continue after this position, so that no run can hide another. */
  readonly after?: number;
  /** Only runs that exceed their limit by so much, to leave them to their worker first; default 0. */
  readonly byMs?: number;
  /** Runs that take longer than this, instead of their own limits, which need not exist. */
  readonly ranMs?: number;
  /** The limits of types, for jobs enqueued by type name, without the definition. */
  readonly named?: readonly { readonly type: string; readonly stuckMs: number }[];
}

/** A run that exceeds a limit. */
export interface OverdueRun extends ExpiredRun {
  /** How long it has been running, since its claim. */
  readonly ranMs: number;
}

/** A worker as shown to people. */
export interface WorkerRecord extends Omit<NewWorker, "leaseMs"> {
  readonly leaseEnd: number;
  readonly startedAt: number;
  readonly beatAt: number;
  readonly givenUp: boolean;
  readonly running: number;
}
