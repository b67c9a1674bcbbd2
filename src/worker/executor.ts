// Carries one job through its run: start → run → judge → settle → report, each a function of a few lines over one
// record. It waits and calls; only core/verdict.ts decides what follows a run.
import { classify } from "../core/classify.ts";
import { formatDuration } from "../core/duration.ts";
import { failureFrom, textOf } from "../core/failure.ts";
import { isOutcome, laterOutcome } from "../core/item-outcome.ts";
import type { Failure, Job } from "../core/job.ts";
import { encodeResult } from "../core/payload.ts";
import { isPromise } from "../core/promise.ts";
import { type Outcome, pastDeadline, runtimeFailure, type Verdict, verdict } from "../core/verdict.ts";
import { type JobDefinition, snoozeMs } from "../jobs/define-job.ts";
import { isMisfit, validated } from "../jobs/schema.ts";
import type { ClaimedJob, Store } from "../store/store.ts";
import { isLogged, type Log } from "../system/log.ts";
import type { System } from "../system/system.ts";
import { RunContext } from "./context.ts";
import type { Gate } from "../services/service-gate.ts";
import { aboutJob } from "../report/about-job.ts";
import type { Reporter } from "../report/reporter.ts";
import type { Traces } from "../report/traces.ts";
import { Run, type StopReason } from "./run.ts";
import type { Done, Settler } from "./settler.ts";

/** How long a job waits for a worker that knows its version; longer than the grace of any drain. */
export const NEWER_WORKER_MS = 30_000;

/** What the executor works with. */
export interface ExecutorOptions {
  readonly system: System;
  readonly log: Log;
  /** How long a handler may take after its abort signal before its slot counts as leaked. */
  readonly abortGraceMs: number;
  /** Time a job was parked or paused until this store time, which deadlines do not count. */
  readonly heldMs: (job: Job, until: number) => number;
  readonly settle: Settler["settle"];
  readonly store: Pick<Store, "name" | "within">;
  readonly report: Reporter;
  /** The gate between jobs and the services they depend on. */
  readonly gate: Pick<Gate, "start" | "heard">;
  /** Makes spans; absent where no traces are made. */
  readonly traces?: Traces | null;
  /** True once the worker starts nothing more. */
  readonly isStopping?: () => boolean;
}

/** Called when a run is settled: `returned` is false if its handler ignored the abort signal and keeps the slot. */
export type Ended = (run: Run, returned: boolean) => void;

/** Runs a claimed job and settles it; `claimedMs` is when its claim was answered, on the monotonic clock. */
export function execute(
  job: ClaimedJob,
  definition: JobDefinition,
  claimedMs: number,
  options: ExecutorOptions,
  ended: Ended,
): Run {
  const run = new Run(job, definition, claimedMs, options.system.monotonic());
  const disarm = arm(run, options);
  let open = true;
  let giveUp: (() => void) | null = null;
  const held = job.service === null ? null : options.gate.start(job);
  // The first to finish counts, the handler or the code that gives it up; later calls are ignored.
  const finish = (outcome: Outcome, returned = true): Promise<void> | void => {
    if (!open) return;
    open = false;
    disarm?.();
    giveUp?.();
    const heard = job.service === null || held ? outcome : options.gate.heard(job, outcome);
    if (isPromise(heard)) return heard.then((known) => end(run, known, returned, options, ended));
    end(run, heard, returned, options, ended);
  };
  run.onStop = (reason) => {
    giveUp = open ? giveUpLater(run, reason, options, finish) : null;
  };
  if (!held) run.trace = options.traces?.run([job]) ?? null;
  const outcome = held ? Promise.resolve(held) : callHandler(run, options);
  run.returned = outcome.then(finish);
  return run;
}

function end(run: Run, outcome: Outcome, returned: boolean, options: ExecutorOptions, ended: Ended): void {
  settle(run, outcome, options);
  ended(run, returned);
}

