// Puts the library together: one store, the job types of a program, a way in, a way to look, and workers. Everything
// else is in the folders; this file only connects them.
import { JOB_BOUNDS } from "./core/new-job.ts";
import { type Duration, parseDuration } from "./core/duration.ts";
import { RedriveError } from "./core/errors.ts";
import { invalid, objectOf, parseOptions } from "./core/options.ts";
import { PRESETS } from "./core/policy.ts";
import { openStore } from "./open-store.ts";
import { type Breakers, openBreakers } from "./operate/breakers.ts";
import { type DeadLetters, openDeadLetters } from "./operate/dead-letters.ts";
import { isJobDefinition, type JobDefinition } from "./jobs/define-job.ts";
import { openEndings } from "./enqueue/endings.ts";
import { type Events, openEvents } from "./report/events.ts";
import { type Jobs, openJobs } from "./operate/jobs.ts";
import { type LimitView, readLimits } from "./operate/limit-views.ts";
import type { EnqueueOptions } from "./enqueue/new-jobs.ts";
import { type RunOutcome, runToEnd } from "./enqueue/await-job.ts";
import type { EnqueueManyOptions, EnqueueSummary } from "./enqueue/enqueue-stream.ts";
import type { EnqueuedJob } from "./enqueue/enqueue-result.ts";
import { openProducer, type Producer } from "./enqueue/producer.ts";
import { openRuns, type Runs } from "./operate/runs.ts";
import { openStuck, type Stuck } from "./operate/stuck.ts";
import { type QueueView, readPauses, readQueues } from "./operate/queue-views.ts";
import { openSchedules, type Schedules } from "./schedules/schedules.ts";
import type { CircuitBreaker } from "./services/call-breaker.ts";
import { openSharedBreakers } from "./services/shared-breaker.ts";
import type { Pause, PauseTarget, Store } from "./store/store.ts";
import { hostId, isAlive } from "./system/processes.ts";
import { realSystem } from "./system/real.ts";
import type { System } from "./system/system.ts";
import {
  type RecordsSummary,
  drainRecords,
  type ProcessRecordsOptions,
  recordsCall,
} from "./records/process-records.ts";
import { type RedriveOptions, type RedriveSettings, resolveRedrive } from "./redrive-options.ts";
import type { RedriveWorker, RedriveWorkerOptions } from "./worker/redrive-worker-api.ts";
import { openWorker } from "./redrive-worker.ts";
import type { WorkerDependencies } from "./worker/dependencies.ts";
import { openReporter, zeroCounts } from "./report/reporter.ts";
import { withTypeLimits } from "./worker/type-limits.ts";

