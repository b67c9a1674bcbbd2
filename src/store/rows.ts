// Turns rows into jobs, dead letters and records of history, the same for every SQL store: each reads these columns in
// this order.
import { plainText } from "../core/failure.ts";
import { PRESETS } from "../core/policy.ts";
import {
  type AttemptRecord,
  type Belonging,
  type DeadLetter,
  type DeathReason,
  FAILURE_CLASSES,
  type Failure,
  type Job,
  type JobKeep,
  type Lease,
  type LetterOutcome,
  type State,
  type Terms,
} from "../core/job.ts";
import type { Cell } from "./cells.ts";
import { JOB_COLUMNS, JOB_WIDTH, REST_COLUMNS, type Value } from "./columns.ts";
import type { ExpiredRun, OverdueRun, WorkerRecord } from "./presence.ts";
import type { ClaimRequest } from "./store.ts";
import type { LetterGroup } from "./tally.ts";

/** The belonging under which unreadable jobs are counted. */
export const UNREADABLE: Belonging = {
  type: "redrive:unreadable",
  queue: "default",
  service: null,
  tenant: null,
  group: null,
  groupConcurrency: null,
  priority: 0,
};

/** A job from its row. */
export function jobFromRow(row: readonly Value[]): Job {
  const job: Record<string, unknown> = {};
  for (const [at, { field, isBoolean }] of JOB_COLUMNS.entries()) job[field] = isBoolean ? row[at] === 1 : row[at];
  const stack = row[JOB_WIDTH - 1] as string | null;
  return { ...(job as unknown as Job), failure: failureFromText(job["failure"] as string | null, stack) };
}

/** A job under construction. */
export type LooseJob = { -readonly [F in keyof Job]: Job[F] };

/** The same with the lease of a claim, and the terms that its type sets. */
type LooseClaimed = LooseJob & { nonce: string; ticket: number; said: Terms | undefined };

/** The number of crashes that most jobs allow. */
export const USUAL_CRASHES = 3;

/**
 * A job just claimed, with the values that most jobs have; its own values are added. It has `said` from the start, so that
 * V8 keeps one shape for all claimed jobs.
 */
const PLAIN_CLAIMED = {
  ...Object.fromEntries(JOB_COLUMNS.map(({ field, plain }) => [field, plain ?? null])),
  state: "running",
  cancelRequested: false,
  version: 1,
  limited: true,
  maxCrashes: USUAL_CRASHES,
  nonce: "",
  ticket: 0,
  said: undefined,
} as unknown as LooseClaimed;

/**
 * The job at a position in a claim, with its lane's values, its keep times and its lease; the store adds the rest. Fields
 * are set one by one, because a claim makes many jobs and all of them must keep one shape.
 */
export function claimedFrom(of: Belonging, kept: string | null, claim: ClaimRequest, at: number): LooseClaimed {
  const job = { ...PLAIN_CLAIMED };
  job.type = of.type;
  job.queue = of.queue;
  job.service = of.service;
  job.tenant = of.tenant;
  job.group = of.group;
  job.groupConcurrency = of.groupConcurrency;
  job.priority = of.priority;
  const keep = keepFromText(kept);
  job.keepFinishedMs = keep.keepFinishedMs;
  job.keepDeadMs = keep.keepDeadMs;
  job.worker = claim.worker;
  job.nonce = claim.nonce;
  job.ticket = claim.ticket + at;
  return job;
}

/** Adds what a claim has read of `REST_COLUMNS`, and the stack after it, to a job. */
export function putRest(job: LooseJob, rest: readonly unknown[]): void {
  const loose = job as unknown as Record<string, unknown>;
  for (const [at, { field }] of REST_COLUMNS.entries()) loose[field] = rest[at];
  job.failure = failureFromText(loose["failure"] as string | null, rest[REST_COLUMNS.length] as string | null);
}

const { keepFinishedMs: USUAL_KEEP, keepDeadMs: USUAL_KEEP_DEAD } = PRESETS.default;

/**
 * The keep times of a job as one text of these columns, only where they are not the usual ones: a claim reads it of
 * every job.
 */
export const keepText = (keepMs: string, keepDeadMs: string): string =>
  `case when ${keepMs} = ${USUAL_KEEP} and ${keepDeadMs} = ${USUAL_KEEP_DEAD} then null
    else coalesce(cast(${keepMs} as text), '') || ',' || coalesce(cast(${keepDeadMs} as text), '') end`;

const USUAL: JobKeep = { keepFinishedMs: USUAL_KEEP, keepDeadMs: USUAL_KEEP_DEAD };

/** The keep times of a job, from that text. */
function keepFromText(text: string | null): JobKeep {
  if (text === null) return USUAL;
  const [keepFinishedMs = null, keepDeadMs = null] = text.split(",").map((ms) => (ms === "" ? null : Number(ms)));
  return { keepFinishedMs, keepDeadMs };
}

/** A job for a list without payloads: those of a page can have gigabytes. */
export function withoutPayload(job: Job): Job {
  return { ...job, payload: "null", progress: null, result: null };
}

