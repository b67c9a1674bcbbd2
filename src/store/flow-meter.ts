// Adds up what a process enqueues and runs, by type, and writes the sums at most once a second; a process that does
// nothing writes nothing. Separate from settles and enqueues, so that neither waits for it. A process that is killed
// takes at most its last second of counts with it.
import { FLOW_COUNTS, type FlowCounts } from "../core/flow.ts";
import type { System } from "../system/system.ts";
import type { Store } from "./store.ts";

/** Counts what a process does. */
export interface FlowMeter {
  /** Counts one job or one run of this type, with the times of the run in milliseconds. */
  add(type: string, count: Exclude<keyof FlowCounts, "runMs" | "waitMs">, runMs?: number, waitMs?: number): void;
  /** Writes what is left. */
  end(): Promise<void>;
}

/** How often sums are written at most. */
const EVERY_MS = 1_000;

type Sums = { -readonly [K in keyof FlowCounts]: number };

/** A meter for one process on a store. */
export function openFlowMeter(
  store: Pick<Store, "addFlow">,
  { monotonic, after, workerId }: Pick<System, "monotonic" | "after" | "workerId">,
): FlowMeter {
  const holder = workerId();
  let sums = new Map<string, Sums>();
  let writing: Promise<void> = Promise.resolve();
  let writtenMs = Number.NEGATIVE_INFINITY;
  /** Cancels the next write; null where none is planned. */
  let cancel: (() => void) | null = null;
  let isOver = false;
  const sumOf = (type: string): Sums => {
    const known = sums.get(type);
    if (known) return known;
    const fresh = { enqueued: 0, completed: 0, retried: 0, dead: 0, released: 0, runMs: 0, waitMs: 0 };
    sums.set(type, fresh);
    return fresh;
  };
  const write = (): void => {
    cancel?.();
    cancel = null;
    if (sums.size === 0) return;
    writtenMs = monotonic();
    const counts = [...sums].map(([type, { runMs, waitMs, ...rest }]) => {
      return { type, ...rest, runMs: Math.round(runMs), waitMs: Math.round(waitMs) };
    });
    sums = new Map();
    const putBack = (): void => {
      // With the next write: an outage is reported by those that need the store.
      for (const each of counts) for (const count of FLOW_COUNTS) sumOf(each.type)[count] += each[count];
      if (cancel === null && !isOver) plan();
    };
    writing = Promise.all([writing, store.addFlow({ holder, counts }).catch(putBack)]).then(() => undefined);
  };
  /** The first count goes at once, so that a process that ends after it is kept up by no timer. */
  const plan = (): void => {
    const leftMs = writtenMs + EVERY_MS - monotonic();
    if (leftMs > 0) cancel = after(leftMs, write);
    else {
      cancel = () => undefined;
      queueMicrotask(write);
    }
  };
  return {
    add(type, count, runMs = 0, waitMs = 0) {
      const sum = sumOf(type);
      sum[count] += 1;
      sum.runMs += runMs;
      sum.waitMs += waitMs;
      if (cancel === null) plan();
    },
    async end() {
      isOver = true;
      write();
      await writing;
    },
  };
}
