// How jobs and verdicts travel between the caller's thread and the store thread, and between rows and objects. The
// hot ones (new jobs, claimed jobs, completions) go as one flat array each: copying thousands of small objects from
// thread to thread would cost more than writing them.
import type { Belonging } from "../../core/job.ts";
import type { NewJob, UniqueMode } from "../../core/new-job.ts";
import type { ClaimedJob, ClaimRequest, SettleRequest, Settlement } from "../store.ts";
import type { Value } from "../rows.ts";
import { failureFromText, keepFromText, keepText, UNREADABLE } from "../rows.ts";

/** The stack of a job's last failure, which stands in the record of that run and is not written twice. */
const lastStack = (job: string): string =>
  `(select a.error_stack from attempt a where a.job_seq = ${job}.seq order by a.epoch desc limit 1)`;

/** The columns of a job in the order of `jobFromRow`, with those of its lane. */
export const JOB_COLUMNS = `j.id, coalesce(l.type, '${UNREADABLE.type}'), coalesce(l.queue, '${UNREADABLE.queue}'), l.service, l.tenant,
  coalesce(l.priority, 0), j.key, j.state, j.payload, j.run_at,
  j.due_at, j.created_at, j.updated_at, j.started_at, j.finished_at, j.attempts, j.max_attempts, j.crashes,
  j.max_crashes, j.releases, j.generation, j.epoch, j.worker, j.cancel_requested, j.last_delay_ms, j.deadline_ms,
  j.stuck_ms, j.progress, j.result, j.failure, j.version, ${lastStack("j")}, j.limited, l.group_key, l.group_concurrency,
  j.stuck_retry_ms, j.stuck_limit, j.batch_most, j.keep_ms, j.keep_dead_ms, j.expires_at`;

/** New jobs as one flat array, `NEW_JOB_WIDTH` values each. */
export function packNewJobs(jobs: readonly NewJob[]): Value[] {
  const flat: Value[] = [];
  for (const job of jobs) {
    flat.push(job.id, job.type, job.queue, job.service, job.tenant, job.group, job.groupConcurrency, job.priority);
    flat.push(job.key, job.digest, job.payload);
    flat.push(job.runAt, job.delayMs, job.maxAttempts, job.maxCrashes, job.deadlineMs, job.stuckMs, job.version);
    flat.push(job.key === null ? null : job.unique, Number(job.limited), job.stuckRetryMs, job.stuckLimit);
    flat.push(job.keepFinishedMs, job.keepDeadMs);
  }
  return flat;
}

/** How many values a new job has in `packNewJobs`. */
export const NEW_JOB_WIDTH = 24;

/** Where in those values each field stands; type and the rest of what a job belongs to follow each other. */
export const NEW_JOB = {
  id: 0,
  type: 1,
  key: 8,
  payload: 10,
  runAt: 11,
  delayMs: 12,
  maxAttempts: 13,
  maxCrashes: 14,
  deadlineMs: 15,
  stuckMs: 16,
  version: 17,
  limited: 19,
  stuckRetryMs: 20,
  stuckLimit: 21,
  keepFinishedMs: 22,
  keepDeadMs: 23,
} as const;

/** The new job that begins at this place of the flat array. */
export function newJobAt(flat: readonly Value[], at: number): NewJob {
  return {
    id: flat[at] as string,
    type: flat[at + 1] as string,
    queue: flat[at + 2] as string,
    service: flat[at + 3] as string | null,
    tenant: flat[at + 4] as string | null,
    group: flat[at + 5] as string | null,
    groupConcurrency: flat[at + 6] as number | null,
    priority: flat[at + 7] as number,
    key: flat[at + 8] as string | null,
    digest: flat[at + 9] as string | null,
    payload: flat[at + 10] as string,
    runAt: flat[at + 11] as number | null,
    delayMs: flat[at + 12] as number,
    maxAttempts: flat[at + 13] as number,
    maxCrashes: flat[at + 14] as number,
    deadlineMs: flat[at + 15] as number | null,
    stuckMs: flat[at + 16] as number | null,
    version: flat[at + 17] as number,
    unique: (flat[at + 18] ?? "key") as UniqueMode,
    limited: flat[at + 19] === 1,
    stuckRetryMs: flat[at + 20] as number | null,
    stuckLimit: flat[at + 21] as number | null,
    keepFinishedMs: flat[at + 22] as number | null,
    keepDeadMs: flat[at + 23] as number | null,
  };
}

/** What the hot part of a claim carries: jobs as rows of `CLAIM_COLUMNS` and the lanes they are of. */
export interface ClaimWire {
  readonly flat: (Value | Value[])[];
  readonly belongings: [number, Belonging][];
  readonly now: number;
  readonly refused: "worker" | "control" | null;
}

