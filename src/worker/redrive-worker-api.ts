// A worker as users of the library see it: what they say about it, and what it answers. The root puts it together.
import type { Duration } from "../core/duration.ts";
import type { WorkerCounts } from "../report/reporter.ts";
import type { Isolation } from "./isolation.ts";
import type { WorkerOptions, WorkerSettings } from "./settings.ts";

/** What users write about a worker; durations as `"5s"` or milliseconds. */
export interface RedriveWorkerOptions extends WorkerOptions {
  /** Opens a port that answers `/live` and `/ready`; 0 lets the system choose. Default none. */
  readonly health?: { readonly port: number; readonly host?: string };
  /**
   * A file to which dead letters of the types defined here are appended before their retention deletes them; workers
   * without it leave those letters alone. Default none.
   */
  readonly archive?: string;
  /**
   * The file that exports these job definitions. With it, a job with its last crash left runs in a process of its own,
   * and its death leaves evidence; without it, such a job runs alone in this process. Needs a store given by its URL.
   * Middleware and defaults of this program do not reach that process.
   */
  readonly jobsFile?: string;
  /** How such a process is started, in place of `jobsFile`. */
  readonly isolation?: (settings: WorkerSettings) => Isolation;
}

/** A worker. Nothing happens before `start` or `drain`; one that has stopped refuses both with `closed`. */
export interface RedriveWorker extends AsyncDisposable {
  /** Its present id; a worker that was given up comes back under a new one. */
  readonly id: string;
  /** What it has done so far. */
  readonly counts: Readonly<WorkerCounts>;
  /** The health port, once it is open. */
  readonly healthPort: number | null;
  /** In contact with the store and taking work. */
  readonly isReady: boolean;
  /** Half of its slots are lost to handlers that ignore their abort; the process should be replaced. */
  readonly isSpent: boolean;
  start(): Promise<void>;
  /** Stops claiming, lets runs finish within the time (default 25 s), then aborts and releases them uncharged. */
  stop(options?: { readonly within?: Duration }): Promise<void>;
  /** Works until nothing is held, nothing is due and nothing falls due within the grace (default 1 s); then stops. */
  drain(options?: { readonly grace?: Duration }): Promise<WorkerCounts>;
}
