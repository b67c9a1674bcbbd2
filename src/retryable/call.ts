// One call of a function with retries: attempt, judge, wait, repeat. The same `verdict` that judges jobs decides about
// each failure; this file only calls and waits.
//
// Most calls succeed at once and pay for nothing else: no timer, no signal, no closure.
import { setMaxListeners } from "node:events";
import { classify } from "../core/classify.ts";
import { formatDuration } from "../core/duration.ts";
import { RedriveError } from "../core/errors.ts";
import { failureFrom } from "../core/failure.ts";
import { resultOf } from "../core/item-outcome.ts";
import { isPromise } from "../core/promise.ts";
import type { Failure } from "../core/job.ts";
import { invalid } from "../core/options.ts";
import { type JudgedJob, runtimeFailure, verdict } from "../core/verdict.ts";
import type { System } from "../system/system.ts";
import { Attempt, within } from "./attempt.ts";
import { type CallBreaker, isBreaker, REFUSED } from "../services/call-breaker.ts";
import { ProcessBreaker } from "../services/process-breaker.ts";
import { isSignal, type RetryableSettings } from "./settings.ts";

/** Any function, as it is called. */
export type Callable = (this: unknown, ...args: unknown[]) => unknown;

/** A wrapped function and everything its calls share. */
interface Task extends Omit<RetryableSettings, "breaker"> {
  readonly fn: Callable;
  /** Its name in errors. */
  readonly label: string;
  readonly breaker: CallBreaker | null;
  /** Whether the function gets its attempt before its arguments. */
  readonly passesContext: boolean;
  readonly system: System;
}

/** The function with retries. */
export function callOf(fn: Callable, settings: RetryableSettings, passesContext: boolean, system: System): Callable {
  const { service, breaker, policy, signal } = settings;
  const name = fn.name || "function";
  const own = breaker === null || isBreaker(breaker) ? breaker : new ProcessBreaker(service ?? name, breaker, system);
  const label = service === null ? name : `${name} (${service})`;
  const task = { ...settings, fn, label, breaker: own, passesContext, system };
  return passesContext || signal !== null || policy.timeoutMs !== null ? limitedCall(task) : plainCall(task);
}

/** No limit can end an attempt: the first is called here, and only its failure costs more. */
function plainCall(task: Task): Callable {
  const { fn, breaker, system } = task;
  const timed = task.policy.deadlineMs !== null;
  return async function (this: unknown, ...args) {
    const startedMs = timed ? system.monotonic() : 0;
    const period = breaker === null ? 0 : breaker.admit();
    if (period === REFUSED) throw breaker?.refusal(task.label, 0, undefined);
    let call: Call;
    try {
      const given = resultOf(await fn.apply(this, args));
      const result = isPromise(given) ? await given : given;
      if (breaker !== null) breaker.succeeded(period);
      return result;
    } catch (error) {
      call = new Call(task, this, args, null, startedMs);
      await waitAfter(error, period, call);
    }
    return pursue(call);
  };
}

/** Every attempt may be abandoned before it ends, or gets a context. */
function limitedCall(task: Task): Callable {
  return async function (this: unknown, ...args) {
    const signal = signalOf(task, args);
    const call = new Call(task, this, args, signal, task.system.monotonic());
    if (signal?.aborted) throw aborted(call, undefined);
    return pursue(call);
  };
}

/** A call that needs more than its first attempt; to `verdict` it is a job like any other. */
class Call implements JudgedJob {
  readonly task: Task;
  readonly self: unknown;
  readonly args: unknown[];
  readonly signal: AbortSignal | null;
  /** The error of the attempt that took too long, if one did. */
  tooLong: RedriveError | null = null;
  /** Attempts that failed, and the wait after the last of them. */
  attempts = 0;
  lastDelayMs = 0;
  lastError: unknown = undefined;
  readonly crashes = 0;
  readonly maxAttempts: number;
  readonly maxCrashes: number;
  readonly deadlineMs: number | null;
  /** On the monotonic clock, like the `now` of its verdicts: setting the clock must not shorten a deadline. */
  readonly dueAt: number;
  readonly stuckRetryMs = null;
  readonly stuckLimit = null;
  readonly cancelRequested = false;
  readonly failure = null;
  readonly generation = 1;

  constructor(task: Task, self: unknown, args: unknown[], signal: AbortSignal | null, startedMs: number) {
    this.task = task;
    this.self = self;
    this.args = args;
    this.signal = signal;
    this.maxAttempts = task.policy.maxAttempts;
    this.maxCrashes = task.policy.maxCrashes;
    this.deadlineMs = task.policy.deadlineMs;
    this.dueAt = startedMs;
  }
}

