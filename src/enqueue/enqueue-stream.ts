// Writes a stream of jobs to the store: reads it on demand, checks jobs one by one, writes them in chunks.
import { isRedriveError, RedriveError } from "../core/errors.ts";
import { textOf } from "../core/failure.ts";
import { checkNewJob, type NewJob } from "../core/new-job.ts";
import { isPromise } from "../core/promise.ts";
import { asChecked } from "../store/checked-jobs.ts";
import { WRITE_LENGTH } from "../store/group-commit.ts";
import type { EnqueueAnswer, Store } from "../store/store.ts";
import type { Traces } from "../report/traces.ts";
import type { System } from "../system/system.ts";
import { type EnqueuedJob, type Teller, enqueueResult, withinOf } from "./enqueue-result.ts";
import { type EnqueueOptions, type KnownType, newJobOf } from "./new-jobs.ts";

/** The result of a stream of jobs. */
export interface EnqueueSummary {
  /** Jobs that were written. */
  readonly enqueued: number;
  /** Inputs whose key was taken; nothing was written for them. */
  readonly duplicates: number;
  /** Inputs that replaced the payload of a waiting job. */
  readonly replaced: number;
  /**
   * Inputs whose key was taken by a job with another payload, which `unique` does not allow; nothing was written for
   * them.
   */
  readonly conflicts: number;
}

/** Options of a stream of jobs. */
export interface EnqueueManyOptions<Input> {
  /** Options of each job, e.g. its key; default none. */
  readonly each?: (input: Input, index: number) => EnqueueOptions;
  /** Called after each chunk is written, with the results of its jobs in the order of the inputs; default none. */
  readonly onChunk?: (jobs: readonly EnqueuedJob[]) => void;
  /** Your transaction, in which all of them are written; Postgres only. Default none. */
  readonly tx?: unknown;
}
/**
 * Jobs per write of a stream. The next chunk is made while one is written, so a thousand jobs are faster in two chunks
 * than in one; where each write is a trip to a server, fewer and larger ones are faster.
 */
const CHUNK = { here: 500, remote: 1_000 } as const;
/** What a stream is written with. */
export type StreamDependencies = Teller & {
  readonly store: Store;
  readonly system: Pick<System, "jobId">;
  readonly traces?: Traces | null;
};

/** The options of a stream. */
export type StreamOptions<Input> = Omit<EnqueueManyOptions<Input>, "onChunk"> & {
  readonly onChunk?: (jobs: readonly EnqueuedJob[], soFar: EnqueueSummary) => void;
  readonly payload: (input: Input) => string | Promise<string>;
  /** Jobs per write; default `CHUNK`. */
  readonly chunk?: number;
  /**
   * The name of a refused input in its error, after all inputs read before it are written. Default its index; then they
   * are not written.
   */
  readonly place?: (input: Input, index: number) => string;
};

/** Writes a stream of inputs as jobs of a type. */
export async function enqueueStream<Input>(
  parts: StreamDependencies,
  type: KnownType,
  inputs: Iterable<Input> | AsyncIterable<Input>,
  { each, onChunk, tx, payload, chunk = CHUNK[parts.store.remote ? "remote" : "here"], place }: StreamOptions<Input>,
): Promise<EnqueueSummary> {
  const chunks = chunkWriter(parts, tx, onChunk);
  const source = Symbol.asyncIterator in inputs ? inputs[Symbol.asyncIterator]() : inputs[Symbol.iterator]();
  let isOver = false;
  let index = 0;
  let length = 0;
  try {
    for (;;) {
      let step: Step<Input>;
      try {
        const asked = source.next() as Step<Input> | Promise<Step<Input>>;
        // No await for a value that is ready: it would cost more than the rest of the work on it.
        step = isPromise(asked) ? await asked : asked;
        // An array of promises is a source as well.
        if (isPromise(step.value)) step = { ...step, value: await step.value } as Step<Input>;
        isOver = step.done === true;
      } catch (error) {
        isOver = true;
        throw sourceFailed(error, { index, written: await chunks.written() });
      }
      if (step.done) break;
      try {
        const text = payload(step.value);
        const checked = typeof text === "string" ? text : await text;
        const job = newJobOf(type, checked, parts.system.jobId(), each?.(step.value, index));
        checkNewJob(job);
        chunks.jobs.push(job);
        length += checked.length;
      } catch (error) {
        if (place) await chunks.flush();
        throw refusedAt(place?.(step.value, index) ?? `Input ${index}`, error, {
          index,
          written: await chunks.written(),
        });
      }
      index += 1;
      if (chunks.jobs.length < chunk && length < WRITE_LENGTH) continue;
      await chunks.flush();
      length = 0;
    }
  } finally {
    if (!isOver) await source.return?.();
  }
  await chunks.flush();
  await chunks.written();
  return chunks.total;
}

