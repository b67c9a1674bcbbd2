// Batch handlers: what they get, what they answer for each item, and how one item alone goes through them. An item
// without an answer is of unknown outcome; what that means is decided where the batch is run.
import { type Duration, parseDuration } from "../core/duration.ts";
import { done, isOutcome, type ItemOutcome, laterOutcome, permanent, transient } from "../core/item-outcome.ts";
import type { Lease } from "../core/job.ts";
import { invalid, parseNumber, parseOptions } from "../core/options.ts";
import { isPromise } from "../core/promise.ts";
import type { Log } from "../system/log.ts";
import type { JobContext } from "./define-job.ts";

/** How jobs of a type are put together. */
export interface BatchOptions {
  /** Jobs in a batch at most; default 10, from 1 to 1,000. */
  readonly size?: number;
  /** The same for jobs that failed before, or were in a batch of unknown outcome; default `size`. */
  readonly retrySize?: number;
  /** How long the first job of a batch waits for others before it starts with what is there; default 0, at most 1 min. */
  readonly wait?: Duration;
  /** How a batch of unknown outcome is run again: in two halves, or each job alone; default `bisect`. */
  readonly onUnknown?: "single" | "bisect";
}

/** One job of a batch. */
export interface BatchItem<Input = unknown> {
  /** The id of the job. */
  readonly id: string;
  readonly input: Input;
  /** The input as the JSON text that was enqueued, byte for byte; absent where a schema made the input of it. */
  readonly text?: string;
  /** The attempt that is running, counted from 1. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /** Fires with the batch's, and when this job alone is cancelled or its lease is lost. */
  readonly signal: AbortSignal;
  /** Proof of ownership for the outside world: epoch and nonce of this run. */
  readonly lease: Lease;
}

/** What a batch handler gets beside its items. What it says of an item here is settled at once and stands. */
export interface BatchContext {
  /** Fires on timeout and shutdown, and when no item is left that anybody waits for. */
  readonly signal: AbortSignal;
  readonly log: Log;
  /** This item is being worked on now. If the batch dies, only items that were started and have no outcome are suspected. */
  started(id: string): void;
  done(id: string, result?: unknown): void;
  transient(id: string, error: unknown, options?: { readonly delay?: Duration }): void;
  permanent(id: string, error: unknown): void;
}

/** Outcomes in the order of the items, or by id; nothing where the context was told everything. */
export type BatchReturned<Result = unknown> =
  | readonly ItemOutcome<Result>[]
  | ReadonlyMap<string, ItemOutcome<Result>>
  | void;

/** A batch handler: says what became of each item, or throws. */
export type RunBatch<Input = unknown, Result = unknown> = (
  items: readonly BatchItem<Input>[],
  context: BatchContext,
) => BatchReturned<Result> | Promise<BatchReturned<Result>>;

/** How jobs of a type are put together, complete, and the handler. */
export interface BatchSettings {
  readonly size: number;
  readonly retrySize: number;
  readonly waitMs: number;
  readonly onUnknown: "single" | "bisect";
  /** How long the parts of a batch that was split wait. */
  readonly splitDelayMs: number;
  /** The handler runs in a process of its own, which outlives no worker and harms none. */
  readonly isOutside: boolean;
  readonly run: RunBatch;
}

const OUTSIDE = Symbol.for("redrive.outside");

/** Marks a batch handler that runs in a process of its own. */
export function outside(run: RunBatch): RunBatch {
  return Object.assign(run, { [OUTSIDE]: true });
}

/** The bounds of a batch. */
export const BATCH_BOUNDS = { size: 1_000, waitMs: 60_000 } as const;

/** Checks and completes the options. */
export function resolveBatch(options: BatchOptions | undefined, run: RunBatch, name: string): BatchSettings {
  const given = parseOptions(options ?? {}, ["size", "retrySize", "wait", "onUnknown"], `${name}.batch`);
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

/** Tells the outcomes that a handler returned, those in promises when they are there. Rejects if one of these does, after all. */
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

/** The outcomes that a handler returned, by id; throws where they cannot be told apart. */
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
  // What else is in promises will not be heard of, and must not end the process when it fails.
  for (const [, outcome] of pairs) if (isPromise(outcome)) outcome.then(undefined, () => undefined);
  for (const [, outcome] of pairs) if (!isOutcome(outcome)) throw invalid("runBatch", "an outcome", outcome, remedy);
  return new Map(pairs as [string, ItemOutcome][]);
}

/** The words of a context that say an outcome, given what hears it. */
export function outcomeWords(hear: Hear): Pick<BatchContext, "done" | "transient" | "permanent"> {
  return {
    done(id, result) {
      const outcome = done(result);
      const later = laterOutcome(outcome);
      if (!later) return hear(id, outcome);
      later.catch(() => undefined);
      // What is said on the way is settled at once.
      throw invalid("context.done", "a result", result, "await it first");
    },
    transient: (id, error, options) => hear(id, transient(error, options)),
    permanent: (id, error) => hear(id, permanent(error)),
  };
}

/** The error of an item about which its handler said nothing. */
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
      // What was said of an item stands, whatever became of the batch afterwards.
      if (!known.outcome) throw error;
    }
    const { outcome } = known;
    if (!outcome) throw noOutcome();
    return outcome;
  };
}
