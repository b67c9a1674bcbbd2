// Batch handlers: their items, their outcome for each item, and how a single item goes through them. An item without an
// outcome has an unknown outcome; the code that runs the batch decides what follows.
import { type Duration, parseDuration } from "../core/duration.ts";
import { done, isOutcome, type ItemOutcome, laterOutcome, permanent, transient } from "../core/item-outcome.ts";
import type { Lease } from "../core/job.ts";
import { invalid, parseNumber, namesOf, parseOptions } from "../core/options.ts";
import { isPromise } from "../core/promise.ts";
import type { Log } from "../system/log.ts";
import type { JobContext } from "./define-job.ts";

/** How jobs of a type are combined into batches. */
export interface BatchOptions {
  /** Most jobs in a batch; default 10, from 1 to 1,000. */
  readonly size?: number;
  /**
   * The same for jobs that failed before or were in a batch of unknown outcome, from 1 to 1,000; default and at most
   * `size`.
   */
  readonly retrySize?: number;
  /** How long the first job of a batch waits for more before the batch starts; default 0, at most 1 min. */
  readonly wait?: Duration;
  /**
   * How the jobs of a batch without outcomes run again: in halves (`bisect`) or one by one (`single`); default
   * `bisect`.
   */
  readonly onUnknown?: "single" | "bisect";
}

/** One job of a batch. */
export interface BatchItem<Input = unknown> {
  /** The id of the job. */
  readonly id: string;
  /** Its input: the output of the schema, or the JSON that was enqueued. */
  readonly input: Input;
  /** The input as JSON text, byte for byte as it was enqueued; absent where the type has a schema. */
  readonly text?: string;
  /** The attempt that runs now, from 1. */
  readonly attempt: number;
  /** Attempts in total. */
  readonly maxAttempts: number;
  /** Fires with the signal of the batch, and when this job alone is cancelled or has lost its lease. */
  readonly signal: AbortSignal;
  /** Proof for other systems that this run owns the job; see `JobContext`. */
  readonly lease: Lease;
}

/** What a batch handler gets besides its items. An outcome reported here is settled at once and final. */
export interface BatchContext {
  /** Fires on timeout and shutdown, and when no item of the batch is needed any more. */
  readonly signal: AbortSignal;
  /** The log. */
  readonly log: Log;
  /**
   * Reports that work on this item has begun. If the process dies, only items that were started and have no outcome
   * count as suspects.
   */
  started(id: string): void;
  /** This item succeeded, with this result. */
  done(id: string, result?: unknown): void;
  /** This item failed and is retried: after the delay, or after the backoff of the type. */
  transient(id: string, error: unknown, options?: { readonly delay?: Duration }): void;
  /** This item failed and is not retried. */
  permanent(id: string, error: unknown): void;
}

/** Outcomes in the order of the items, or by id; nothing where the context was told every outcome. */
export type BatchReturned<Result = unknown> =
  | readonly ItemOutcome<Result>[]
  | ReadonlyMap<string, ItemOutcome<Result>>
  | void;

/** A batch handler: reports an outcome for each item, or throws. */
export type RunBatch<Input = unknown, Result = unknown> = (
  items: readonly BatchItem<Input>[],
  context: BatchContext,
) => BatchReturned<Result> | Promise<BatchReturned<Result>>;

/** The complete batch settings of a type, and the handler. */
export interface BatchSettings {
  readonly size: number;
  readonly retrySize: number;
  readonly waitMs: number;
  readonly onUnknown: "single" | "bisect";
  /** How long the parts of a split batch wait. */
  readonly splitDelayMs: number;
  /** The handler runs in a child process, which ends with its worker and cannot harm it. */
  readonly isOutside: boolean;
  readonly run: RunBatch;
}

const OUTSIDE = Symbol.for("redrive.outside");

/** Marks a batch handler that runs in a child process. */
export function outside(run: RunBatch): RunBatch {
  return Object.assign(run, { [OUTSIDE]: true });
}

/** The bounds of a batch. */
export const BATCH_BOUNDS = { size: 1_000, waitMs: 60_000 } as const;
const FIELDS = namesOf<BatchOptions>()(["size", "retrySize", "wait", "onUnknown"]);

