// The course of a run: a first pass, then rounds of retries, each when the one before is finished, in this process or
// in another one of the same run. Waits for items that run elsewhere or are paused.
import { type BatchPlan, enqueueItems, jobsIn } from "./batch-run.ts";
import { type BatchState, changeRun, type RunKey } from "./batch-state.ts";
import { pausesInForce } from "../core/holding.ts";
import type { Job } from "../core/job.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import { PAGE } from "../enqueue/paging.ts";
import type { Redrive } from "../redrive-api.ts";
import type { RedriveWorker } from "../worker/redrive-worker-api.ts";
import type { Pause, Store } from "../store/store.ts";
import { hostId, isAlive } from "../system/processes.ts";
import { realSystem } from "../system/real.ts";
import { lostWorkers } from "../worker/drain.ts";
import { mostWith } from "../worker/batch-forming.ts";

/** A pass over the items. */
export interface BatchRound {
  /** 0 for the first pass. */
  readonly round: number;
  readonly items: number;
  /** The least and the largest batch: halves of a failed batch no longer run together. */
  readonly sizes: readonly [number, number];
}

/** Why nothing starts: a pause, items that another process runs, or items whose process seems to have died. */
export type BatchWait =
  | { readonly cause: "paused"; readonly pause: Pause }
  | { readonly cause: "elsewhere" | "lost"; readonly items: number };

/** The callbacks of the caller of a run. */
export interface BatchCaller {
  /** Fires when the run must stop. */
  readonly signal: AbortSignal;
  /** Called with the worker that runs due items. */
  onWorker(worker: RedriveWorker): void;
  /** Called when the first pass (0) or a round of retries begins here. */
  onRound(round: BatchRound): void;
  /** Called when there is something to wait for; once, until there was work again. */
  onWait(wait: BatchWait): void;
}

/** A run that was opened. */
export interface BatchCall {
  readonly redrive: Redrive;
  readonly job: JobDefinition;
  readonly plan: BatchPlan;
  readonly state: BatchState;
}

/** How long to wait before the next look. */
const WAIT_MS = 1_000;
/** After so many looks in a row at a round that another process opens, that process counts as dead. */
const OPENING_LOOKS = 10;

/** Works until no item is left, or until it must stop. */
export async function workThrough(call: BatchCall, caller: BatchCaller): Promise<void> {
  const { redrive, job, plan } = call;
  const { store } = redrive;
  const key: RunKey = { name: plan.name, run: call.state.run };
  let announced: number | null = null;
  let told: BatchWait["cause"] | null = null;
  let openingLooks = 0;
  const tell = (wait: BatchWait): void => {
    if (told !== wait.cause) caller.onWait(wait);
    told = wait.cause;
  };
  const rest = (): Promise<void> => realSystem.sleep(WAIT_MS, caller.signal);
  await enqueueItems(store, job, plan);
  while (!caller.signal.aborted) {
    const state = await changeRun(store, key, (now) => now);
    const look = await lookAt(store, job);
    if (!state || look.kind === "over") return void (await changeRun(store, key, (now) => ({ ...now, isDone: true })));
    openingLooks = look.kind === "next" && state.isOpening ? openingLooks + 1 : 0;
    if (look.kind === "wait") {
      tell(look.wait);
      await rest();
    } else if (look.kind === "next") {
      const isElsewhere = openingLooks > 0 && openingLooks < OPENING_LOOKS;
      if (isElsewhere || !(await beginRound(store, key, job, state))) await rest();
    } else {
      const round = announced === state.rounds ? null : await roundOf(call, state, look.lost);
      if (round) {
        announced = state.rounds;
        caller.onRound(round);
      }
      if (look.lost.length > 0) tell({ cause: "lost", items: look.lost.length });
      // Another process of the run may have been faster.
      if (await workOn(call, state, caller, tell)) told = null;
      else await rest();
    }
  }
}

/** What to do next; `lost` are items of workers that seem to have died. */
type Look =
  | { readonly kind: "over" }
  | { readonly kind: "next" }
  | { readonly kind: "wait"; readonly wait: BatchWait }
  | { readonly kind: "work"; readonly lost: readonly Job[] };

