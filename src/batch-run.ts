// A list of items through one batch handler, in a first pass and then in rounds of retries: a face of the queue and the
// worker, in which every item is a job. Nothing is run or judged here.
import { type BatchState, digestOf, queueOf, save, typeOf } from "./batch-state.ts";
import type { Job, State } from "./core/job.ts";
import { checkPayloadText } from "./core/payload.ts";
import type { RunBatch } from "./queue/batch.ts";
import { defineJob, type JobDefinition } from "./queue/define-job.ts";
import { enqueueStream } from "./queue/enqueue-stream.ts";
import { knownType } from "./queue/new-jobs.ts";
import { everyItem, PAGE } from "./queue/paging.ts";
import type { Redrive } from "./redrive.ts";
import type { RedriveWorker } from "./redrive-worker.ts";
import type { Store } from "./store/store.ts";
import { realSystem } from "./system/real.ts";
import { mostWith } from "./worker/gathering.ts";

/** What is to be done with the items. */
export interface BatchPlan {
  readonly name: string;
  /** JSON texts. */
  readonly items: readonly string[];
  readonly run: RunBatch;
  /** The handler says what became of each item, not only how the batch ended. */
  readonly isExact: boolean;
  readonly size: number;
  readonly retrySize: number;
  readonly maxRetries: number;
  readonly parallel: number;
}

/** What became of the items. */
export interface BatchBooks {
  readonly succeeded: number;
  readonly failed: number;
  /** Items that were run in a round of retries. */
  readonly retried: number;
}

/** A round begins when the one before it has ended: until then what failed waits for so long. */
const HOLD_MS = 7 * 86_400_000;

/** The job type of a run. */
export function batchJob(plan: BatchPlan, { run }: BatchState): JobDefinition {
  const { name, size, retrySize, maxRetries } = plan;
  // Where only the end of a batch is known, its first run charges nobody, and every try that is charged is a retry.
  const isCharged = plan.isExact || size === 1;
  const job = defineJob(typeOf(name), {
    preset: "batch",
    queue: queueOf(name, run),
    maxAttempts: Math.max(1, maxRetries + (isCharged ? 1 : 0)),
    backoff: () => HOLD_MS,
    keep: { finished: "30d", dead: "30d" },
    batch: { size, retrySize },
    runBatch: plan.run,
  });
  return { ...job, batch: job.batch && { ...job.batch, splitDelayMs: HOLD_MS } };
}

/** A pass over the items. */
export interface BatchRound {
  /** 0 for the first pass. */
  readonly round: number;
  readonly items: number;
  /** Items in a batch, at least and at most: halves of what failed before go together no more. */
  readonly sizes: readonly [number, number];
}

/** Whoever the run is for. */
export interface BatchCaller {
  /** True once the run is to stop. */
  readonly isStopped: boolean;
  /** The first pass (0) or a round of retries begins, with this worker. */
  onRound(round: BatchRound, worker: RedriveWorker): void;
}

/** A run that was opened. */
export interface BatchCall {
  readonly redrive: Redrive;
  readonly job: JobDefinition;
  readonly plan: BatchPlan;
  readonly state: BatchState;
}

/** Works until no item is left, or until it is to stop. */
export async function workThrough({ redrive, job, plan, state }: BatchCall, caller: BatchCaller): Promise<void> {
  const { store } = redrive;
  await enqueueItems(store, job, plan);
  let left = await jobsIn(store, job, "queued");
  while (!caller.isStopped) {
    const worker = redrive.worker({ concurrency: plan.parallel, queues: [job.queue] });
    caller.onRound(roundOf(plan, job, state, left), worker);
    await timed(store, plan.name, state, () => worker.drain({ grace: 0 }));
    if (caller.isStopped) return;
    left = await jobsIn(store, job, "queued");
    state.isDone = left.length === 0 && (await jobsIn(store, job, "running")).length === 0;
    if (left.length > 0) state.rounds += 1;
    await save(store, plan.name, state, null);
    if (state.isDone) return;
    // In the order of the queue, so that the parts of a batch lie side by side again.
    for (let at = 0; at < left.length; at += PAGE)
      await store.reschedule(left.slice(at, at + PAGE).map(({ id }) => ({ id, delayMs: 0 })));
  }
}

/** How often the time of a round is written down: a kill costs no more of it than this. */
const NOTE_MS = 1_000;

/** Adds the time of the work to that of the round, also of a round that is killed. */
async function timed(store: Store, name: string, state: BatchState, work: () => Promise<unknown>): Promise<void> {
  const field = state.rounds === 0 ? "firstPassMs" : "retryMs";
  const before = state[field];
  const from = realSystem.monotonic();
  const note = (): void => {
    state[field] = before + Math.round(realSystem.monotonic() - from);
  };
  let noting: Promise<unknown> = Promise.resolve();
  const noteLater = (): (() => void) =>
    realSystem.after(NOTE_MS, () => {
      note();
      // What cannot be written is written later; the run does not depend on it.
      noting = noting.then(() => save(store, name, state, null)).catch(() => false);
      cancel = noteLater();
    });
  let cancel = noteLater();
  try {
    await work();
  } finally {
    cancel();
    await noting;
    note();
  }
}

function roundOf(
  { size }: BatchPlan,
  { batch }: JobDefinition,
  { rounds }: BatchState,
  left: readonly Job[],
): BatchRound {
  let sizes: readonly [number, number] = [size, size];
  if (rounds > 0 && batch) {
    const most = left.map((job) => mostWith(job, batch));
    sizes = most.reduce(([least, largest], each) => [Math.min(least, each), Math.max(largest, each)], [size, 1]);
  }
  return { round: rounds, items: left.length, sizes };
}

/** Items that are known already, from before a kill, stay as they are. In their order, because neighbours run together. */
async function enqueueItems(store: Store, job: JobDefinition, plan: BatchPlan): Promise<void> {
  const { items, size, isExact, maxRetries } = plan;
  const isAlone = (at: number): boolean => !isExact && size > 1 && items.length % size === 1 && at === items.length - 1;
  await enqueueStream({ store, system: realSystem, log: null, events: null }, knownType(job, {}), items, {
    payload: (item) => checkPayloadText(item),
    each: (item, at) => ({
      key: `${job.queue}:${at}:${digestOf([item]).slice(0, 16)}`.slice(-255),
      // The last batch has this one alone, and its first run counts.
      ...(isAlone(at) && { maxAttempts: maxRetries + 1 }),
    }),
  });
}

/** The jobs of a run in one state, oldest first. */
export async function jobsIn(store: Store, { type, queue }: JobDefinition, state: State): Promise<Job[]> {
  const jobs: Job[] = [];
  for await (const job of everyItem((cursor) => store.list({ type, queue, state, limit: PAGE, cursor })))
    jobs.push(job);
  return jobs.reverse();
}

/** What the store says about the items. */
export async function booksOf(
  store: Store,
  job: JobDefinition,
): Promise<BatchBooks & { readonly dead: readonly Job[] }> {
  const { type, queue } = job;
  let [succeeded, retried] = [0, 0];
  const done = everyItem((cursor) => store.list({ type, queue, state: "completed", limit: PAGE, cursor }));
  for await (const { attempts, batchMost } of done) {
    succeeded += 1;
    if (attempts > 0 || batchMost !== null) retried += 1;
  }
  const dead = [...(await jobsIn(store, job, "dead")), ...(await jobsIn(store, job, "cancelled"))];
  for (const { attempts, batchMost } of dead) if (attempts > 1 || batchMost !== null) retried += 1;
  return { succeeded, failed: dead.length, retried, dead };
}
