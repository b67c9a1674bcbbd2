// The way in: single enqueues that share writes, and streams of them in chunks.
import { isRedriveError, RedriveError } from "../core/errors.ts";
import { textOf } from "../core/failure.ts";
import type { State } from "../core/job.ts";
import type { NewJob } from "../core/new-job.ts";
import { invalid, parseOptions } from "../core/options.ts";
import { checkPayloadText, encodePayload } from "../core/payload.ts";
import type { PolicyOptions } from "../core/policy.ts";
import type { EnqueueAnswer, Store, Within } from "../store/store.ts";
import type { Log } from "../system/log.ts";
import type { System } from "../system/system.ts";
import { isJobDefinition, type JobDefinition } from "./define-job.ts";
import { openEnqueuer } from "./enqueuer.ts";
import type { Events } from "./events.ts";
import { type EnqueueOptions, type KnownType, knownType, newJobOf, payloadOf, payloadOfText } from "./new-jobs.ts";

/** What became of an enqueue. */
export interface EnqueuedJob {
  readonly id: string;
  readonly type: string;
  /** True if a job with this key was there already; nothing was written then. */
  readonly duplicate: boolean;
  /** True if a waiting job with this key took the new body. */
  readonly replaced: boolean;
  /** The state of a duplicate; null if it is gone already, `queued` for a job that was written. */
  readonly state: State | null;
}

/** What became of a stream of jobs. */
export interface EnqueueSummary {
  readonly enqueued: number;
  readonly duplicates: number;
  readonly replaced: number;
  /** Inputs whose key is taken by another body; they were not written. */
  readonly conflicts: number;
}

/** What can be said about a stream of jobs. */
export interface EnqueueManyOptions<Input> {
  /** Options of each job, e.g. its key. */
  readonly each?: (input: Input, index: number) => EnqueueOptions;
  /** Hears what became of each chunk, in the order of the inputs. */
  readonly onChunk?: (jobs: readonly EnqueuedJob[]) => void;
  /** A transaction of yours that all of them are written in; Postgres only. */
  readonly tx?: unknown;
}

/** A record on its way in, and the id by which it is known; JSON text is kept byte for byte. */
export type NewRecord = { readonly id: string } & ({ readonly text: string } | { readonly value: unknown });

/** Puts jobs into the store. */
export interface Producer {
  enqueue(definition: JobDefinition | string, input: unknown, options?: EnqueueOptions): Promise<EnqueuedJob>;
  /** The same for a payload that is JSON text already; it is kept byte for byte. */
  enqueueText(definition: JobDefinition | string, text: string, options?: EnqueueOptions): Promise<EnqueuedJob>;
  enqueueMany<Input>(
    definition: JobDefinition<Input> | string,
    inputs: Iterable<Input> | AsyncIterable<Input>,
    options?: EnqueueManyOptions<Input>,
  ): Promise<EnqueueSummary>;
  /** Writes records under their ids; whether one fits its schema is found out when it runs, so that it stops no other. */
  enqueueRecords(
    definition: JobDefinition,
    records: AsyncIterable<NewRecord>,
    onChunk: (jobs: readonly EnqueuedJob[], soFar: EnqueueSummary) => void,
  ): Promise<EnqueueSummary>;
  idle(): Promise<void>;
}

/** What a producer is made of. */
export interface ProducerParts {
  readonly store: Store;
  readonly system: System;
  readonly log: Log;
  readonly events: Events;
  readonly jobs: readonly JobDefinition[];
  readonly defaults: PolicyOptions;
  readonly maxPayloadBytes: number;
}

/** Jobs per write of a stream. */
const CHUNK = 500;

