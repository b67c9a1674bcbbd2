// Decides what happens after a finished run. Every retry rule of Redrive is in this file: a worker, a reaper and a test
// call the same function, and a store applies its answer without deciding anything.
//
//   completed ───────────────────────────────► complete  and deleted where it is not kept and never failed
//   cancelled, or a cancel was asked for ────► cancel
//   released (shutdown, breaker, snooze …) ──► release   nothing charged
//   late: no run before the deadline ────────► dead      deadline, nothing charged
//   failed ── not worth retrying ────────────► dead      permanent
//          ── attempts used up ──────────────► dead      exhausted
//          ── next try after the deadline ───► dead      deadline
//          ── otherwise ─────────────────────► retry     after the backoff
//   stuck ─── retries after it used up ──────► dead      stuck
//          ── otherwise like failed, with its own message and wait
//   lost ──── ran in a child process ────────► release   nothing charged
//          ── crash budget or attempts spent ► dead      crashed
//          ── otherwise ─────────────────────► retry     at once, as a suspect
//   never run: fetched ahead, or its claim's answer was lost
//          ──────────────────────────────────► release   nothing charged
//   refused: the store will not take the verdict
//          ──────────────────────────────────► dead      permanent
//   unreadable: its row cannot be used ──────► dead      permanent, nothing charged
import { type Backoff, delayBefore } from "./backoff.ts";
import { isRetryable } from "./classify-rules.ts";
import { formatDuration } from "./duration.ts";
import { fingerprint } from "./fingerprint.ts";
import { type DeathReason, type Failure, type Job, type JobLimits, putTerms, type Terms, USUAL_TERMS } from "./job.ts";
import { type LaneKind, laneKind } from "./lane.ts";
import type { Breaker } from "./service-record.ts";
import type { WhenOpen } from "./service.ts";

/** Why a run was handed back uncharged. */
export const RELEASE_REASONS = [
  "shutdown",
  "breaker",
  "rate_limit",
  "snooze",
  "not_started",
  "contact_lost",
  "newer_version",
  "split",
  "worker_died",
] as const;
/** One of `RELEASE_REASONS`. */
export type ReleaseReason = (typeof RELEASE_REASONS)[number];

/** How a run ended. */
export type Outcome =
  | { readonly kind: "completed"; readonly result: string | null }
  | { readonly kind: "failed"; readonly failure: Failure; readonly batchMost?: number }
  | { readonly kind: "released"; readonly reason: ReleaseReason; readonly delayMs: number; readonly batchMost?: number }
  | { readonly kind: "cancelled" }
  /** The deadline passed before the run could begin. */
  | { readonly kind: "late"; readonly failure: Failure }
  /** The breaker of its service is open, and its jobs do not wait for it. */
  | { readonly kind: "blocked"; readonly failure: Failure }
  | { readonly kind: "stuck"; readonly ranMs: number }
  /** `isOutside`: the handler ran in a child process, so the death of its worker says nothing against the job. */
  | { readonly kind: "lost"; readonly started: boolean; readonly worker: string; readonly isOutside?: boolean };

/** The outcome of a job that meets a breaker which is not closed, by the configuration of its service. */
export function outcomeWhenOpen(service: string, breaker: Breaker, whenOpen: WhenOpen): Outcome {
  if (whenOpen === "park") return { kind: "released", reason: "breaker", delayMs: 0 };
  const why = "reason" in breaker ? breaker.reason : "it is being probed";
  const found = runtimeFailure("crashed", "BreakerOpen", `The breaker of ${service} is open: ${why}.`);
  const failure: Failure = { ...found, class: "transient", severity: "warning" };
  return whenOpen === "fail" ? { kind: "failed", failure } : { kind: "blocked", failure };
}

/** What a failed run adds to the record of its job. */
export interface Charge {
  readonly attempts: 0 | 1;
  readonly crashes: 0 | 1;
}