/** A queue: the way in, the way to look, and workers. Close it when you are done, or declare it with `await using`. */
export interface Redrive extends AsyncDisposable {
  /** Where the jobs live, for what the methods here do not cover. Its form may still change. */
  readonly store: Store;
  readonly jobs: Jobs;
  readonly deadLetters: DeadLetters;
  /** The runs of jobs: what waits for its next try, and everything that happened to one. */
  readonly runs: Runs;
  /** Runs that take longer than they may. */
  readonly stuck: Stuck;
  /** The breakers of services, for the whole fleet. */
  readonly breakers: Breakers;
  /** Jobs at set times, once for the whole fleet. */
  readonly schedules: Schedules;
  /** Writes a job; resolves when it is stored. */
  enqueue<Input>(
    job: JobDefinition<Input> | string,
    input: NoInfer<Input>,
    options?: EnqueueOptions,
  ): Promise<EnqueuedJob>;
  /**
   * Writes a stream of jobs in chunks; memory stays flat. Where an input is refused or the source fails, the chunks before
   * stay written and `details.written` of the error says how many inputs those were. On Postgres two chunks are under way
   * at once, so that neighbours of two chunks may change places; jobs with a group or a key keep their order.
   */
  enqueueMany<Input>(
    job: JobDefinition<Input> | string,
    inputs: Iterable<Input> | AsyncIterable<Input>,
    options?: EnqueueManyOptions<Input>,
  ): Promise<EnqueueSummary>;
  /** Writes a job whose payload is JSON text already, which is kept byte for byte. */
  enqueueText(job: JobDefinition | string, text: string, options?: EnqueueOptions): Promise<EnqueuedJob>;
  /**
   * Writes a job and waits until it has ended, wherever it runs. Unless the type says otherwise, with the attempts and the
   * deadline of the preset `handler`; the delays are those of the type. With `keep: { finished: 0 }` the worker must be one of
   * this Redrive: the result of a job that another process ran and removed is not found.
   */
  run<Input, Result>(
    job: JobDefinition<Input, Result>,
    input: NoInfer<Input>,
    options?: EnqueueOptions & { readonly signal?: AbortSignal },
  ): Promise<RunOutcome<Result>>;
  /**
   * Takes new records and what is due, runs both, and ends when nothing is left: each record is done, waits for its
   * retry, or is a dead letter. Records whose id is known already are skipped, so the same source can be read again.
   */
  processRecords<Input, Result, Item = Input>(
    job: JobDefinition<Input, Result>,
    records: Iterable<Item> | AsyncIterable<Item>,
    options: ProcessRecordsOptions<Item, Result>,
  ): Promise<RecordsSummary>;
  /** A worker for the job types of this program; it does nothing before `start` or `drain`. */
  worker(options?: RedriveWorkerOptions): RedriveWorker;
  /** The fleet's breaker of a service, to give to `retryable`: its calls are refused and counted with the workers'. */
  breaker(service: string): CircuitBreaker;
  /** Pauses a queue, type, service or tenant for the whole fleet. */
  pause(target: PauseTarget, options?: { readonly for?: Duration; readonly reason?: string }): Promise<void>;
  /** Ends a pause; false if none was in force. */
  resume(target: PauseTarget): Promise<boolean>;
  /** Rate limits, retry budgets and weights as workers were configured with, and what is left of them. */
  limits(): Promise<LimitView[]>;
  /** Every queue of which something is known. */
  queues(): Promise<QueueView[]>;
  /** Every pause in force: of queues, job types, services and tenants. */
  pauses(): Promise<Pause[]>;
  /** Listens to what happens in this process; returns the way to stop. */
  readonly on: Events["on"];
  /** Stops its workers and lets go of the store. */
  close(): Promise<void>;
}

/** What differs between production and tests. */
export interface Surroundings {
  readonly system: System;
  readonly process: WorkerDependencies["process"];
  /** Where events are told and heard; default a hub of its own. */
  readonly events?: Events;
}

/** Opens a queue; the schema is brought up to date. */
export function createRedrive(options: RedriveOptions): Promise<Redrive> {
  const { pid } = process;
  return assemble(options, { system: realSystem, process: { pid, host: hostId(), isAlive } });
}

/** The same with a clock, dice and a process of the caller's. */
export async function assemble(options: RedriveOptions, surroundings: Surroundings): Promise<Redrive> {
  const settings = resolveRedrive(options);
  const store = typeof settings.store === "string" ? openStore(settings.store) : settings.store;
  const isOurs = store !== options.store;
  const url = typeof settings.store === "string" ? settings.store : null;
  try {
    await store.migrate();
  } catch (error) {
    if (isOurs) await store.close();
    throw error;
  }
  const { system, events = openEvents(settings.log) } = surroundings;
  const parts = { ...settings, store, system, events };
  const producer = openProducer(parts);
  // Whoever waits for an answer wants it soon: the handler's limits stand below what the type says.
  const awaited = openProducer({ ...parts, defaults: { preset: "handler", ...parts.defaults } });
  const shared = openSharedBreakers(parts);
  const gone = new AbortController();
  const workers = new Set<RedriveWorker>();
  let closing: Promise<void> | null = null;
  const close = async (): Promise<void> => {
    gone.abort();
    shared.stop();
    await Promise.all([...workers].map((worker) => worker.stop()));
    await Promise.all([producer.idle(), awaited.idle()]);
    if (isOurs) await store.close();
  };
  const redrive: Redrive = {
    store,
    jobs: openJobs(store, events, settings.limits),
    deadLetters: openDeadLetters(store),
    runs: openRuns(store),
    stuck: openStuck(stuckParts(parts)),
    breakers: openBreakers(store, settings.limits),
    schedules: openSchedules(parts),
    limits: () => readLimits(store, settings.limits),
    queues: () => readQueues(store, settings.jobs),
    pauses: () => readPauses(store),
    ...waysIn(producer, awaited, parts, gone.signal),
    worker(workerOptions) {
      if (gone.signal.aborted) throw closed();
      return openWorker(workerOptions, {
        ...parts,
        url,
        process: surroundings.process,
        onBegin: joining(workers, gone.signal),
      });
    },
    processRecords: async (job, records, batchOptions) => {
      const call = recordsCall(job as JobDefinition, records, batchOptions as ProcessRecordsOptions, redrive.worker);
      return drainRecords({ ...parts, producer }, call);
    },
    breaker: shared.of,
    ...pausing(store),
    on: events.on,
    close: () => (closing ??= close()),
    [Symbol.asyncDispose]: () => redrive.close(),
  };
  return redrive;
}