async function lookAt(store: Store, job: JobDefinition): Promise<Look> {
  const { type, queue } = job;
  const anyQueued = async (which: { readonly due?: true } = {}): Promise<boolean> =>
    (await store.list({ ...which, type, queue, state: "queued", limit: 1 })).items.length > 0;
  const isQueued = await anyQueued();
  const isDue = isQueued && (await anyQueued({ due: true }));
  const running = await jobsIn(store, job, { state: "running" });
  // Once more, because an item that ran at the first look may have come back before the second.
  if (!isQueued && running.length === 0 && !(await anyQueued())) return { kind: "over" };
  const pause = pausesInForce(await store.control()).find(
    ({ kind, name }) => (kind === "type" || kind === "queue") && job[kind] === name,
  );
  if (pause) return { kind: "wait", wait: { cause: "paused", pause } };
  const lost = running.length === 0 ? [] : await lostIn(store, job);
  if (isDue || lost.length > 0) return { kind: "work", lost };
  if (running.length > 0) return { kind: "wait", wait: { cause: "elsewhere", items: running.length } };
  return { kind: "next" };
}

async function lostIn(store: Store, job: JobDefinition): Promise<Job[]> {
  const lost = await lostWorkers(store, "", { host: hostId(), isAlive });
  if (lost.length === 0) return [];
  const running = await jobsIn(store, job, { state: "running" });
  return running.filter(({ worker }) => lost.some(({ id }) => id === worker));
}

/**
 * Counts a round and makes due what failed in the round before; false if another process does so. A round whose opener died
 * is not counted again.
 */
async function beginRound(store: Store, key: RunKey, job: JobDefinition, seen: BatchState): Promise<boolean> {
  let isOurs = false;
  await changeRun(store, key, (now) => {
    isOurs = now.rounds === seen.rounds && now.isOpening === seen.isOpening;
    return isOurs ? { ...now, rounds: now.rounds + (now.isOpening ? 0 : 1), isOpening: true } : now;
  });
  if (!isOurs) return false;
  // In the order of the queue, so that the parts of a batch are adjacent again.
  const left = await jobsIn(store, job, { state: "queued" });
  for (let at = 0; at < left.length; at += PAGE)
    await store.reschedule(left.slice(at, at + PAGE).map(({ id }) => ({ id, delayMs: 0 })));
  await changeRun(store, key, (now) => ({ ...now, isOpening: false }));
  return true;
}

/** What this process finds to do in a round; null where others have taken all of it. */
async function roundOf(
  { redrive, plan: { size }, job }: BatchCall,
  { rounds }: BatchState,
  lost: readonly Job[],
): Promise<BatchRound | null> {
  const jobs = [...(await jobsIn(redrive.store, job, { state: "queued", due: true })), ...lost];
  const { batch } = job;
  let sizes: readonly [number, number] = [size, size];
  if (rounds > 0 && batch) {
    const most = jobs.map((each) => mostWith(each, batch));
    sizes = most.reduce(([least, largest], each) => [Math.min(least, each), Math.max(largest, each)], [size, 1]);
  }
  return jobs.length === 0 ? null : { round: rounds, items: jobs.length, sizes };
}

/** Works on what is due; false if nothing was left. */
async function workOn(
  { redrive, job, plan, state: { run } }: BatchCall,
  { rounds }: BatchState,
  caller: BatchCaller,
  tell: (wait: BatchWait) => void,
): Promise<boolean> {
  const { store } = redrive;
  const worker = redrive.worker({ concurrency: plan.parallel, queues: [job.queue] });
  if (caller.signal.aborted) return false;
  caller.onWorker(worker);
  const field = rounds === 0 ? "firstPassMs" : "retryMs";
  const note = async (ms: number): Promise<void> => {
    // The worker waits for these too, once it has nothing else to do.
    const lost = await lostIn(store, job);
    if (lost.length > 0) tell({ cause: "lost", items: lost.length });
    await changeRun(store, { name: plan.name, run }, (now) => ({ ...now, [field]: now[field] + ms }));
  };
  await timed(note, () => worker.drain({ grace: 0 }));
  return worker.counts.claimed > 0;
}

/** How often the time of a round is saved: a kill costs no more of it than this. */
const NOTE_MS = 1_000;

/** Adds the time of the work to that of the round, also if the round is killed. */
async function timed(add: (ms: number) => Promise<unknown>, work: () => Promise<unknown>): Promise<void> {
  let from = realSystem.monotonic();
  const note = async (): Promise<void> => {
    const ms = Math.round(realSystem.monotonic() - from);
    await add(ms);
    from += ms;
  };
  let noting: Promise<unknown> = Promise.resolve();
  const noteLater = (): (() => void) =>
    realSystem.after(NOTE_MS, () => {
      // A failed write is repeated later; the run does not depend on it.
      noting = noting.then(note).catch(() => undefined);
      cancel = noteLater();
    });
  let cancel = noteLater();
  try {
    await work();
  } finally {
    cancel();
    await noting;
  }
  await note();
}
