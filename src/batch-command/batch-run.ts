// Runs a list of items through one batch handler, in a first pass and then in rounds of retries. It uses the queue and
// the worker: every item is a job, and nothing runs or is judged here.
import { type BatchState, digestOf, queueOf, typeOf } from "./batch-state.ts";
import type { Job } from "../core/job.ts";
import { checkPayloadText } from "../core/payload.ts";
import { NEXT_ROUND_MS } from "../core/round.ts";
import type { RunBatch } from "../jobs/batch-handler.ts";
import { defineJob, type JobDefinition } from "../jobs/define-job.ts";
import { enqueueStream } from "../enqueue/enqueue-stream.ts";
import { knownType } from "../enqueue/new-jobs.ts";
import { everyItem, PAGE } from "../enqueue/paging.ts";
import type { JobQuery, Store } from "../store/store.ts";
import { realSystem } from "../system/real.ts";
import { isAgain } from "../worker/batch-forming.ts";

/** The plan of a run. */
export interface BatchPlan {
  readonly name: string;
  /** JSON texts. */
  readonly items: readonly string[];
  readonly run: RunBatch;
  /** The handler reports an outcome for each item, not only for the whole batch. */
  readonly isExact: boolean;
  readonly size: number;
  readonly retrySize: number;
  readonly maxRetries: number;
  readonly parallel: number;
}

/** The results of the items. */
export interface BatchBooks {
  readonly succeeded: number;
  readonly failed: number;
  /** Items that ran in a round of retries. */
  readonly retried: number;
}

/** The job type of a run. */
export function batchJob(plan: BatchPlan, { run }: BatchState): JobDefinition {
  const { name, size, retrySize, maxRetries } = plan;
  // Where only the outcome of a whole batch is known, its first run charges no attempt, and every charged attempt is a
  // retry.
  const isCharged = plan.isExact || size === 1;
  const job = defineJob(typeOf(name), {
    preset: "batch",
    queue: queueOf(name, run),
    maxAttempts: Math.max(1, maxRetries + (isCharged ? 1 : 0)),
    backoff: () => NEXT_ROUND_MS,
    keep: { finished: "30d", dead: "30d" },
    batch: { size, retrySize },
    runBatch: plan.run,
  });
  return { ...job, batch: job.batch && { ...job.batch, splitDelayMs: NEXT_ROUND_MS } };
}

/**
 * Enqueues the items in order, because adjacent items run together. Items from before a kill are known already and stay
 * unchanged.
 */
export async function enqueueItems(store: Store, job: JobDefinition, plan: BatchPlan): Promise<void> {
  const { items, size, isExact, maxRetries } = plan;
  const isAlone = (at: number): boolean => !isExact && size > 1 && items.length % size === 1 && at === items.length - 1;
  await enqueueStream({ store, system: realSystem, log: null, events: null }, knownType(job, {}), items, {
    payload: (item) => checkPayloadText(item),
    each: (item, at) => ({
      key: `${job.queue}:${at}:${digestOf([item]).slice(0, 16)}`.slice(-255),
      // The last batch has only this item, and its first run counts.
      ...(isAlone(at) && { maxAttempts: maxRetries + 1 }),
    }),
  });
}

/** The jobs of a run in one state, oldest first; with `due`, only waiting jobs that are due. */
export async function jobsIn(
  store: Store,
  { type, queue }: JobDefinition,
  which: Pick<JobQuery, "state" | "due">,
): Promise<Job[]> {
  const jobs: Job[] = [];
  for await (const job of everyItem((cursor) => store.list({ ...which, type, queue, limit: PAGE, cursor })))
    jobs.push(job);
  return jobs.reverse();
}

/** Counts the items in the store. */
export async function booksOf(
  store: Store,
  job: JobDefinition,
): Promise<BatchBooks & { readonly dead: readonly Job[] }> {
  const { type, queue } = job;
  let [succeeded, retried] = [0, 0];
  const done = everyItem((cursor) => store.list({ type, queue, state: "completed", limit: PAGE, cursor }));
  for await (const each of done) {
    succeeded += 1;
    if (isAgain(each)) retried += 1;
  }
  const dead = [
    ...(await jobsIn(store, job, { state: "dead" })),
    ...(await jobsIn(store, job, { state: "cancelled" })),
  ];
  // Their last attempt is the one they died of.
  for (const each of dead) if (isAgain({ ...each, attempts: each.attempts - 1 })) retried += 1;
  return { succeeded, failed: dead.length, retried, dead };
}