/** A producer for one store. */
export function openProducer(parts: ProducerParts): Producer {
  const { store, system, maxPayloadBytes } = parts;
  const enqueuer = openEnqueuer(store);
  const known = typesOf(parts);
  const one = async (type: KnownType, payload: string, options?: EnqueueOptions): Promise<EnqueuedJob> => {
    const job = newJobOf(type, payload, system.jobId(), options);
    if (options?.tx === undefined) return told(parts, job, await enqueuer.enqueue(job));
    const [answer] = await withinOf(store, options.tx).enqueue([job]);
    return told({ ...parts, events: null }, job, answer as EnqueueAnswer);
  };
  return {
    async enqueue(definition, input, options) {
      const type = known(definition);
      return one(type, await payloadOf(type, input, maxPayloadBytes), options);
    },
    async enqueueText(definition, text, options) {
      const type = known(definition);
      return one(type, await payloadOfText(type, text, maxPayloadBytes), options);
    },
    async enqueueMany(definition, inputs, options = {}) {
      parseOptions(options, ["each", "onChunk", "tx"], "enqueueMany");
      if (!isIterable(inputs)) throw invalid("inputs", "an array, iterable or async iterable", inputs, "pass one");
      const type = known(definition as JobDefinition | string);
      return stream(parts, type, inputs, { ...options, payload: (input) => payloadOf(type, input, maxPayloadBytes) });
    },
    enqueueRecords: (definition, records, onChunk) =>
      stream(parts, known(definition), records, {
        onChunk,
        each: ({ id }) => ({ key: id }),
        payload: (record) =>
          "text" in record
            ? checkPayloadText(record.text, maxPayloadBytes)
            : encodePayload(record.value, maxPayloadBytes),
      }),
    idle: () => enqueuer.idle(),
  };
}

/** The store inside a caller's transaction; throws where the store has no such thing. */
function withinOf(store: Store, tx: unknown): Within {
  if (!store.within)
    throw invalid("tx", "a Postgres store, which can share your transaction", store.name, "leave tx out");
  return store.within(tx);
}

/** Finds what is known about a type, given its definition or its name. */
function typesOf({ jobs, defaults }: ProducerParts): (definition: JobDefinition | string) => KnownType {
  const byName = new Map(jobs.map((definition) => [definition.type, definition]));
  const cache = new Map<JobDefinition | string, KnownType>();
  return (definition) => {
    if (typeof definition !== "string" && !isJobDefinition(definition))
      throw invalid("job", "what defineJob returned, or the name of a type", definition, "pass one of these");
    const key = typeof definition === "string" ? (byName.get(definition) ?? definition) : definition;
    const cached = cache.get(key);
    if (cached) return cached;
    const type = knownType(key, defaults);
    // Names that nobody defined can be of any number.
    if (typeof key !== "string") cache.set(key, type);
    return type;
  };
}

function isIterable(value: unknown): boolean {
  const source = value as { [Symbol.iterator]?: unknown; [Symbol.asyncIterator]?: unknown } | null | undefined;
  if (typeof value === "string") return false;
  return typeof source?.[Symbol.iterator] === "function" || typeof source?.[Symbol.asyncIterator] === "function";
}

type StreamOptions<Input> = Omit<EnqueueManyOptions<Input>, "onChunk"> & {
  readonly onChunk?: (jobs: readonly EnqueuedJob[], soFar: EnqueueSummary) => void;
  readonly payload: (input: Input) => string | Promise<string>;
};

async function stream<Input>(
  parts: ProducerParts,
  type: KnownType,
  inputs: Iterable<Input> | AsyncIterable<Input>,
  { each, onChunk, tx, payload }: StreamOptions<Input>,
): Promise<EnqueueSummary> {
  const chunks = chunkWriter(parts, tx, onChunk);
  const source = Symbol.asyncIterator in inputs ? inputs[Symbol.asyncIterator]() : inputs[Symbol.iterator]();
  let isOver = false;
  let index = 0;
  const next = async (step: Step<Input> | Promise<Step<Input>>): Promise<Step<Input>> => {
    const { done = false, value } = await step;
    // An array of promises is a source as well.
    return { done, value: await (value as Promise<Input>) } as Step<Input>;
  };
  try {
    for (;;) {
      let step: Step<Input>;
      try {
        const asked = source.next() as Step<Input> | Promise<Step<Input>>;
        // Nobody waits for what is there: that would cost more than all else about it.
        step = isPromise(asked) || isPromise(asked.value) ? await next(asked) : asked;
        isOver = step.done === true;
      } catch (error) {
        isOver = true;
        throw sourceFailed(error, { index, written: await chunks.written() });
      }
      if (step.done) break;
      try {
        const text = payload(step.value);
        const checked = typeof text === "string" ? text : await text;
        chunks.jobs.push(newJobOf(type, checked, parts.system.jobId(), each?.(step.value, index)));
      } catch (error) {
        throw withPlace(error, { index, written: await chunks.written() });
      }
      index += 1;
      if (chunks.jobs.length === CHUNK) await chunks.flush();
    }
  } finally {
    if (!isOver) await source.return?.();
  }
  await chunks.flush();
  await chunks.written();
  return chunks.total;
}

type Step<Input> = IteratorResult<Input, undefined>;

