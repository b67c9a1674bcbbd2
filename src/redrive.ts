// Composes the library: one store, the job types of a program, and the objects that enqueue, read and work. Everything
// else is in the folders; this file only connects them.
import { subjectOf } from "./core/event-log.ts";
import { checkText, JOB_BOUNDS } from "./core/new-job.ts";
import { type Duration, parseDuration } from "./core/duration.ts";
import { RedriveError } from "./core/errors.ts";
import { invalid, objectOf, parseOptions } from "./core/options.ts";
import { PRESETS } from "./core/policy.ts";
import { openStore } from "./open-store.ts";
import { type Breakers, openBreakers } from "./operate/breakers.ts";
import { type DeadLetters, openDeadLetters } from "./operate/dead-letters.ts";
import { isJobDefinition, type JobDefinition } from "./jobs/define-job.ts";
import { openEndings } from "./enqueue/endings.ts";
import { type ActionOptions, type EventLog, openEventLog } from "./report/event-log.ts";
import { type Events, openEvents } from "./report/events.ts";
import { type EventFilter, readEvents } from "./operate/event-log.ts";
import { type Jobs, openJobs } from "./operate/jobs.ts";
import { type LimitView, readLimits } from "./operate/limit-views.ts";
import type { EnqueueOptions } from "./enqueue/new-jobs.ts";
import { type RunOutcome, runToEnd } from "./enqueue/await-job.ts";
import type { EnqueueManyOptions, EnqueueSummary } from "./enqueue/enqueue-stream.ts";
import type { EnqueuedJob } from "./enqueue/enqueue-result.ts";
import { openProducer, type Producer } from "./enqueue/producer.ts";
import { openRuns, type Runs } from "./operate/runs.ts";
import { openRedrives, type Redrives } from "./operate/redrives.ts";
import { openStuck, type Stuck } from "./operate/stuck.ts";
import { type QueueView, readPauses, readQueues } from "./operate/queue-views.ts";
import { openSchedules, type Schedules } from "./schedules/schedules.ts";
import type { CircuitBreaker } from "./services/call-breaker.ts";
import { openSharedBreakers } from "./services/shared-breaker.ts";
import { type FlowMeter, openFlowMeter } from "./store/flow-meter.ts";
import type { LoggedEvent, Page, Pause, PauseTarget, Store } from "./store/store.ts";
import { VERBS } from "./store/verb-facts.ts";
import { hostId, isAlive } from "./system/processes.ts";
import type { Log } from "./system/log.ts";
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

