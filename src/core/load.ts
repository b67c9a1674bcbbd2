// What a worker publishes about itself: what it serves and how many slots it has. A plain value, stored as JSON in the
// worker's cell. `jobs explain` reads it to tell why no worker takes a job, and processes that know only the name of a
// type judge runs by it.
import { fieldsFrom } from "./options.ts";
import type { DeclaredLimits } from "./declared-limits.ts";

/** What a worker serves, and how much of it at a time. */
export interface WorkerLoad {
  readonly types: readonly ServedType[];
  /** Queues it serves; null for all. */
  readonly queues: readonly string[] | null;
  /** Slots it can use, without those lost to handlers that ignore their abort signal. */
  readonly concurrency: number;
}

/** A job type that a worker has a handler for. */
export interface ServedType {
  readonly type: string;
  /** The queue of its new jobs. */
  readonly queue: string;
  /** How many jobs of the type it runs at the same time; null for no limit. */
  readonly concurrency: number | null;
  /** Most jobs of the type in one slot; absent where each job takes a slot. */
  readonly batch?: number;
  /** The declared limits of the type, for jobs enqueued by name; absent where none are declared. */
  readonly limits?: DeclaredLimits;
  /** True if its handler runs in a child process; absent otherwise. */
  readonly isOutside?: boolean;
}

/** Reads a load from a stored text; null for a text that another version wrote in another form. */
export function loadFrom(text: string): WorkerLoad | null {
  const value = fieldsFrom(text) as unknown as WorkerLoad;
  const isLoad = Array.isArray(value.types) && typeof value.concurrency === "number";
  return isLoad && (value.queues === null || Array.isArray(value.queues)) ? value : null;
}

/** The least number of slots that so many running jobs take, by how many are of which type; batches may be small. */
export function slotsTaken({ types }: WorkerLoad, running: number, ofType: ReadonlyMap<string, number>): number {
  return types.reduce((slots, { type, batch = 1 }) => {
    const together = Math.min(running, ofType.get(type) ?? 0);
    return slots - together + Math.ceil(together / batch);
  }, running);
}