function isPromise(value: unknown): value is Promise<unknown> {
  return typeof (value as { readonly then?: unknown } | null | undefined)?.then === "function";
}

/** Writes a stream in chunks: while one is being written the next is made, and sent too where their order means nothing. */
function chunkWriter(parts: ProducerParts, tx: unknown, onChunk: StreamOptions<never>["onChunk"]) {
  const total = { enqueued: 0, duplicates: 0, replaced: 0, conflicts: 0 };
  const to = tx === undefined ? parts.store : withinOf(parts.store, tx);
  const teller = tx === undefined ? parts : { ...parts, events: null };
  let count = 0;
  const write = async (jobs: readonly NewJob[], before: Promise<void>): Promise<void> => {
    const answers = await patiently(() => to.enqueue(jobs));
    await before;
    count += jobs.length;
    const enqueued = answers.flatMap((answer, at) => {
      total[COUNTED[answer.kind]] += 1;
      return answer.kind === "conflict" ? [] : [told(teller, jobs[at] as NewJob, answer)];
    });
    onChunk?.(enqueued, total);
  };
  let [earlier, writing] = [Promise.resolve(), Promise.resolve()];
  const chunks = {
    total,
    jobs: [] as NewJob[],
    async flush() {
      const { jobs } = chunks;
      chunks.jobs = [];
      if (jobs.length === 0) return;
      await (tx === undefined && jobs.every(isOnItsOwn) ? earlier : writing);
      earlier = writing;
      writing = write(jobs, earlier);
      // Whoever waits for it next hears of it.
      writing.catch(() => undefined);
    },
    /** How many are written, once all that were sent are. */
    async written() {
      await writing;
      return count;
    },
  };
  return chunks;
}

/** True for a job that nobody expects before or behind another. */
function isOnItsOwn({ key, group }: NewJob): boolean {
  return key === null && group === null;
}

/** How often a chunk is tried while somebody's open transaction has one of its keys; a store waits a moment each time. */
const KEY_TRIES = 40;

/** Writes a chunk as often as it takes until its keys are free: nothing of it is written before. */
async function patiently<T>(write: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await write();
    } catch (error) {
      const isKeyTaken = isRedriveError(error, "store_unavailable") && error.details.key === "locked";
      if (!isKeyTaken || tries >= KEY_TRIES) throw error;
    }
  }
}

const COUNTED = {
  created: "enqueued",
  duplicate: "duplicates",
  replaced: "replaced",
  conflict: "conflicts",
} as const satisfies Record<EnqueueAnswer["kind"], keyof EnqueueSummary>;

/** How far a stream has come: inputs read, and inputs of which the store has answered. */
interface Place {
  readonly index: number;
  readonly written: number;
}

/** The error of a source that failed in the middle; what was written before stays, what was only read is not written. */
function sourceFailed(cause: unknown, { index, written }: Place): RedriveError {
  const read = index - written;
  const message =
    `The source of the inputs failed after ${index}: ${textOf(cause)} (${written} of them were enqueued` +
    `${read > 0 ? `, the last ${read} were not` : ""})`;
  return new RedriveError("aborted", message, { cause, details: { index, written } });
}

/** A refused input of a stream, with its place; what was written before stays. */
function withPlace(error: unknown, { index, written }: Place): unknown {
  if (!(error instanceof RedriveError)) return error;
  const message = `Input ${index}: ${error.message} (${written} before it were enqueued)`;
  return new RedriveError(error.code, message, { cause: error, details: { ...error.details, index, written } });
}

/** Whom to tell; nobody listens to what a transaction may still take back. */
type Teller = Pick<ProducerParts, "log"> & { readonly events: Events | null };

/** Tells the caller, and whoever listens, what became of a job. */
function told({ log, events }: Teller, job: NewJob, answer: EnqueueAnswer): EnqueuedJob {
  const { id, kind } = answer;
  const { type, key } = job;
  if (kind === "conflict") {
    const message = `The key ${JSON.stringify(key)} of ${type} is taken by job ${id}, which has another body. Use another key, or unique: "replace".`;
    throw new RedriveError("conflict", message, { details: { id, type, key } });
  }
  if (kind === "duplicate" && answer.state === "dead") {
    log.warn({ job: id, type, key }, "the job with this key is dead: redrive it, or enqueue under another key");
  }
  if (kind === "created") events?.emit({ kind: "job.enqueued", id, type });
  const state = kind === "duplicate" ? answer.state : "queued";
  return { id, type, duplicate: kind === "duplicate", replaced: kind === "replaced", state };
}
