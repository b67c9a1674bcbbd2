// Batch types for tests: they note what they are called with, and answer as they are told.
import { immediate } from "../../src/core/backoff.ts";
import { done } from "../../src/core/item-outcome.ts";
import type { BatchItem, BatchOptions, RunBatch } from "../../src/jobs/batch-handler.ts";
import { defineJob, type JobDefinition } from "../../src/jobs/define-job.ts";
import type { Bench } from "./worker-bench.ts";

/** A batch type, and what it was called with. */
export interface Noted {
  readonly job: JobDefinition;
  /** The ids of each batch, in the order of their starts. */
  readonly batches: string[][];
}

/** A batch type that notes its batches and answers by `answer`. */
export function noted(
  answer: RunBatch,
  batch: BatchOptions = {},
  more: { concurrency?: number; timeout?: string; service?: string } = {},
): Noted {
  const batches: string[][] = [];
  const job = defineJob("label", {
    maxAttempts: 2,
    backoff: immediate(),
    ...more,
    batch,
    runBatch(items: readonly BatchItem[], context) {
      batches.push(items.map(({ id }) => id));
      return answer(items, context);
    },
  });
  return { job, batches };
}

/** Has nothing to complain of. */
export const allDone: RunBatch = (items) => items.map(({ id }) => done(id));
/** How large its batches were. */
export const sizes = ({ batches }: Noted): number[] => batches.map(({ length }) => length);
/** All together. */
export const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);

/** A handler of which only the end is known: it throws if one of these is among its items. */
export const spoiltBy =
  (bad: ReadonlySet<string>): RunBatch =>
  (items) => {
    if (items.some(({ id }) => bad.has(id))) throw new Error("spoilt");
    return allDone(items, undefined as never);
  };

/** Works until nothing is due any more. */
export async function drained(bench: Bench, { job }: Noted, concurrency = 1): Promise<void> {
  const { worker } = bench.hire([job], { concurrency });
  await bench.finish(worker.drain({ graceMs: 1_000 }), 600_000);
}
