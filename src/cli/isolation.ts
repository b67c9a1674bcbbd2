// Starts the child process for a job with its last crash left.
import { fileURLToPath } from "node:url";
import { runChild } from "../system/processes.ts";
import type { Isolation } from "../worker/isolation.ts";

/** What the child is told. */
export interface IsolatedTask {
  readonly store: string;
  readonly jobs: string;
  readonly worker: string;
  readonly lane: number;
  readonly control: number;
  readonly lease: number;
  readonly heartbeat: number;
}

/** Memory a child may use before it dies alone. */
const MEMORY_MB = 512;

/** The way to run a lane in a child, for a worker with this store and these jobs. */
export function childIsolation(options: {
  readonly store: string;
  readonly jobs: string;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
}): Isolation {
  const program = fileURLToPath(new URL("./isolated.js", import.meta.url));
  return ({ worker, lane, control, signal, stop }) => {
    const { store, jobs, leaseMs: lease, heartbeatMs: heartbeat } = options;
    const task: IsolatedTask = { store, jobs, worker, lane, control, lease, heartbeat };
    return runChild(program, [JSON.stringify(task)], { memoryMb: MEMORY_MB, signal, stop });
  };
}