/** Settles a run whose handler does not return in time for the worker to stop. */
export function abandon(run: Run, options: ExecutorOptions): void {
  settle(run, { kind: "released", reason: "shutdown", delayMs: 0 }, options);
}

/** Arms the timeout and the stuck limit; returns a function that disarms them. */
function arm(run: Run, { system }: ExecutorOptions): (() => void) | null {
  const { timeoutMs } = run.definition.policy;
  const { stuckMs } = run.job;
  if (timeoutMs === null && stuckMs === null) return null;
  const timeout = timeoutMs === null ? null : system.after(timeoutMs, () => run.stop("timeout"));
  const stuck = stuckMs === null ? null : system.after(stuckMs, () => run.stop("stuck"));
  return () => {
    timeout?.();
    stuck?.();
  };
}

/**
 * After the grace, settles a run that was asked to stop without waiting for its handler. A shutdown has a separate
 * grace.
 */
function giveUpLater(
  run: Run,
  reason: StopReason,
  options: ExecutorOptions,
  finish: (outcome: Outcome, returned: boolean) => unknown,
): (() => void) | null {
  if (reason === "shutdown") return null;
  return options.system.after(options.abortGraceMs, () => void finish(outcomeOfStop(run, reason, options), false));
}

/** The input for the handler; or, where it cannot be called, the outcome of the run. */
export type Ready = { readonly input: unknown; readonly outcome?: undefined } | { readonly outcome: Outcome };

/** Prepares a run: checks its deadline, its version, its input. Waits only where there is a schema. */
export function makeReady(run: Run, options: ExecutorOptions): Ready | Promise<Ready> {
  const { job, definition } = run;
  if (job.deadlineMs !== null && isLate(run, options)) return { outcome: tooLate(job) };
  if (job.version > definition.version) return { outcome: tooNew(run, options) };
  let input: unknown;
  try {
    input = JSON.parse(job.payload);
  } catch (error) {
    return { outcome: unfit("UnreadablePayload", `The stored payload is not valid JSON: ${textOf(error)}`) };
  }
  if (!definition.input) return { input };
  return validated(definition.input, input, job.type)
    .then(
      (value): Ready => ({ input: value }),
      (error: unknown) => ({ outcome: misfit(run, error, options) }),
    )
    .then((ready) => {
      // If the run was given up during the check, another worker may have the job by now.
      return run.stopped ? { outcome: outcomeOfStop(run, run.stopped, options) } : ready;
    });
}

async function callHandler(run: Run, options: ExecutorOptions): Promise<Outcome> {
  const { job, definition } = run;
  // From here on the stack is the handler's own: an error it throws carries none of our frames, which would cost more
  // than a turn.
  const ready = await makeReady(run, options);
  if (ready.outcome) return ready.outcome;
  // If the run was given up meanwhile, another worker may have the job by now.
  if (run.stopped) return outcomeOfStop(run, run.stopped, options);
  if (isLogged(options.log, "info"))
    options.log.info(aboutJob(job, run.trace), `processing (attempt ${job.attempts + 1}/${job.maxAttempts})`);
  try {
    const context = new RunContext(run, options);
    const given = run.trace
      ? run.trace.within(() => definition.run(ready.input, context))
      : definition.run(ready.input, context);
    // Awaiting a plain value would cost as much as the rest of this function.
    const value = isPromise(given) ? await given : given;
    const delayMs = snoozeMs(value);
    if (delayMs !== null) return { kind: "released", reason: "snooze", delayMs };
    if (!isOutcome(value)) return { kind: "completed", result: encodeResult(value) };
    const said = (await laterOutcome(value)) ?? value;
    return said.status === "done"
      ? { kind: "completed", result: encodeResult(said.result) }
      : failed(run, said, options);
  } catch (error) {
    return failed(run, error, options);
  }
}

/** The outcome of a run whose handler threw, or returned a failure. */
function failed(run: Run, thrown: unknown, options: ExecutorOptions): Outcome {
  if (run.stopped) return outcomeOfStop(run, run.stopped, options);
  return { kind: "failed", failure: judgeThrown(run, thrown, options) };
}