/** The terms by which the run was judged, written with the verdict; absent where the job already carries them. */
export interface JudgedBy {
  /** The limits of the job's type; present only where the job was enqueued by a program that does not define the type. */
  readonly said?: Terms | undefined;
}

/** What the store must do with the job. */
export type Verdict =
  /** The run succeeded; the job is completed. */
  | (JudgedBy & {
      readonly kind: "complete";
      /** JSON text of what the handler returned; null where it returned nothing. */
      readonly result: string | null;
      /** False: the job is deleted as it completes, because it is not kept. */
      readonly keep?: false;
    })
  /** The run failed, was stuck or was lost; the job waits for its next attempt. */
  | (JudgedBy & {
      readonly kind: "retry";
      /** The wait before the next attempt, in milliseconds. */
      readonly delayMs: number;
      /** How the job is served from now on: `retry`, or `suspect` and `last` for one whose worker died. */
      readonly lane: LaneKind;
      /** What this run uses up: `{ attempts: 0 | 1, crashes: 0 | 1 }`. */
      readonly charge: Charge;
      /** What went wrong. */
      readonly failure: Failure;
      /** From now on the job runs in batches of at most this many; absent, nothing changes. */
      readonly batchMost?: number;
    })
  /** The run is handed back without using an attempt. */
  | {
      readonly kind: "release";
      /** The wait before the job is due again, in milliseconds. */
      readonly delayMs: number;
      /** Why it was handed back. */
      readonly reason: ReleaseReason;
      /** From now on the job runs in batches of at most this many; absent, nothing changes. */
      readonly batchMost?: number;
    }
  /** The job dies and becomes a dead letter. */
  | (JudgedBy & {
      readonly kind: "dead";
      /** Why it is not tried again. */
      readonly reason: DeathReason;
      /** What this run uses up: `{ attempts: 0 | 1, crashes: 0 | 1 }`. */
      readonly charge: Charge;
      /** What went wrong. */
      readonly failure: Failure;
    })
  /** The job is cancelled. */
  | (JudgedBy & { readonly kind: "cancel" });

/** A verdict that hands a run back. */
type Released = Extract<Verdict, { readonly kind: "release" }>;
/** A verdict that ends a job. */
type Dead = Extract<Verdict, { readonly kind: "dead" }>;

/** The part of a policy that judging needs. */
export interface RetryPolicy {
  readonly backoff: Backoff;
  /** How long finished jobs are kept; with 0 a job that never failed is deleted as it completes. */
  readonly keepFinishedMs: number;
}

/** The part of a job that judging needs. */
export type JudgedJob = Pick<
  Job,
  | Exclude<keyof JobLimits, "stuckMs" | "limited">
  | "attempts"
  | "crashes"
  | "dueAt"
  | "lastDelayMs"
  | "cancelRequested"
  | "failure"
  | "generation"
> &
  JudgedBy;

/** A call without a queue as `verdict` sees it: no worker loses it, and no run of it is stuck. */
export type JudgedCall = JudgedJob & { attempts: number; lastDelayMs: number };

/** A call that begins at this time, judged by these terms; its caller counts the attempts. */
export function judgedCall(terms: Terms, dueAt: number): JudgedCall {
  const call = { ...NEW_CALL, dueAt };
  putTerms(call, terms);
  return call;
}

const NEW_CALL: JudgedCall & { -readonly [T in keyof Terms]: Terms[T] } = {
  ...USUAL_TERMS,
  attempts: 0,
  lastDelayMs: 0,
  crashes: 0,
  dueAt: 0,
  cancelRequested: false,
  failure: null,
  generation: 1,
};

const FAILED: Charge = { attempts: 1, crashes: 0 };
const UNCHARGED: Charge = { attempts: 0, crashes: 0 };

/**
 * The verdict about a run. `heldMs` is the time the job was parked or paused, which deadlines do not count. Pure: the
 * same arguments and random numbers give the same answer.
 */