/** Checks and completes the options. */
export function resolveBatch(options: BatchOptions | undefined, run: RunBatch, name: string): BatchSettings {
  const given = parseOptions(options ?? {}, FIELDS, `${name}.batch`);
  if (typeof run !== "function")
    throw invalid(`${name}.runBatch`, "a function (items, context) => outcomes", run, "pass the handler");
  const { onUnknown = "bisect" } = given;
  if (onUnknown !== "single" && onUnknown !== "bisect")
    throw invalid(`${name}.batch.onUnknown`, '"bisect" or "single"', onUnknown, "use one of these");
  const count = (field: "size" | "retrySize", fallback: number): number =>
    parseNumber(given[field] ?? fallback, `${name}.batch.${field}`, { min: 1, max: BATCH_BOUNDS.size, integer: true });
  const size = count("size", 10);
  const retrySize = count("retrySize", size);
  const waitMs = parseDuration(given.wait ?? 0, `${name}.batch.wait`, { maxMs: BATCH_BOUNDS.waitMs });
  const isOutside = (run as { [OUTSIDE]?: unknown })[OUTSIDE] === true;
  return Object.freeze({
    size,
    retrySize: Math.min(size, retrySize),
    waitMs,
    onUnknown,
    splitDelayMs: 0,
    isOutside,
    run,
  });
}

type Hear = (id: string, outcome: ItemOutcome) => void;

/**
 * Reports the outcomes that a handler returned; those in promises when they resolve. Rejects at the end if one of them
 * does.
 */
export async function tellReturned(returned: unknown, items: readonly BatchItem[], hear: Hear): Promise<void> {
  const waits: Promise<void>[] = [];
  for (const [id, outcome] of outcomesOf(returned, items)) {
    const later = laterOutcome(outcome);
    if (later) waits.push(later.then((known) => hear(id, known)));
    else hear(id, outcome);
  }
  if (waits.length === 0) return;
  for (const ended of await Promise.allSettled(waits)) if (ended.status === "rejected") throw ended.reason;
}

/** The outcomes that a handler returned, by id; throws where they cannot be matched to items. */
function outcomesOf(returned: unknown, items: readonly BatchItem[]): Map<string, ItemOutcome> {
  if (returned === undefined) return new Map();
  const remedy = "return done(), transient() or permanent() for each item, in order or in a Map by id";
  const pairs =
    returned instanceof Map
      ? [...(returned as Map<string, unknown>)]
      : Array.isArray(returned) && returned.length === items.length
        ? items.map(({ id }, at) => [id, (returned as unknown[])[at]] as const)
        : null;
  if (!pairs) throw invalid("runBatch", `${items.length} outcomes`, returned, remedy);
  // Other promises among them are ignored, and must not end the process when they reject.
  for (const [, outcome] of pairs) if (isPromise(outcome)) outcome.then(undefined, () => undefined);
  for (const [, outcome] of pairs) if (!isOutcome(outcome)) throw invalid("runBatch", "an outcome", outcome, remedy);
  return new Map(pairs as [string, ItemOutcome][]);
}

/** The methods of a context that report an outcome, given a function that receives it. */
export function outcomeWords(hear: Hear): Pick<BatchContext, "done" | "transient" | "permanent"> {
  return {
    done(id, result) {
      const outcome = done(result);
      const later = laterOutcome(outcome);
      if (!later) return hear(id, outcome);
      later.catch(() => undefined);
      // An outcome reported during the batch is settled at once, so it cannot be a promise.
      throw invalid("context.done", "a result", result, "await it first");
    },
    transient: (id, error, options) => hear(id, transient(error, options)),
    permanent: (id, error) => hear(id, permanent(error)),
  };
}

/** The error of an item for which the handler gave no outcome. */
export function noOutcome(): Error {
  const message =
    "The batch handler ended without an outcome for this item. Return done(), transient() or permanent().";
  return Object.assign(new Error(message), { name: "NoOutcome", stack: undefined });
}

/** A batch handler as the handler of a single job. */
export function runAsOne(run: RunBatch, hasSchema = false): (input: unknown, context: JobContext) => Promise<unknown> {
  return async (input, context) => {
    const { job, attempt, maxAttempts, signal, lease, log } = context;
    const text = hasSchema ? {} : { text: job.payload };
    const items = [{ id: job.id, input, ...text, attempt, maxAttempts, signal, lease }];
    const known: { outcome: ItemOutcome | null } = { outcome: null };
    const hear = (id: string, outcome: ItemOutcome): void => {
      if (id === job.id) known.outcome ??= outcome;
    };
    try {
      const returned = await run(items, { signal, log, started: () => undefined, ...outcomeWords(hear) });
      await tellReturned(returned, items, hear);
    } catch (error) {
      // A reported outcome is final, whatever happens to the batch afterwards.
      if (!known.outcome) throw error;
    }
    const { outcome } = known;
    if (!outcome) throw noOutcome();
    return outcome;
  };
}