/** A queue. Close it when you are done, or declare it with `await using`. */
export interface Redrive extends AsyncDisposable {
  /** The store itself, for what the methods here do not cover. Its methods may still change. */
  readonly store: Store;
  /** Lists jobs; cancels and reschedules them. */
  readonly jobs: Jobs;
  /** Lists dead letters; sends them back to work or removes them. */
  readonly deadLetters: DeadLetters;
  /** Sends dead letters back to work step by step: plans, starts and follows redrive runs. */
  readonly redrives: Redrives;
  /** Lists runs: those that wait for a retry, and the history of a job. */
  readonly runs: Runs;
  /** Lists and ends runs that take too long. */
  readonly stuck: Stuck;
  /** Lists the breakers of services and changes them by hand, for the whole fleet. */
  readonly breakers: Breakers;
  /** Makes and changes schedules, which hold for the whole fleet. */
  readonly schedules: Schedules;
  /**
   * Writes a job; resolves when it is stored. If its key is taken, `unique` decides: by default the same payload
   * answers with `duplicate: true`, and another one rejects with `conflict`.
   */
  enqueue<Input>(
    job: JobDefinition<Input> | string,
    input: NoInfer<Input>,
    options?: EnqueueOptions,
  ): Promise<EnqueuedJob>;
  /**
   * Writes a stream of jobs in chunks; memory stays flat. Where an input is refused or the source fails, the chunks
   * before stay written and `details.written` of the error tells how many inputs those were. On Postgres two chunks are
   * under way at once, so that adjacent jobs of two chunks may swap places; jobs with a group or a key keep their
   * order.
   */
  enqueueMany<Input>(
    job: JobDefinition<Input> | string,
    inputs: Iterable<Input> | AsyncIterable<Input>,
    options?: EnqueueManyOptions<Input>,
  ): Promise<EnqueueSummary>;
  /** Writes a job whose payload is already JSON text; the text is kept byte for byte. */
  enqueueText(job: JobDefinition | string, text: string, options?: EnqueueOptions): Promise<EnqueuedJob>;
  /**
   * Writes a job and waits until it has ended, wherever it runs. Attempts and deadline are those of the preset
   * `handler` unless the type sets them; delays are those of the type. Rejects with `aborted` when the signal fires and
   * with `closed` when this Redrive closes; neither cancels the job. With `keep: { finished: 0 }` a worker of this
   * Redrive must run the job: a result that another process has removed is not found.
   */
  run<Input, Result>(
    job: JobDefinition<Input, Result>,
    input: NoInfer<Input>,
    options?: EnqueueOptions & { readonly signal?: AbortSignal },
  ): Promise<RunOutcome<Result>>;
  /**
   * Takes new records and due jobs, runs both, and ends when nothing is left: each record is done, waits for its retry,
   * or is a dead letter. Records whose id is already known are skipped, so the same source can be read again.
   */
  processRecords<Input, Result, Item = Input>(
    job: JobDefinition<Input, Result>,
    records: Iterable<Item> | AsyncIterable<Item>,
    options: ProcessRecordsOptions<Item, Result>,
  ): Promise<RecordsSummary>;
  /** Makes a worker for the job types of this program; it does nothing before `start` or `drain`. */
  worker(options?: RedriveWorkerOptions): RedriveWorker;
  /**
   * The fleet's breaker of a service, for `retryable`: it refuses calls while the breaker is open, and their results
   * count with those of the workers.
   */
  breaker(service: string): CircuitBreaker;
  /**
   * Pauses a queue, type, service or tenant for the whole fleet: for a time (1 ms to 10 years), or until `resume`. Runs
   * that have started continue; deadlines do not count the pause.
   */
  pause(
    target: PauseTarget,
    options?: { readonly for?: Duration; readonly reason?: string } & ActionOptions,
  ): Promise<void>;
  /** Ends a pause; false if none was in force. */
  resume(target: PauseTarget, options?: ActionOptions): Promise<boolean>;
  /**
   * A page of the event log, newest first: what operators did on this store, and what workers noticed. It has nothing to
   * do with the events of `on`, which tell of this process only.
   */
  events(query?: EventFilter): Promise<Page<LoggedEvent>>;
  /** The rate limits, retry budgets and weights of the fleet, with what is left of each now. */
  limits(): Promise<LimitView[]>;
  /** Every queue that a job, a worker, a definition or a pause names, by name. */
  queues(): Promise<QueueView[]>;
  /** Every pause in force: of queues, job types, services and tenants. */
  pauses(): Promise<Pause[]>;
  /** Calls the listener for events of this process; returns a function that stops it. */
  readonly on: Events["on"];
  /** Stops its workers, finishes writes under way, and closes the store unless you opened it. Safe to call twice. */
  close(): Promise<void>;
}

/** What differs between production and tests. */
export interface Surroundings {
  readonly system: System;
  readonly process: WorkerDependencies["process"];
  /** The hub of events; default a new one. */
  readonly events?: Events;
}

/** Opens a queue and migrates the schema of its store. */
export function createRedrive(options: RedriveOptions): Promise<Redrive> {
  const { pid } = process;
  return assemble(options, { system: realSystem, process: { pid, host: hostId(), isAlive } });
}

async function migrateStore(store: Store, log: Log, isOurs: boolean): Promise<void> {
  try {
    const notice = await store.migrate();
    if (notice !== null) log.info({ store: store.name }, notice);
  } catch (error) {
    if (isOurs) await store.close();
    throw error;
  }
}

