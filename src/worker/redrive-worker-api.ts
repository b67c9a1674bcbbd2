// A worker as users of the library see it: its options and its methods. The root composes it.
import type { Duration } from "../core/duration.ts";
import type { WorkerCounts } from "../report/reporter.ts";
import type { Isolation } from "./isolation.ts";
import type { WorkerOptions, WorkerSettings } from "./settings.ts";

/** Options of a worker in your program; durations as `"5s"` or milliseconds. */
export interface RedriveWorkerOptions extends WorkerOptions {
  /**
   * Opens an HTTP port that answers `/live`, `/ready` and `/metrics`, on this host only unless `host` is given; port 0
   * lets the system choose. With `metricsToken`, a text of up to 255 bytes, `/metrics` wants it as a bearer token; without
   * it, `/metrics` is served on loopback addresses only. Default none.
   */
  readonly health?: { readonly port: number; readonly host?: string; readonly metricsToken?: string };
  /**
   * A file to which dead letters of the types defined here are appended before retention deletes them; workers without
   * it leave those letters alone. Default none.
   */
  readonly archive?: string;
  /**
   * The file that exports these job definitions. With it, a job that has one crash left runs in a child process;
   * without it, such a job runs alone in this process. Needs a store given by its URL. Middleware and defaults of this
   * program do not reach that process. Default none.
   */
  readonly jobsFile?: string;
  /** Starts such a process in your own way, instead of `jobsFile`; default none. */
  readonly isolation?: (settings: WorkerSettings) => Isolation;
}

/** A worker. Nothing happens before `start` or `drain`; one that has stopped refuses both with `closed`. */
export interface RedriveWorker extends AsyncDisposable {
  /** Its present id; a worker that the fleet gave up comes back under a new one. */
  readonly id: string;
  /** What it has done so far. */
  readonly counts: Readonly<WorkerCounts>;
  /** The port of `health`, once it is open; null without one. */
  readonly healthPort: number | null;
  /** True while it is in contact with the store and takes work. */
  readonly isReady: boolean;
  /** True when half of its slots are lost to handlers that ignore their abort signal: replace the process. */
  readonly isSpent: boolean;
  /** Registers the worker and begins to take jobs; resolves once it is registered. */
  start(): Promise<void>;
  /**
   * Takes no more jobs, lets runs finish within the time (default 25 s), then aborts them and hands them back without
   * using an attempt.
   */
  stop(options?: { readonly within?: Duration }): Promise<void>;
  /**
   * Works until it holds no job, none is due, and none falls due within the grace (default 1 s); then stops and answers
   * its counts.
   */
  drain(options?: { readonly grace?: Duration }): Promise<WorkerCounts>;
}