/**
 * The store's time, as far as it is known: the time of the claim, and what has passed since. Our own clock may be
 * wrong.
 */
function storeTime({ job, claimedMs }: Run, monotonicMs: number): number {
  return (job.startedAt ?? 0) + Math.round(monotonicMs - claimedMs);
}

function isLate(run: Run, options: ExecutorOptions): boolean {
  const now = storeTime(run, options.system.monotonic());
  return pastDeadline(run.job, now, options.heldMs(run.job, now));
}

function tooLate({ deadlineMs, type }: Job): Outcome {
  const message = `The deadline of ${formatDuration(deadlineMs ?? 0)} passed before ${type} could run.`;
  return { kind: "late", failure: runtimeFailure("timeout", "DeadlinePassed", message) };
}

/** The producer is newer than this worker; a worker of the new version will come, so the job is not charged. */
function tooNew({ job, definition, trace }: Run, { log }: ExecutorOptions): Outcome {
  const about = { ...aboutJob(job, trace), version: job.version, known: definition.version };
  log.warn(about, "the payload is of a newer version than this worker knows; left to a newer worker");
  return { kind: "released", reason: "newer_version", delayMs: NEWER_WORKER_MS };
}

/** An input that its schema refuses can never run; a schema that fails itself is a failure like any other. */
function misfit(run: Run, error: unknown, options: ExecutorOptions): Outcome {
  if (isMisfit(error, run.job.type)) return unfit("InvalidInput", error.message);
  return { kind: "failed", failure: judgeThrown(run, error, options) };
}

/** A payload that was damaged in the store, or does not match the schema; its text stays in the job. */
function unfit(name: string, message: string): Outcome {
  const error = Object.assign(new Error(message), { name, stack: undefined });
  return { kind: "failed", failure: failureFrom(error, { class: "validation", severity: "error" }) };
}

/** The outcome of a run that was asked to stop and did not complete anyway. */
export function outcomeOfStop(run: Run, reason: StopReason, { system }: ExecutorOptions): Outcome {
  switch (reason) {
    case "timeout": {
      const message = `The run took longer than ${formatDuration(run.definition.policy.timeoutMs ?? 0)}.`;
      return { kind: "failed", failure: runtimeFailure("timeout", "TimeoutError", message) };
    }
    case "stuck":
      return { kind: "stuck", ranMs: Math.round(system.monotonic() - run.startedMs) };
    case "cancel":
      return { kind: "cancelled" };
    case "shutdown":
      return { kind: "released", reason: "shutdown", delayMs: 0 };
    default:
      return { kind: "released", reason: "contact_lost", delayMs: 0 };
  }
}

/** The failure of a run, from what its handler threw or returned. */
export function judgeThrown({ job, definition }: Run, thrown: unknown, { system }: ExecutorOptions): Failure {
  const { type, service, tenant } = job;
  return failureFrom(thrown, classify(thrown, { type, service, tenant }, definition.rules, system.now()));
}

/**
 * Lets core judge the run, hands the verdict to the settler and its result to the reporter. Only once, because a
 * handler may return after its run was settled without it.
 */
export function settle(run: Run, outcome: Outcome, options: ExecutorOptions): void {
  if (run.isSettled) return;
  run.isSettled = true;
  const { job, definition } = run;
  run.endedMs = options.system.monotonic();
  const now = storeTime(run, run.endedMs);
  const held = job.deadlineMs === null ? 0 : options.heldMs(job, now);
  const answer: Verdict = verdict(job, outcome, definition.policy, now, options.system.random, held);
  run.trace?.judged(job, answer);
  // Never for progress, which is not sent from here.
  const done: Done = (settled, counted) => {
    run.onSettled?.();
    run.trace?.settled(job, settled);
    options.report(job, counted as Verdict, settled, run);
  };
  options.settle(job, answer, done, run.completion);
}