type Step<Input> = IteratorResult<Input, undefined>;

/**
 * Writes a stream in chunks: the next chunk is made while one is being written, and also sent where their order does
 * not matter.
 */
function chunkWriter(parts: StreamDependencies, tx: unknown, onChunk: StreamOptions<never>["onChunk"]) {
  const total = { enqueued: 0, duplicates: 0, replaced: 0, conflicts: 0 };
  const to = tx === undefined ? parts.store : withinOf(parts.store, tx);
  const teller = tx === undefined ? parts : { ...parts, events: null };
  let count = 0;
  const write = async (jobs: readonly NewJob[], before: Promise<void>): Promise<void> => {
    let written = jobs;
    const send = (sent: readonly NewJob[]): Promise<EnqueueAnswer[]> => {
      written = sent;
      const checked = asChecked(sent);
      return tx === undefined ? patiently(() => to.enqueue(checked)) : to.enqueue(checked);
    };
    const answers = await (parts.traces ? parts.traces.send(jobs, send) : send(jobs));
    await before;
    count += jobs.length;
    const enqueued = answers.flatMap((answer, at) => {
      total[COUNTED[answer.kind]] += 1;
      const job = written[at] as NewJob;
      if (answer.kind === "conflict") teller.meter?.enqueued(job.type, "conflict");
      return answer.kind === "conflict" ? [] : [enqueueResult(teller, job, answer)];
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
      // The next caller that awaits it gets the error.
      writing.catch(() => undefined);
    },
    /** How many are written, once all chunks that were sent are. */
    async written() {
      await writing;
      return count;
    },
  };
  return chunks;
}

/** True for a job whose order among others does not matter. */
function isOnItsOwn({ key, group }: NewJob): boolean {
  return key === null && group === null;
}

/** How often a chunk is tried while another transaction holds one of its keys; the store waits a moment each time. */
const KEY_TRIES = 40;

/** Tries a chunk until its keys are free; nothing of it is written before that. */
export async function patiently<T>(write: () => Promise<T>): Promise<T> {
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

/** The progress of a stream: inputs read, and inputs that the store has answered. */
interface Progress {
  readonly index: number;
  readonly written: number;
}

/** The error of a source that failed midway. Chunks written before stay; inputs that were only read are not written. */
function sourceFailed(cause: unknown, { index, written }: Progress): RedriveError {
  const read = index - written;
  const message =
    `The source of the inputs failed after ${index}: ${textOf(cause)} (${written} of them were enqueued` +
    `${read > 0 ? `, the last ${read} were not` : ""})`;
  return new RedriveError("aborted", message, { cause, details: { index, written } });
}

/** A refused input of a stream, with its place; inputs written before stay. */
function refusedAt(place: string, error: unknown, { index, written }: Progress): unknown {
  if (!(error instanceof RedriveError)) return error;
  const message = `${place}: ${error.message} (${written} before it were enqueued)`;
  return new RedriveError(error.code, message, { cause: error, details: { ...error.details, index, written } });
}