/** The same with the caller's clock, randomness and process. */
export async function assemble(options: RedriveOptions, surroundings: Surroundings): Promise<Redrive> {
  const settings = resolveRedrive(options);
  const store = typeof settings.store === "string" ? await openStore(settings.store) : settings.store;
  const isOurs = store !== options.store;
  const url = typeof settings.store === "string" ? settings.store : null;
  await migrateStore(store, settings.log, isOurs);
  const { system, events = openEvents(settings.log) } = surroundings;
  const actor = actorOf(settings, system);
  const eventLog = openEventLog({ store, log: settings.log, actor });
  const flow = openFlowMeter(store, system);
  const parts = { ...settings, store, system, events, eventLog, flow, actor };
  const producer = openProducer(parts);
  // A caller that waits for an answer wants it soon: the limits of the preset `handler` apply where the type sets none.
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
    await flow.end();
    if (isOurs) await store.close();
  };
  const redrive: Redrive = {
    store,
    jobs: openJobs(parts),
    deadLetters: openDeadLetters(parts),
    redrives: openRedrives(parts),
    runs: openRuns(store),
    stuck: openStuck(stuckParts(parts)),
    breakers: openBreakers(parts),
    schedules: openSchedules(parts),
    ...views(parts),
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
    ...pausing(parts),
    on: events.on,
    close: () => (closing ??= close()),
    [Symbol.asyncDispose]: () => redrive.close(),
  };
  return redrive;
}

function views({ store, limits, jobs }: Parts): Pick<Redrive, "limits" | "queues" | "pauses" | "events"> {
  return {
    limits: () => readLimits(store, limits),
    queues: () => readQueues(store, jobs),
    pauses: () => readPauses(store),
    events: (query) => readEvents(store, query),
  };
}

/** Only working workers are kept: a program may make any number of them in its life. */
function joining(workers: Set<RedriveWorker>, gone: AbortSignal): (worker: RedriveWorker) => () => void {
  return (worker) => {
    if (gone.aborted) throw closed();
    workers.add(worker);
    return () => workers.delete(worker);
  };
}

/** Who acts through this Redrive. */
function actorOf({ actor }: Pick<RedriveSettings, "actor">, system: System): string {
  if (actor !== null) return actor;
  const found = system.actor();
  checkText("REDRIVE_ACTOR", found);
  return found;
}

function pausing({ store, eventLog }: Pick<Parts, "store" | "eventLog">): Pick<Redrive, "pause" | "resume"> {
  return {
    pause: async (target, options = {}) => {
      const { for: span, reason = "", why } = parseOptions(options, ["for", "reason", "why"], "pause");
      const { kind, name } = objectOf(target, "target");
      const forMs = span === undefined ? null : parseDuration(span, "for", { minMs: 1, maxMs: JOB_BOUNDS.delayMs });
      const pause = { forMs, reason: reason as string };
      VERBS.pause.check?.({ kind, name }, pause);
      const said = why ?? (pause.reason === "" ? undefined : pause.reason);
      const action = { kind: "pause", subject: subjectOf(kind, name), why: said, details: pause };
      await eventLog.act(action, () => store.pause({ kind, name }, pause));
    },
    resume: async (target, options = {}) => {
      const { why } = parseOptions(options, ["why"], "resume");
      const { kind, name } = objectOf(target, "target");
      const outcome = (resumed: boolean | undefined): object => ({ resumed });
      const action = { kind: "resume", subject: subjectOf(kind, name), why, outcome };
      return eventLog.act(action, () => store.resume({ kind, name }));
    },
  };
}

type Parts = Omit<RedriveSettings, "store"> & {
  readonly store: Store;
  readonly system: System;
  readonly events: Events;
  readonly eventLog: EventLog;
  readonly flow: FlowMeter;
};

/** What stuck runs are judged with; what is done about them is reported as a worker reports it. */
function stuckParts({ store, jobs, system, log, events, eventLog, flow }: Parts): Parameters<typeof openStuck>[0] {
  const definitions = new Map(jobs.map((definition) => [definition.type, definition]));
  return {
    store: withTypeLimits(store, jobs),
    system,
    eventLog,
    policyOf: (type) => definitions.get(type)?.policy ?? PRESETS.default,
    report: openReporter({ log, events, counts: zeroCounts(), definitions, now: system.now, flow }),
  };
}

function waysIn(
  producer: Producer,
  awaited: Producer,
  parts: Parts,
  gone: AbortSignal,
): Pick<Redrive, "enqueue" | "enqueueMany" | "enqueueText" | "run"> {
  const endings = openEndings(parts.events);
  // Callers that continue would keep a closing queue from ever being idle.
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
  return new RedriveError("closed", "This Redrive was closed. Create a new one to continue.");
}
