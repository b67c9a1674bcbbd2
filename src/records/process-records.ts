// Sends a stream of records through one job type: new records are enqueued, due ones run, and each record ends as a
// result, as a retry with its due time, or as a dead letter. It uses the queue and the worker; nothing runs or is
// judged here.
import {
  type Alert,
  type AlertLimits,
  type AlertOptions,
  alertsFrom,
  type Figures,
  resolveAlerts,
  RETRIES_COUNTED,
} from "../core/alerts.ts";
import { type Duration, parseDuration } from "../core/duration.ts";
import { isRedriveError, RedriveError } from "../core/errors.ts";
import { invalid, namesOf, parseOptions } from "../core/options.ts";
import { isJobDefinition, type JobDefinition } from "../jobs/define-job.ts";
import type { Events } from "../report/events.ts";
import { everyItem, PAGE } from "../enqueue/paging.ts";
import { checkSource, type NewRecord, type Producer } from "../enqueue/producer.ts";
import { openResults, type Results } from "./record-results.ts";
import type { RedriveWorker, RedriveWorkerOptions } from "../worker/redrive-worker-api.ts";
import type { Store } from "../store/store.ts";
import type { Log } from "../system/log.ts";
import type { System } from "../system/system.ts";
import type { WorkerCounts } from "../report/reporter.ts";

/** Options of a stream of records. */
export interface ProcessRecordsOptions<Item = unknown, Result = unknown> {
  /** The id of a record, 1 to 255 bytes. It is the key of its job: a record whose id is known already is skipped. */
  readonly id: (record: Item, index: number) => string;
  /** The JSON text of a record, which is kept byte for byte; default the record itself as JSON. */
  readonly text?: (record: Item) => string;
  /** The name of a refused record in its error, e.g. `line 3`; default `record 3`. */
  readonly place?: (record: Item, index: number) => string;
  /**
   * Called for every record that is done: those that this call finished, and those of the stream that were done before
   * or that other workers finish, for which the call waits. A promise is awaited before more is read; an error ends the
   * call. Default none.
   */
  readonly onResult?: (done: RecordResult<Result>) => void | Promise<void>;
  /** Options of the worker, or a worker of this Redrive that was not started; default `redrive.worker()`. */
  readonly worker?: RedriveWorkerOptions | RedriveWorker;
  /** Waits for retries that fall due within this time before it ends; default 1 s. */
  readonly grace?: Duration;
  /** Limits for the figures of the call; `alerts` of the summary names those that were passed. Default none. */
  readonly alerts?: AlertOptions;
  /** When it fires, the call reads no further, lets running records finish and ends; default none. */
  readonly signal?: AbortSignal;
}

/** A record that is done. */
export interface RecordResult<Result = unknown> {
  /** The id of the record. */
  readonly id: string;
  /** What its handler returned, parsed from JSON; null for nothing. */
  readonly result: Result | null;
  /** Runs it took, including the successful one. */
  readonly attempts: number;
}

/** The results of the records, and the state of the queue. */
export interface RecordsSummary extends Readonly<WorkerCounts> {
  /** Records read. */
  readonly records: number;
  /** Records that were new. */
  readonly enqueued: number;
  /** Records whose id was known already; they were skipped. */
  readonly known: number;
  /** Records whose id was already known with another payload; they were skipped too. */
  readonly conflicts: number;
  /**
   * Records of the stream without a result for `onResult`: their worker died, or they were completed before and
   * `keep.finished` has deleted them. Always 0 without `onResult`.
   */
  readonly missing: number;
  /** The share of completed records among those that ended in this call, 0 to 1; null if none ended. */
  readonly successRate: number | null;
  /** Retries per record that ended in this call; null if none ended. */
  readonly averageRetries: number | null;
  /** Records of this type that wait for a retry, counted up to 10,000. */
  readonly retryQueue: number;
  /** Dead letters of this type. */
  readonly deadLetters: number;
  /** How long the call took, in milliseconds. */
  readonly ms: number;
  /** Figures beyond the limits that were given. */
  readonly alerts: readonly Alert[];
}

