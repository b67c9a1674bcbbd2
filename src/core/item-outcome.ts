// What a handler returns about its work: done, transient or permanent. Outcomes carry a registered symbol, so that
// those of another copy of this library count, and a result that happens to look like one stays a result.
import { type Duration, parseDuration } from "./duration.ts";
import { messageOf, read } from "./error-shape.ts";
import { RedriveError } from "./errors.ts";
import { parseOptions } from "./options.ts";
import { isPromise } from "./promise.ts";

const OUTCOME = Symbol.for("redrive.outcome");
/** Marks a snooze of any copy of this library. */
export const SNOOZE = Symbol.for("redrive.snooze");

/** The outcome of a job, or of one item of a batch; made by `done`, `transient` and `permanent`. */
export type ItemOutcome<Result = unknown> = DoneOutcome<Result> | FailedOutcome;

interface DoneOutcome<Result> {
  readonly [OUTCOME]: true;
  readonly status: "done";
  readonly result: Result;
}

/** The outcome of work that its handler reported as failed. */
export type FailedOutcome =
  | {
      readonly [OUTCOME]: true;
      readonly status: "transient";
      readonly error: unknown;
      readonly delayMs: number | null;
    }
  | { readonly [OUTCOME]: true; readonly status: "permanent"; readonly error: unknown };

/** The results in a function's return type: those of `done`, also from promises; failures are left out. */
export type ResultOf<Returned> =
  Returned extends PromiseLike<infer Later>
    ? ResultOf<Later>
    : Returned extends { readonly [OUTCOME]: true }
      ? Returned extends DoneOutcome<infer Result>
        ? Result
        : never
      : Returned;

/** Returned by a handler: the work succeeded. */
export function done(): ItemOutcome<undefined>;
/**
 * Returned by a handler: the work succeeded with this result. An outcome given as result is passed on unchanged.
 * Redrive awaits a promise, as if the handler had returned it. A snooze is refused: its work is not done.
 */
export function done<Result>(result: Result): ItemOutcome<ResultOf<Result>>;
export function done(result?: unknown): ItemOutcome {
  if (typeof result === "object" && result !== null && SNOOZE in result)
    throw new RedriveError(
      "invalid_argument",
      "done: expected a result; got a snooze; return the snooze itself, without done",
    );
  return isOutcome(result) ? result : { [OUTCOME]: true, status: "done", result };
}

/** Returned by a handler: the work failed and is retried, after `delay` if given. Takes a message or an error. */
export function transient(error: unknown, options: { readonly delay?: Duration } = {}): ItemOutcome<never> {
  const { delay } = parseOptions(options, ["delay"], "transient");
  const delayMs = delay === undefined ? null : parseDuration(delay, "transient.delay");
  return { [OUTCOME]: true, status: "transient", error, delayMs };
}

/** Returned by a handler: the work failed and is not retried. Takes a message or an error. */
export function permanent(error: unknown): ItemOutcome<never> {
  return { [OUTCOME]: true, status: "permanent", error };
}

/** True for an outcome made by any copy of this library. */
export function isOutcome(value: unknown): value is ItemOutcome {
  if (typeof value !== "object" || value === null || read(value, OUTCOME) !== true) return false;
  const status = read(value, "status");
  return status === "done" || status === "transient" || status === "permanent";
}

/** True for an outcome, returned or thrown, that reports a failure. */
export function isFailed(value: unknown): value is FailedOutcome {
  return isOutcome(value) && value.status !== "done";
}

/** The result in what a function returned, or the promise of it; throws where it reports a failure. */
export function resultOf(returned: unknown): unknown {
  if (!isOutcome(returned)) return returned;
  if (isFailed(returned)) throw new OutcomeError(returned);
  return isPromise(returned.result) ? Promise.resolve(returned.result).then(resultOf) : returned.result;
}

/** For a result that is a promise, the promise of the final outcome; null where the result is no promise. */
export function laterOutcome(outcome: ItemOutcome): Promise<ItemOutcome> | null {
  return outcome.status === "done" && isPromise(outcome.result) ? outcomeAfter(outcome.result) : null;
}

async function outcomeAfter(promise: Promise<unknown>): Promise<ItemOutcome> {
  const outcome = done(await promise);
  return laterOutcome(outcome) ?? outcome;
}

/**
 * A failed outcome for callers that expect a rejection. It is itself an outcome, so that it keeps its meaning when
 * rethrown.
 */
class OutcomeError extends Error {
  readonly [OUTCOME] = true;
  readonly status: FailedOutcome["status"];
  readonly delayMs: number | null;

  constructor(outcome: FailedOutcome) {
    super(messageOf(outcome.error), { cause: outcome.error });
    this.name = "OutcomeError";
    this.status = outcome.status;
    this.delayMs = outcome.status === "transient" ? outcome.delayMs : null;
  }

  get error(): unknown {
    return this.cause;
  }
}
