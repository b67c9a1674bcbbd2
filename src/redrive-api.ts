// The interface of a queue: what `createRedrive` returns.
import type { Alerts } from "./alerts/alerts.ts";
import type { Duration } from "./core/duration.ts";
import type { RedriveError } from "./core/errors.ts";
import type { Health } from "./core/health.ts";
import type { EnqueueManyOptions, EnqueueSummary } from "./enqueue/enqueue-stream.ts";
import type { JobToEnqueue } from "./enqueue/enqueue-each.ts";
import type { EnqueuedJob } from "./enqueue/enqueue-result.ts";
import type { EnqueueOptions } from "./enqueue/new-jobs.ts";
import type { RunOutcome } from "./enqueue/await-job.ts";
import type { JobDefinition } from "./jobs/define-job.ts";
import type { Breakers } from "./operate/breakers.ts";
import type { Causes } from "./operate/causes.ts";
import type { DeadLetters } from "./operate/dead-letters.ts";
import type { EventFilter } from "./operate/event-log.ts";
import type { Jobs } from "./operate/jobs.ts";
import type { LimitView } from "./operate/limit-views.ts";
import type { Metrics } from "./operate/monitoring.ts";
import type { QueueView } from "./operate/queue-views.ts";
import type { Redrives } from "./operate/redrives.ts";
import type { Runs } from "./operate/runs.ts";
import type { Stuck } from "./operate/stuck.ts";
import type { ProcessRecordsOptions, RecordsSummary } from "./records/process-records.ts";
import type { ActionOptions } from "./report/event-log.ts";
import type { Events } from "./report/events.ts";
import type { Schedules } from "./schedules/schedules.ts";
import type { CircuitBreaker } from "./services/call-breaker.ts";
import type { LoggedEvent, Page, Pause, PauseTarget, Store } from "./store/store.ts";
import type { RedriveWorker, RedriveWorkerOptions } from "./worker/redrive-worker-api.ts";

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
  /** Lists the causes of failures; mutes them, marks them as fixed, and keeps notes about them. */
  readonly causes: Causes;
  /** Lists runs: those that wait for a retry, and the history of a job. */
  readonly runs: Runs;
  /** Lists and ends runs that take too long. */
  readonly stuck: Stuck;
  /** Lists the breakers of services and changes them by hand, for the whole fleet. */
  readonly breakers: Breakers;
  /** Makes and changes schedules, which hold for the whole fleet. */
  readonly schedules: Schedules;
  /** Lists the alerts of the fleet, mutes them, and tests where they are told. */
  readonly alerts: Alerts;
  /** The job types of this program. */
  readonly types: readonly JobDefinition[];
  /** The most bytes that a payload may have. */
  readonly maxPayloadBytes: number;
  /**
   * The part of this Redrive that changes things, under the name of another person: what it does stands under that name
   * in the event log. For programs that serve several people, such as a web server.
   */
  as(actor: string, options?: { readonly request?: string }): Operator;
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
   * Writes jobs of any types in one write, each answered on its own, in their order: a job that is refused keeps no other
   * from being written. Rejects where the store does not answer; jobs with an `id` may be sent again without being made
   * twice.
   */
  enqueueEach(jobs: readonly JobToEnqueue[]): Promise<readonly (EnqueuedJob | RedriveError)[]>;
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
  /** The health of the queue, or of one job type: a status, a score from 0 to 1, and the reasons. Reads the store. */
  health(query?: { readonly type?: string }): Promise<Health>;
  /** What this process has counted, and the gauges of the fleet, which it reads from the store. */
  metrics(): Promise<Metrics>;
  /**
   * Calls the listener with the metrics at this interval, from 1 s to 1 day (default 30 s), until this Redrive closes;
   * returns a function that stops it. A listener that throws is logged; one that has not ended is not called again
   * meanwhile.
   */
  onMetrics(listener: (metrics: Metrics) => unknown, options?: { readonly every?: Duration }): () => void;
  /** Calls the listener for events of this process; returns a function that stops it. */
  readonly on: Events["on"];
  /** Stops its workers, finishes writes under way, and closes the store unless you opened it. Safe to call twice. */
  close(): Promise<void>;
}

/** What people change, under the name of one of them. */
export type Operator = Pick<
  Redrive,
  "jobs" | "deadLetters" | "redrives" | "causes" | "stuck" | "breakers" | "schedules" | "alerts" | "pause" | "resume"
>;