export function verdict(
  job: JudgedJob,
  outcome: Outcome,
  policy: RetryPolicy,
  now: number,
  random: () => number,
  heldMs = 0,
): Verdict {
  const answer = judge(job, outcome, policy, now, random, heldMs);
  // A release judges nothing, and a job deleted with its run needs no terms.
  const isSilent = job.said === undefined || answer.kind === "release" || ("keep" in answer && answer.keep === false);
  return isSilent ? answer : { ...answer, said: job.said };
}

function judge(
  job: JudgedJob,
  outcome: Outcome,
  policy: RetryPolicy,
  now: number,
  random: () => number,
  heldMs: number,
): Verdict {
  if (outcome.kind === "completed") {
    const { result } = outcome;
    const keep = policy.keepFinishedMs > 0 || job.failure !== null || job.generation > 1;
    return keep ? { kind: "complete", result } : { kind: "complete", result, keep: false };
  }
  if (outcome.kind === "cancelled" || job.cancelRequested) return { kind: "cancel" };
  if (outcome.kind === "lost" && outcome.isOutside) return { kind: "release", delayMs: 0, reason: "worker_died" };
  if (outcome.kind === "lost") return lostVerdict(job, outcome);
  if (outcome.kind === "late") return { kind: "dead", reason: "deadline", charge: UNCHARGED, failure: outcome.failure };
  if (outcome.kind === "blocked")
    return { kind: "dead", reason: "breaker", charge: UNCHARGED, failure: outcome.failure };
  if (outcome.kind === "released") return { ...outcome, kind: "release" };

  const attempts = job.attempts + 1;
  if (outcome.kind === "stuck") {
    const retries = Math.min(job.stuckLimit ?? Number.POSITIVE_INFINITY, job.maxAttempts - 1);
    const failure = stuckFailure(outcome.ranMs, attempts, retries);
    if (attempts > retries) return { kind: "dead", reason: "stuck", charge: FAILED, failure };
    return retryBefore(job, failure, attempts, job.stuckRetryMs, policy, now, random, heldMs);
  }
  const { failure } = outcome;
  if (!isRetryable(failure.class)) return { kind: "dead", reason: "permanent", charge: FAILED, failure };
  if (attempts >= job.maxAttempts) return { kind: "dead", reason: "exhausted", charge: FAILED, failure };
  const again = retryBefore(job, failure, attempts, null, policy, now, random, heldMs);
  const { batchMost } = outcome;
  return again.kind === "retry" && batchMost !== undefined ? { ...again, batchMost } : again;
}

/** True when a job's deadline has passed, so that the job dies instead of running. */
export function pastDeadline(job: Pick<Job, "deadlineMs" | "dueAt">, at: number, heldMs = 0): boolean {
  return job.deadlineMs !== null && at - job.dueAt - heldMs > job.deadlineMs;
}

function retryBefore(
  job: JudgedJob,
  failure: Failure,
  attempts: number,
  fixedMs: number | null,
  policy: RetryPolicy,
  now: number,
  random: () => number,
  heldMs: number,
): Verdict {
  const delayMs =
    fixedMs ?? delayBefore(policy.backoff, { attempt: attempts, failure, previousDelayMs: job.lastDelayMs, random });
  if (pastDeadline(job, now + delayMs, heldMs)) return { kind: "dead", reason: "deadline", charge: FAILED, failure };
  return { kind: "retry", delayMs, lane: laneKind(attempts, job.crashes, job.maxCrashes), charge: FAILED, failure };
}

