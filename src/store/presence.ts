// Workers as a store sees them: who is there, until when, and what those who are gone left behind.
import type { Job, Lease } from "../core/job.ts";

/** A worker that wants to take work. */
export interface NewWorker {
  readonly id: string;
  readonly leaseMs: number;
  readonly pid: number;
  readonly host: string;
  /** Version of the user's program, to tell who failed a job. */
  readonly release: string | null;
}

/** A sign of life. */
export interface Beat {
  readonly worker: string;
  readonly leaseMs: number;
  readonly startedThrough: number;
}

/** Whether the worker still is one, and which of its runs it was asked to cancel. */
export interface BeatAnswer {
  readonly alive: boolean;
  readonly cancel: readonly Lease[];
  readonly now: number;
}

/** A heartbeat that goes on by itself. */
export interface PulseRequest {
  readonly worker: string;
  readonly leaseMs: number;
  readonly everyMs: number;
  /** It pauses when the owner has not shown itself for this long, so that a loop that hangs for good loses its jobs. */
  readonly stallMs: number;
}

/** Hears the answers to a heartbeat. */
export interface PulseListener {
  answer(answer: BeatAnswer): void;
  failure(error: Error): void;
}

/** A heartbeat that was started. */
export interface Pulse {
  /** A sign of life from the owner's event loop, with its progress. */
  show(startedThrough: number): void;
  stop(): void;
}

/** Whom to give up: those whose lease has ended, and these, whose process is known to be gone. */
export interface ExpiredRequest {
  readonly gone: readonly string[];
  readonly limit: number;
  /** Go on behind this position, so that no run can hide another. */
  readonly after?: number;
  /**
   * Give up workers whose lease had ended by this store time; default now. A reaper names the time of its last look, so
   * that a request that was held up does not give up others who were held up as long.
   */
  readonly lapsedBy?: number;
  /** Only these of them; default all. A reaper names those that it may judge by their lease. */
  readonly late?: readonly string[];
}

/** A run in the hands of a worker that was given up. */
export interface ExpiredRun {
  /** Where it stands in the order of the list. */
  readonly position: number;
  readonly job: Job;
  readonly lease: Lease;
  readonly started: boolean;
  /** Its handler ran in a process of its own. Stores do not know it; workers tell one another. */
  readonly isOutside?: boolean;
}

/** Which runs take longer than they may. */
export interface OverdueRequest {
  readonly limit: number;
  /** Go on behind this position, so that no run can hide another. */
  readonly after?: number;
  /** Only runs that are over their limit by so much, to leave them to their worker first; default 0. */
  readonly byMs?: number;
  /** Runs that take longer than this, in place of their own limits, of which there need not be any. */
  readonly ranMs?: number;
  /** The limits of types, for jobs that were enqueued by the name of their type alone. */
  readonly named?: readonly { readonly type: string; readonly stuckMs: number }[];
}

/** A run that takes longer than it may. */
export interface OverdueRun extends ExpiredRun {
  /** How long it has been running, since its claim. */
  readonly ranMs: number;
}

/** A worker as people see it. */
export interface WorkerRecord extends Omit<NewWorker, "leaseMs"> {
  readonly leaseEnd: number;
  readonly startedAt: number;
  readonly beatAt: number;
  readonly givenUp: boolean;
  readonly running: number;
}
