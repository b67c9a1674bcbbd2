// Enqueues jobs: single calls that share writes, and streams in chunks.
import type { RedriveError } from "../core/errors.ts";
import { checkText, type NewJob } from "../core/new-job.ts";
import { invalid, namesOf, parseOptions } from "../core/options.ts";
import { checkPayloadText, encodePayload } from "../core/payload.ts";
import type { PolicyOptions } from "../core/policy.ts";
import type { FlowMeter } from "../store/flow-meter.ts";
import type { EnqueueAnswer, Store } from "../store/store.ts";
import type { Log } from "../system/log.ts";
import type { System } from "../system/system.ts";
import { isJobDefinition, type JobDefinition } from "../jobs/define-job.ts";
import { type EachDependencies, enqueueEach, type JobToEnqueue } from "./enqueue-each.ts";
import { type EnqueueManyOptions, enqueueStream, type EnqueueSummary } from "./enqueue-stream.ts";
import { type EnqueuedJob, enqueueResult, withinOf } from "./enqueue-result.ts";
import { openEnqueuer } from "./enqueuer.ts";
import type { Events } from "../report/events.ts";
import type { Meter } from "../report/meter.ts";
import type { Traces } from "../report/traces.ts";
import { type EnqueueOptions, type KnownType, knownType, newJobOf, payloadOf, payloadOfText } from "./new-jobs.ts";

/** A new record with its id and its place for errors; JSON text is kept byte for byte. */
export type NewRecord = { readonly id: string; readonly place: string | undefined } & (
  | { readonly text: string }
  | { readonly value: unknown }
);

const MANY_FIELDS = namesOf<EnqueueManyOptions<unknown>>()(["each", "onChunk", "tx"]);

/**
 * Records per write: few enough to be written before V8 treats them as long-lived objects, which would cost memory in
 * every long run; more where each write is a few trips to a server.
 */
const RECORDS_CHUNK = { here: 100, remote: 250 } as const;

/** Writes jobs to the store. */
export interface Producer {
  /** Writes a job, under this id where the caller must know it in advance. */
  enqueue(
    definition: JobDefinition | string,
    input: unknown,
    options?: EnqueueOptions,
    id?: string,
  ): Promise<EnqueuedJob>;
  /** The same for a payload that is already JSON text; it is kept byte for byte. */
  enqueueText(definition: JobDefinition | string, text: string, options?: EnqueueOptions): Promise<EnqueuedJob>;
  enqueueMany<Input>(
    definition: JobDefinition<Input> | string,
    inputs: Iterable<Input> | AsyncIterable<Input>,
    options?: EnqueueManyOptions<Input>,
  ): Promise<EnqueueSummary>;
  /**
   * Writes records under their ids. A record is checked against its schema when it runs, so that a bad one stops no
   * other.
   */
  enqueueRecords(
    definition: JobDefinition,
    records: AsyncIterable<NewRecord>,
    onChunk: (jobs: readonly EnqueuedJob[], soFar: EnqueueSummary) => void,
  ): Promise<EnqueueSummary>;
  /** Writes jobs of any types in one write, each answered on its own. */
  enqueueEach(jobs: readonly JobToEnqueue[]): Promise<(EnqueuedJob | RedriveError)[]>;
  idle(): Promise<void>;
}

