// Starts the child process for a job with one crash left. The child's program loads job files in the same way as the
// command line.
import { fileURLToPath } from "node:url";
import type { Outcome } from "./core/verdict.ts";
import { runChild } from "./system/processes.ts";
import type { Isolation } from "./worker/isolation.ts";
import { resolveWorker } from "./worker/settings.ts";

/** What the child is told. */
export interface IsolationOptions {
  readonly store: string;
  /** Files with job definitions. */
  readonly jobs: string | readonly string[];
  /** The config file whose defaults apply; none where absent. */
  readonly config?: string | null;
  /** The command whose retry settings in the environment apply; none where absent. */
  readonly environment?: "worker" | "drain" | null;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  readonly stallMs?: number;
  readonly abortGraceMs?: number;
  readonly release?: string | null;
}

/** The task of the child. */
export interface IsolatedTask extends IsolationOptions {
  readonly worker: string;
  readonly lane: number;
  readonly control: number;
  readonly held: Outcome | null;
}

/** Memory that a child may use before it dies alone. */
const MEMORY_MB = 512;

/**
 * Once its worker was killed, a child aborts its handler, waits for it, and writes the verdict about the job. It has
 * this long for the write; then it is killed, because a handler that blocks the thread would prevent all of this.
 */
const LAST_WRITE_MS = 5_000;

/** Runs a lane in a child, for a worker with this store and these jobs. */
export function childIsolation(options: IsolationOptions): Isolation {
  const program = fileURLToPath(new URL("./isolated-child.js", import.meta.url));
  const killAfterMs = (options.abortGraceMs ?? resolveWorker({}).abortGraceMs) + LAST_WRITE_MS;
  return ({ worker, lane, control, held, signal, stop }) => {
    const task: IsolatedTask = { ...options, worker, lane, control, held };
    return runChild(program, { memoryMb: MEMORY_MB, killAfterMs, task, signal, stop });
  };
}