/** The columns of a job for such a list. */
export function columnsFor(columns: string, { payloads }: { readonly payloads?: boolean }): string {
  if (payloads !== false) return columns;
  return columns.replace("j.payload", "'null'").replace("j.progress", "null").replace("j.result", "null");
}

/** A failure as text; its stack is left to the column beside it where both are the same. */
export function failureText(failure: Failure): string {
  const { stack, ...rest } = failure;
  return JSON.stringify(stack !== null && plainText(stack) === stack ? rest : failure);
}

/** A failure from its text and the stack beside it; a damaged one is shown as such and never stops a read. */
export function failureFromText(text: string | null, stack: string | null): Failure | null {
  if (text === null) return null;
  try {
    const failure = JSON.parse(text) as Failure | null;
    if (typeof failure?.message === "string" && FAILURE_CLASSES.includes(failure.class))
      return failure.stack === undefined ? { ...failure, stack } : failure;
  } catch {
    // Handled below, like any other text that is not a failure.
  }
  return { class: "system", severity: "error", name: "UnreadableFailure", message: text, stack: null, fingerprint: "" };
}

/** The columns of a dead letter, before those of its job. */
export const DEATH_COLUMNS =
  "d.generation, d.reason, d.failure, d.attempts, d.crashes, d.died_at, d.redriven_at, d.error_stack, d.release, d.redrive, d.outcome, d.outcome_at";
/** The number of these columns, and of the two about the job that holds the key now. */
export const DEATH_WIDTH = 14;

/** A dead letter from its own columns followed by those of its job. */
export function deadLetterFromRow(row: readonly Value[]): DeadLetter {
  return {
    generation: row[0] as number,
    reason: row[1] as DeathReason,
    failure: failureFromText(row[2] as string, row[7] as string | null) as Failure,
    attempts: row[3] as number,
    crashes: row[4] as number,
    release: row[8] as string | null,
    diedAt: row[5] as number,
    redrivenAt: row[6] as number | null,
    redrive: row[9] as string | null,
    outcome: row[10] as LetterOutcome | null,
    outcomeAt: row[11] as number | null,
    supersededBy: row[12] === null ? null : { id: row[12] as string, state: row[13] as State | null },
    job: jobFromRow(row.slice(DEATH_WIDTH)),
  };
}

/** A record of history from its row. */
export function attemptFromRow(row: readonly Value[]): AttemptRecord {
  return {
    jobId: row[0] as string,
    generation: row[1] as number,
    epoch: row[2] as number,
    attempt: row[3] as number,
    worker: row[4] as string | null,
    startedAt: row[5] as number | null,
    endedAt: row[6] as number,
    delayMs: row[7] as number | null,
    failure: failureFromText(row[8] as string, row[9] as string | null) as Failure,
    key: row[10] as string | null,
    release: row[11] as string | null,
  };
}

/** The belonging of a lane, from its columns in this order, which begin at this index. */
export function belongingAt(row: readonly unknown[], at = 0): Belonging {
  return {
    type: row[at] as string,
    queue: row[at + 1] as string,
    service: row[at + 2] as string | null,
    tenant: row[at + 3] as string | null,
    group: row[at + 4] as string | null,
    groupConcurrency: row[at + 5] as number | null,
    priority: row[at + 6] as number,
  };
}

/** A lease from its row. */
export function leaseFromRow(row: readonly Value[]): Lease {
  return { id: row[0] as string, epoch: row[1] as number, nonce: row[2] as string };
}

/** A worker from its row; whether it was given up is 1 or 0. */
export function workerFromRow(row: readonly Value[]): WorkerRecord {
  const [id, host, release] = [row[0], row[2], row[3]] as [string, string, string | null];
  const [pid, leaseEnd, startedAt, beatAt] = [row[1], row[4], row[5], row[6]] as [number, number, number, number];
  return { id, pid, host, release, leaseEnd, startedAt, beatAt, givenUp: row[7] === 1, running: row[8] as number };
}

/** A run of a worker that was given up: a job, its nonce, whether it had started, and its position. */
export function expiredFromRow(row: readonly Value[]): ExpiredRun {
  const job = jobFromRow(row);
  const lease = { id: job.id, epoch: job.epoch, nonce: row[JOB_WIDTH] as string };
  return { job, lease, started: row[JOB_WIDTH + 1] === 1, position: row[JOB_WIDTH + 2] as number };
}

/** A run that exceeds a limit: the same, and how long it has been running. */
export function overdueFromRow(row: readonly Value[]): OverdueRun {
  return { ...expiredFromRow(row), ranMs: row[JOB_WIDTH + 3] as number };
}

/** Dead letters that were counted together. */
export function groupFromRow(row: readonly Value[]): LetterGroup {
  const [fingerprint, failureClass, type, reason] = row as string[] as [string, string, string, string];
  const [count, firstAt, lastAt, newest] = row.slice(4) as [number, number, number, number];
  return { fingerprint, class: failureClass, type, reason, count, firstAt, lastAt, newest };
}

/** A cell from its row. */
export function cellFromRow(row: readonly Value[]): Cell {
  const [kind, name, holder, version, value, at] = row as [string, string, string, number, string, number];
  return { kind, name, holder, version, value, at };
}
