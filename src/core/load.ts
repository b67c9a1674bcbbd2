// What a worker tells about itself: what it serves and how much fits into its hands. A plain value, kept as JSON in a cell
// of the worker's own, so that a job can be asked why nobody takes it, and its runs can be judged by whoever knows no more
// of its type than the name.
import type { DeclaredLimits } from "./declared-limits.ts";

/** What a worker serves, and how much of it at a time. */
export interface WorkerLoad {
  readonly types: readonly ServedType[];
  /** Queues it serves; null for all. */
  readonly queues: readonly string[] | null;
  /** Slots it can use; those lost to handlers that ignore their abort are not among them. */
  readonly concurrency: number;
}

/** A job type that a worker has a handler for. */
export interface ServedType {
  readonly type: string;
  /** The queue of its new jobs. */
  readonly queue: string;
  /** How many of the type it runs at the same time; null for as many as fit. */
  readonly concurrency: number | null;
  /** How many jobs of the type one slot takes at most; absent where each takes its own. */
  readonly batch?: number;
  /** What its runs of jobs that were enqueued by name may take; absent where nobody said anything. */
  readonly limits?: DeclaredLimits;
  /** Its handler runs in a process of its own; absent where it does not. */
  readonly isOutside?: boolean;
}

/** The load of a text from the store; null for one that a program wrote which speaks otherwise. */
export function loadFrom(text: string): WorkerLoad | null {
  try {
    const value = JSON.parse(text) as WorkerLoad | null;
    const isLoad = Array.isArray(value?.types) && typeof value.concurrency === "number";
    return isLoad && (value.queues === null || Array.isArray(value.queues)) ? value : null;
  } catch {
    return null;
  }
}

/** The slots that so many running jobs take at the least, by how many of them are of which type: batches may be small. */
export function slotsTaken({ types }: WorkerLoad, running: number, ofType: ReadonlyMap<string, number>): number {
  return types.reduce((slots, { type, batch = 1 }) => {
    const together = Math.min(running, ofType.get(type) ?? 0);
    return slots - together + Math.ceil(together / batch);
  }, running);
}