/** The columns a claim reads of every job; what all its jobs share is not among them. */
export const CLAIM_COLUMNS = `seq, id, payload, epoch, run_at, due_at, created_at, max_attempts, max_crashes, version, limited,
  ${keepText("keep_ms", "keep_dead_ms")}`;

/** What most jobs have never used; read only where PLAIN is false. */
export const CLAIM_REST = `attempts, crashes, releases, generation, last_delay_ms, deadline_ms, stuck_ms, key, progress, failure,
  ${lastStack("job")}, stuck_retry_ms, stuck_limit, batch_most`;

/** True for a job that was never run or moved and has no time limits: nothing in CLAIM_REST says anything. */
export const PLAIN = `attempts = 0 and crashes = 0 and releases = 0 and generation = 1 and last_delay_ms = 0
  and deadline_ms is null and stuck_ms is null and key is null and progress is null and failure is null`;

/** How many of them go on the wire as they are: all behind its number. */
export const CLAIM_COUNT = 11;

/** How many values a claimed job has on the wire: id to how long it is kept, its lane, and its CLAIM_REST or null. */
export const CLAIM_WIDTH = CLAIM_COUNT + 2;

const NO_REST: readonly Value[] = [0, 0, 0, 1, 0, null, null, null, null, null, null, null, null, null];

/** Claimed jobs from the wire, in the order in which they were taken. */
export function unpackClaim(request: ClaimRequest, wire: ClaimWire): ClaimedJob[] {
  const { flat, now } = wire;
  const belongings = new Map(wire.belongings);
  const jobs: ClaimedJob[] = [];
  for (let at = 0; at < flat.length; at += CLAIM_WIDTH) {
    const of = belongings.get(flat[at + CLAIM_COUNT] as number) as Belonging;
    const keep = keepFromText(flat[at + 10] as string | null);
    const rest = (flat[at + CLAIM_COUNT + 1] ?? NO_REST) as readonly Value[];
    jobs.push({
      id: flat[at] as string,
      type: of.type,
      queue: of.queue,
      service: of.service,
      tenant: of.tenant,
      group: of.group,
      groupConcurrency: of.groupConcurrency,
      priority: of.priority,
      key: rest[7] as string | null,
      state: "running",
      payload: flat[at + 1] as string,
      runAt: flat[at + 3] as number,
      dueAt: flat[at + 4] as number,
      createdAt: flat[at + 5] as number,
      updatedAt: now,
      startedAt: now,
      finishedAt: null,
      expiresAt: null,
      attempts: rest[0] as number,
      maxAttempts: flat[at + 6] as number,
      crashes: rest[1] as number,
      maxCrashes: flat[at + 7] as number,
      version: flat[at + 8] as number,
      limited: flat[at + 9] === 1,
      keepFinishedMs: keep.keepFinishedMs,
      keepDeadMs: keep.keepDeadMs,
      releases: rest[2] as number,
      generation: rest[3] as number,
      epoch: (flat[at + 2] as number) + 1,
      worker: request.worker,
      cancelRequested: false,
      lastDelayMs: rest[4] as number,
      deadlineMs: rest[5] as number | null,
      stuckMs: rest[6] as number | null,
      stuckRetryMs: rest[11] as number | null,
      stuckLimit: rest[12] as number | null,
      progress: rest[8] as string | null,
      result: null,
      failure: failureFromText(rest[9] as string | null, rest[10] as string | null),
      batchMost: rest[13] as number | null,
      nonce: request.nonce,
      ticket: request.ticket + jobs.length,
    });
  }
  return jobs;
}

/**
 * Verdicts on their way to the store thread: id, epoch, nonce and result of each, flat and in order. Where the verdict
 * is not a completion, or says more than its result, the place of the result holds the verdict's position among the others.
 */
export interface SettleWire {
  readonly flat: Value[];
  readonly others: readonly OtherVerdict[];
  readonly worker: string | null;
  readonly startedThrough: number;
}

/** Everything a settlement can say but a plain completion. */
export type OtherVerdict = Settlement["verdict"];

/** Sorts verdicts for the wire. */
export function packSettle({ settlements, worker, startedThrough }: SettleRequest): SettleWire {
  const flat: Value[] = [];
  const others: OtherVerdict[] = [];
  for (const { id, epoch, nonce, verdict } of settlements) {
    if (verdict.kind === "complete" && verdict.keep !== false && !verdict.said)
      flat.push(id, epoch, nonce, verdict.result);
    else flat.push(id, epoch, nonce, others.push(verdict) - 1);
  }
  return { flat, others, worker: worker ?? null, startedThrough: startedThrough ?? 0 };
}