/** A worker died while it held the job: a crash for every such job, an attempt only for those that had started. */
function lostVerdict(job: JudgedJob, outcome: { readonly started: boolean; readonly worker: string }): Verdict {
  // A job that had not started never dies of it: its last crash is not used up by another job's crash.
  const spared = !outcome.started && job.crashes + 1 >= job.maxCrashes;
  const charge: Charge = { attempts: outcome.started ? 1 : 0, crashes: spared ? 0 : 1 };
  const crashes = job.crashes + charge.crashes;
  const attempts = job.attempts + charge.attempts;
  const failure = crashFailure(outcome.worker, outcome.started, crashes, job.maxCrashes);
  if (crashes >= job.maxCrashes) return { kind: "dead", reason: "crashed", charge, failure };
  if (attempts >= job.maxAttempts) return { kind: "dead", reason: "exhausted", charge, failure };
  return { kind: "retry", delayMs: 0, lane: laneKind(attempts, crashes, job.maxCrashes), charge, failure };
}

function crashFailure(worker: string, started: boolean, crashes: number, maxCrashes: number): Failure {
  const when = started ? "while this job was running" : "before this job had started";
  const message = `Worker ${worker} died ${when} - crash ${crashes}/${maxCrashes}`;
  return runtimeFailure("crashed", "WorkerDied", message);
}

/** Shorter runs are not shown in hours, because they would read 0.0. */
const SHORT_MS = 360_000;

function stuckFailure(ranMs: number, attempts: number, retries: number): Failure {
  const long = ranMs < SHORT_MS ? formatDuration(ranMs) : `${(ranMs / 3_600_000).toFixed(1)}h`;
  const end =
    attempts <= retries ? `retry ${attempts}/${retries} scheduled` : `permanently failed after ${retries} attempts`;
  return runtimeFailure("stuck", "RunStuck", `Run stuck for ${long} - ${end}`);
}

/** The verdict about a job that was claimed and never ran; `breaker` where its breaker opened meanwhile. */
export function unstartedVerdict(reason: "not_started" | "breaker" = "not_started"): Released {
  return { kind: "release", reason, delayMs: 0 };
}

/** The verdict instead of one that the store refuses: the job dies, so that it neither hangs nor runs again forever. */
export function refusedVerdict(kind: string, why: string): Dead {
  const failure = runtimeFailure("crashed", "VerdictRefused", `The store refused the ${kind} of this run: ${why}`);
  return { kind: "dead", reason: "permanent", charge: FAILED, failure };
}

/** The verdict about a waiting job whose row cannot be used: damaged by hand, or written by another version. */
export function unreadableVerdict(why: string): Dead {
  const message = `The job's row ${why}; it was set aside with its payload untouched.`;
  const failure: Failure = { ...runtimeFailure("crashed", "UnreadableJob", message), class: "system" };
  return { kind: "dead", reason: "permanent", charge: UNCHARGED, failure };
}

/** The failures that the runtime finds itself and that are stored, by name. */
const RUNTIME_FAILURES: ReadonlyMap<string, "crashed" | "stuck" | "timeout"> = new Map([
  ["BreakerOpen", "crashed"],
  ["DeadlinePassed", "timeout"],
  ["ProcessDied", "crashed"],
  ["RunStuck", "stuck"],
  ["TimeoutError", "timeout"],
  ["UnreadableJob", "crashed"],
  ["VerdictRefused", "crashed"],
  ["WorkerDied", "crashed"],
]);

/** The fingerprint that today's rules give a stored failure. */
export function fingerprintOf({ class: found, name, message, stack, code }: Failure): string {
  const kind = stack === null ? RUNTIME_FAILURES.get(name) : undefined;
  return kind === undefined
    ? fingerprint({ name, message, stack, class: found, code })
    : runtimeFailure(kind, name, message).fingerprint;
}

/** A failure that the runtime found, not a handler: no stack, and one fingerprint per name. */
export function runtimeFailure(kind: "crashed" | "stuck" | "timeout", name: string, message: string): Failure {
  const severity = kind === "crashed" ? "critical" : kind === "stuck" ? "error" : "warning";
  return {
    class: kind,
    severity,
    name,
    message,
    stack: null,
    fingerprint: fingerprint({ name, message: name, stack: null, class: kind }),
  };
}