/** What a producer needs. */
export interface ProducerDependencies {
  readonly store: Store;
  readonly system: System;
  readonly log: Log;
  /** Null where no code in this process can listen. */
  readonly events: Events | null;
  /** Counts new jobs for the store; absent where they are not counted. */
  readonly flow?: FlowMeter;
  /** Counts new jobs for metrics; absent where they are not counted. */
  readonly meter?: Meter;
  /** Makes spans; absent where no traces are made. */
  readonly traces?: Traces | null;
  readonly jobs: readonly JobDefinition[];
  readonly defaults: PolicyOptions;
  readonly maxPayloadBytes: number;
}
/** A producer for one store. */
export function openProducer(parts: ProducerDependencies): Producer {
  const { store, system, maxPayloadBytes } = parts;
  const enqueuer = openEnqueuer(store, system);
  const known = typesOf(parts);
  const each: EachDependencies = { ...parts, known, newId: system.jobId, single: enqueuer.enqueue };
  const write = async (job: NewJob, tx: unknown): Promise<EnqueuedJob> => {
    if (tx === undefined) return enqueueResult(parts, job, await enqueuer.enqueue(job));
    const [answer] = await withinOf(store, tx).enqueue([job]);
    return enqueueResult({ ...parts, events: null }, job, answer as EnqueueAnswer);
  };
  const one = async (
    type: KnownType,
    payload: string,
    options?: EnqueueOptions,
    id = system.jobId(),
  ): Promise<EnqueuedJob> => {
    const job = newJobOf(type, payload, id, options);
    if (!parts.traces) return write(job, options?.tx);
    return parts.traces.send([job], ([traced = job]) => write(traced, options?.tx));
  };
  return {
    async enqueue(definition, input, options, id) {
      const type = known(definition);
      return one(type, await payloadOf(type, input, maxPayloadBytes), options, id);
    },
    async enqueueText(definition, text, options) {
      const type = known(definition);
      return one(type, await payloadOfText(type, text, maxPayloadBytes), options);
    },
    async enqueueMany(definition, inputs, options = {}) {
      parseOptions(options, MANY_FIELDS, "enqueueMany");
      checkSource("inputs", inputs);
      const type = known(definition as JobDefinition | string);
      return enqueueStream(parts, type, inputs, {
        ...options,
        payload: (input) => payloadOf(type, input, maxPayloadBytes),
      });
    },
    enqueueRecords: (definition, records, onChunk) =>
      // Dead ones are fed again with every call; the caller gets their number.
      enqueueStream({ ...parts, log: null }, known(definition), records, {
        onChunk,
        chunk: RECORDS_CHUNK[parts.store.remote ? "remote" : "here"],
        each({ id }) {
          // Without an id it would be a new record each time it is fed.
          checkText("id", id);
          return { key: id };
        },
        place: (record, index) => record.place ?? `record ${index + 1}`,
        payload: (record) =>
          "text" in record
            ? checkPayloadText(record.text, maxPayloadBytes)
            : encodePayload(record.value, maxPayloadBytes),
      }),
    enqueueEach: (jobs) => enqueueEach(each, jobs),
    idle: () => enqueuer.idle(),
  };
}
/** How many names of types that are not defined here are remembered: there may be any number of them. */
const NAMES_MOST = 1_000;

function remember(names: Map<string, KnownType>, name: string, type: KnownType): void {
  if (names.size >= NAMES_MOST) names.delete(names.keys().next().value as string);
  names.set(name, type);
}

/** Finds the facts about a type, given its definition or its name. */
function typesOf({ jobs, defaults }: ProducerDependencies): (definition: JobDefinition | string) => KnownType {
  const byName = new Map(jobs.map((definition) => [definition.type, definition]));
  const cache = new Map<JobDefinition, KnownType>();
  const names = new Map<string, KnownType>();
  return (definition) => {
    if (typeof definition !== "string" && !isJobDefinition(definition))
      throw invalid("job", "what defineJob returned, or the name of a type", definition, "pass one of these");
    const key = typeof definition === "string" ? (byName.get(definition) ?? definition) : definition;
    const cached = typeof key === "string" ? names.get(key) : cache.get(key);
    if (cached) return cached;
    const type = knownType(key, defaults);
    if (typeof key !== "string") cache.set(key, type);
    else remember(names, key, type);
    return type;
  };
}

/** Throws unless the value is a source of inputs; a text is refused although it is iterable. */
export function checkSource(name: string, value: unknown): void {
  const source = value as { [Symbol.iterator]?: unknown; [Symbol.asyncIterator]?: unknown } | null | undefined;
  const methods = [source?.[Symbol.iterator], source?.[Symbol.asyncIterator]];
  if (typeof value === "string" || !methods.some((method) => typeof method === "function"))
    throw invalid(name, "an array, iterable or async iterable", value, "pass one");
}