/** What it works with. */
export interface RecordsDependencies {
  readonly store: Store;
  readonly system: System;
  readonly log: Log;
  readonly events: Events;
  readonly jobs: readonly JobDefinition[];
  readonly producer: Pick<Producer, "enqueueRecords">;
}

/** A call, with a worker that is not started yet. */
export interface RecordsCall {
  readonly definition: JobDefinition;
  readonly source: Iterable<unknown> | AsyncIterable<unknown>;
  readonly recordOf: (item: unknown, index: number) => NewRecord;
  readonly worker: RedriveWorker;
  readonly graceMs: number;
  readonly onResult: ProcessRecordsOptions["onResult"] | undefined;
  readonly signal: AbortSignal | undefined;
  readonly alerts: AlertLimits;
}

/** Most records read ahead of the runs. */
const AHEAD_MOST = 10_000;
/** Most results waiting to be passed on. */
const BEHIND_MOST = 1_000;
const PACE_MS = 20;
/** Nothing has ended for this long: other workers do the work, or nothing may start. Then waiting does not help. */
const STANDSTILL_MS = 1_000;
const DEFAULT_GRACE_MS = 1_000;
const FIELDS = namesOf<ProcessRecordsOptions>()([
  "id",
  "text",
  "place",
  "onResult",
  "worker",
  "grace",
  "signal",
  "alerts",
]);

/** Checks the arguments of a caller; `open` makes the worker where there is none yet. */
export function recordsCall<Item>(
  job: JobDefinition,
  records: Iterable<Item> | AsyncIterable<Item>,
  options: ProcessRecordsOptions<Item>,
  open: (options?: RedriveWorkerOptions) => RedriveWorker,
): RecordsCall {
  const { worker, grace, ...given } = parseOptions(options, FIELDS, "processRecords");
  if (!isJobDefinition(job)) throw invalid("job", "what defineJob returned", job, "pass the definition");
  checkSource("records", records);
  for (const name of ["id", "text", "place", "onResult"] as const) {
    if (typeof given[name] === "function" || (name !== "id" && given[name] === undefined)) continue;
    throw invalid(`processRecords.${name}`, "a function of a record", given[name], "for example (record) => record.id");
  }
  if (given.signal !== undefined && !(given.signal instanceof AbortSignal))
    throw invalid("processRecords.signal", "an AbortSignal", given.signal, "pass that of an AbortController");
  return {
    definition: job,
    source: records,
    recordOf: recordOf(options as ProcessRecordsOptions<unknown>),
    graceMs: parseDuration(grace ?? DEFAULT_GRACE_MS, "grace"),
    worker: isWorker(worker) ? worker : open(worker as RedriveWorkerOptions | undefined),
    onResult: options.onResult,
    signal: options.signal,
    alerts: resolveAlerts(options.alerts, "processRecords.alerts"),
  };
}

function isWorker(value: unknown): value is RedriveWorker {
  return typeof (value as RedriveWorker | undefined)?.drain === "function";
}

function recordOf({ id, text, place }: ProcessRecordsOptions<unknown>): RecordsCall["recordOf"] {
  const named = (item: unknown, index: number) => place?.(item, index);
  return (item, index) =>
    text
      ? { id: id(item, index), place: named(item, index), text: text(item) }
      : { id: id(item, index), place: named(item, index), value: item };
}