/** Only workers at work are held: a program may make any number of them in its life. */
function joining(workers: Set<RedriveWorker>, gone: AbortSignal): (worker: RedriveWorker) => () => void {
  return (worker) => {
    if (gone.aborted) throw closed();
    workers.add(worker);
    return () => workers.delete(worker);
  };
}

function pausing(store: Store): Pick<Redrive, "pause" | "resume"> {
  return {
    pause: async (target, options = {}) => {
      const { for: span, reason = "" } = parseOptions(options, ["for", "reason"], "pause");
      await store.pause(objectOf(target, "target"), {
        forMs: span === undefined ? null : parseDuration(span, "for", { minMs: 1, maxMs: JOB_BOUNDS.delayMs }),
        reason: reason as string,
      });
    },
    resume: async (target) => store.resume(objectOf(target, "target")),
  };
}

type Parts = Omit<RedriveSettings, "store"> & {
  readonly store: Store;
  readonly system: System;
  readonly events: Events;
};

/** What stuck runs are judged with; what is done about them is told as a worker tells it. */
function stuckParts({ store, jobs, system, log, events }: Parts): Parameters<typeof openStuck>[0] {
  const definitions = new Map(jobs.map((definition) => [definition.type, definition]));
  return {
    store: withTypeLimits(store, jobs),
    system,
    policyOf: (type) => definitions.get(type)?.policy ?? PRESETS.default,
    report: openReporter({ log, events, counts: zeroCounts(), definitions, now: system.now }),
  };
}

function waysIn(
  producer: Producer,
  awaited: Producer,
  parts: Parts,
  gone: AbortSignal,
): Pick<Redrive, "enqueue" | "enqueueMany" | "enqueueText" | "run"> {
  const endings = openEndings(parts.events);
  // Callers that go on would keep a closing queue from ever being idle.
  const check = (): void => {
    if (gone.aborted) throw closed();
  };
  return {
    async enqueue(job, input, options) {
      check();
      return producer.enqueue(job as JobDefinition | string, input, options);
    },
    async enqueueMany(job, inputs, options) {
      check();
      return producer.enqueueMany(job, inputs, options);
    },
    async enqueueText(job, text, options) {
      check();
      return producer.enqueueText(job, text, options);
    },
    async run(job, input, runOptions = {}) {
      check();
      const { signal, ...options } = objectOf(runOptions, "run");
      if (options.tx !== undefined)
        throw invalid("run.tx", "no transaction: the job could not run before you commit", options.tx, "use enqueue");
      if (signal !== undefined && !(signal instanceof AbortSignal))
        throw invalid("signal", "an AbortSignal", signal, "pass the signal of an AbortController");
      if (signal?.aborted) throw new RedriveError("aborted", "The signal had fired before anything was enqueued.");
      const id = parts.system.jobId();
      const { key = null } = options;
      const type = isJobDefinition(job) ? job.type : String(job);
      return runToEnd({ ...parts, endings, gone }, { id, type, key }, signal, () =>
        awaited.enqueue(job as JobDefinition, input, options, id),
      );
    },
  };
}

function closed(): RedriveError {
  return new RedriveError("closed", "This Redrive was closed. Create a new one to go on.");
}