/** Makes attempts until one succeeds or the verdict is to give up. */
async function pursue(call: Call): Promise<unknown> {
  const { breaker, label } = call.task;
  for (;;) {
    const period = breaker === null ? 0 : breaker.admit();
    if (period === REFUSED) throw breaker?.refusal(label, call.attempts, call.lastError);
    try {
      const given = resultOf(await attempt(call));
      const result = isPromise(given) ? await given : given;
      breaker?.succeeded(period);
      return result;
    } catch (error) {
      await waitAfter(error, period, call);
    }
  }
}

function attempt(call: Call): unknown {
  const { task, self, args, signal } = call;
  const { timeoutMs } = task.policy;
  if (signal === null && timeoutMs === null && !task.passesContext) return task.fn.apply(self, args);
  const current = new Attempt(call.attempts + 1, call.maxAttempts);
  const work = async () => resultOf(await task.fn.apply(self, task.passesContext ? [current, ...args] : args));
  if (signal === null && timeoutMs === null) return work();
  const tooLong = () => (call.tooLong = tookTooLong(call));
  return within({ timeoutMs, tooLong, signal, system: task.system }, current, work);
}

/** Judges a failed attempt and waits for the next one; throws where there is none. */
async function waitAfter(error: unknown, period: number, call: Call): Promise<void> {
  const { task, signal } = call;
  const { breaker, policy, system, onRetry } = task;
  if (signal?.aborted) {
    breaker?.lost(period);
    throw aborted(call, error);
  }
  const failure = failureOf(error, call);
  breaker?.failed(period, failure.class);
  const answer = verdict(call, { kind: "failed", failure }, policy, system.monotonic(), system.random);
  if (answer.kind !== "retry") throw answer.kind === "dead" && answer.reason === "deadline" ? late(call, error) : error;
  const { delayMs } = answer;
  call.attempts++;
  call.lastDelayMs = delayMs;
  call.lastError = error;
  // If the breaker is still open after the wait, the wait is useless.
  if (breaker?.outlasts(delayMs)) throw breaker.refusal(task.label, call.attempts, error);
  if (onRetry) await onRetry({ attempt: call.attempts, maxAttempts: call.maxAttempts, delayMs, failure, error });
  if (delayMs > 0 && !signal?.aborted) await system.sleep(delayMs, signal ?? undefined);
  if (signal?.aborted) throw aborted(call, error);
}

function failureOf(error: unknown, { task, tooLong }: Call): Failure {
  if (tooLong !== null && error === tooLong) return runtimeFailure("timeout", "TimeoutError", tooLong.message);
  const { service, rules, system } = task;
  return failureFrom(error, classify(error, { service }, rules, system.now()));
}

function signalOf({ signal, label }: Task, args: readonly unknown[]): AbortSignal | null {
  const chosen = typeof signal === "function" ? (signal(...args) ?? null) : signal;
  if (chosen === null) return null;
  if (!isSignal(chosen)) {
    throw invalid(`${label}: retryable.signal`, "an AbortSignal or undefined from the function", chosen, "return one");
  }
  // One signal for all calls of a process is normal use; Node takes the eleventh listener for a leak.
  if (chosen instanceof EventTarget) setMaxListeners(0, chosen);
  return chosen;
}

function tookTooLong({ task, attempts }: Call): RedriveError {
  const timeoutMs = task.policy.timeoutMs ?? 0;
  const message = `${task.label}: attempt ${attempts + 1} took longer than its timeout of ${formatDuration(timeoutMs)}`;
  return new RedriveError("timeout", message, { details: { timeoutMs, attempts: attempts + 1 } });
}

function late({ task, attempts, deadlineMs }: Call, cause: unknown): RedriveError {
  const limit = formatDuration(deadlineMs ?? 0);
  const message = `${task.label}: gave up after attempt ${attempts + 1}, the next one would begin after the deadline of ${limit}`;
  return new RedriveError("timeout", message, { cause, details: { deadlineMs, attempts: attempts + 1 } });
}

/** The cause is the signal's reason; the last failure, if there was one, is in the details. */
function aborted({ task, signal, attempts, lastError }: Call, error: unknown): RedriveError {
  const cause: unknown = signal?.reason;
  const failed = error === cause ? lastError : error;
  const details = failed === undefined ? { attempts } : { attempts, error: failed };
  return new RedriveError("aborted", `${task.label}: the caller's signal fired`, { cause, details });
}