/** Feeds the records to the worker while it works, and ends when nothing is due any more. */
export async function drainRecords(parts: RecordsDependencies, call: RecordsCall): Promise<RecordsSummary> {
  const { store, system, log, events, producer, jobs } = parts;
  const { definition, worker, graceMs } = call;
  if (!jobs.some(({ type }) => type === definition.type))
    throw invalid("job", "one of the job types of this Redrive", definition.type, "add it to createRedrive's jobs");
  const began = system.monotonic();
  let since = 0;
  const { onResult } = call;
  const onWait = (count: number) => log.warn({ records: count }, "waiting for records that other workers are running");
  const results = openResults({ store, system, worker, onResult, since: () => since, onWait });
  const ended = { count: 0, retries: 0 };
  const quiet = [
    events.on("job.completed", ({ job }) => {
      if (job.type !== definition.type) return;
      ended.count += 1;
      ended.retries += job.attempts;
      results.add(job);
    }),
    events.on("job.dead", ({ job }) => {
      if (job.type !== definition.type) return;
      ended.count += 1;
      ended.retries += Math.max(0, job.attempts - 1);
      results.dead(job.id);
    }),
  ];
  try {
    since = (await store.control()).now;
    await worker.start();
    let skipped = 0;
    const { records, failure } = atPace(call, system, results, () => skipped);
    const { enqueued, duplicates, conflicts } = await producer.enqueueRecords(definition, records, (known, soFar) => {
      skipped = soFar.duplicates + soFar.conflicts;
      results.enqueued(known);
    });
    if (failure.is) throw sourceFailed(failure.error, enqueued + duplicates + conflicts);
    const counts = await worker.drain({ grace: graceMs });
    const missing = await results.fromOthers(call.signal);
    const figures: Figures = {
      successRate: successRateOf(counts),
      averageRetries: ended.count === 0 ? null : ended.retries / ended.count,
      retryQueue: await countRetries(store, definition.type),
      deadLetters: (await store.tally({ type: definition.type })).total,
      ms: Math.round(system.monotonic() - began),
    };
    return {
      ...counts,
      records: enqueued + duplicates + conflicts,
      enqueued,
      known: duplicates,
      conflicts,
      missing,
      ...figures,
      alerts: alertsFrom(figures, call.alerts),
    };
  } finally {
    for (const stop of quiet) stop();
    await worker.stop();
  }
}

/** A source that failed with a RedriveError keeps its message. */
function sourceFailed(cause: unknown, written: number): RedriveError {
  const came = `(${written} before it were enqueued)`;
  if (isRedriveError(cause))
    return new RedriveError(cause.code, `${cause.message} ${came}`, { cause, details: { ...cause.details, written } });
  const said = cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause);
  return new RedriveError("aborted", `The source of the records failed: ${said} ${came}`, {
    cause,
    details: { written },
  });
}

/**
 * Passes on only as many records as the worker and the receiver of results can keep up with. Records before a failure
 * of the source are still enqueued; then the failure is thrown. One generator for all of it, because each generator
 * costs a record as much as anything else about it.
 */
function atPace(
  { source, recordOf: read, worker, signal }: RecordsCall,
  system: System,
  results: Results,
  skipped: () => number,
) {
  const failure = { is: false, error: undefined as unknown };
  const { counts } = worker;
  const done = (): number => counts.completed + counts.retried + counts.dead + counts.cancelled + skipped();
  let ahead = 0;
  let seen = done();
  let movedAt = system.monotonic();
  const catchUp = async (): Promise<void> => {
    if (results.behind() >= BEHIND_MOST) await results.written();
    while (ahead >= AHEAD_MOST && !signal?.aborted) {
      const now = done();
      ahead = Math.max(0, ahead - (now - seen));
      if (now !== seen) movedAt = system.monotonic();
      else if (system.monotonic() - movedAt >= STANDSTILL_MS) ahead = 0;
      seen = now;
      await results.written();
      if (ahead >= AHEAD_MOST) await system.sleep(PACE_MS);
    }
  };
  async function* records(): AsyncGenerator<NewRecord> {
    let index = 0;
    try {
      for await (const item of source) {
        if (signal?.aborted) return;
        if (ahead >= AHEAD_MOST || results.behind() >= BEHIND_MOST) await catchUp();
        ahead += 1;
        yield read(item, index);
        index += 1;
      }
    } catch (error) {
      Object.assign(failure, { is: true, error });
    }
  }
  return { records: records(), failure };
}

/** The completed share of all that ended; null where nothing did. */
export function successRateOf({ completed, dead }: Pick<WorkerCounts, "completed" | "dead">): number | null {
  return completed + dead === 0 ? null : completed / (completed + dead);
}

/** Jobs of a type that wait for a retry, counted up to 10,000. */
export async function countRetries(store: Store, type: string): Promise<number> {
  let count = 0;
  const waiting = { type, state: "queued", tried: true, limit: PAGE } as const;
  for await (const _ of everyItem((cursor) => store.list({ ...waiting, cursor }))) {
    count += 1;
    if (count >= RETRIES_COUNTED) break;
  }
  return count;
}
