// How jobs and verdicts are sent between the caller's thread and the store thread, and turned from rows into objects.
// The hot ones (new jobs, claimed jobs, completions) go as one flat array each: copying thousands of small objects
// between threads would cost more than writing them.
import type { Belonging } from "../../core/job.ts";
import type { NewJob, UniqueMode } from "../../core/new-job.ts";
import type { ClaimedJob, ClaimRequest, SettleRequest, Settlement } from "../store.ts";
import {
  isPlainJob,
  ofGeneration,
  pushTerms,
  restColumns,
  selectJob,
  TERM_COLUMNS,
  termsAt,
  type Value,
} from "../columns.ts";
import { claimedFrom, keepText, putRest, UNREADABLE } from "../rows.ts";

/** The stack of a job's last failure, which is stored in the record of that run and not twice. */
const lastStack = (job: string): string =>
  `(select a.error_stack from attempt a where a.job_seq = ${job}.seq order by a.epoch desc limit 1)`;

/** The columns of a job in the order of `jobFromRow`, with those of its lane. */
export const SELECT_JOB = selectJob({
  type: `coalesce(l.type, '${UNREADABLE.type}')`,
  queue: `coalesce(l.queue, '${UNREADABLE.queue}')`,
  priority: "coalesce(l.priority, 0)",
  failure: ofGeneration("j", "attempt", "failure"),
  stack: lastStack("j"),
});

/** Joins jobs with their belonging. */
export const WITH_LANE = "left join lane l on l.base = j.lane - j.lane % 4";

/** A page of rows on the wire. */
export interface RowPage {
  readonly rows: Value[][];
  readonly next: string | null;
  readonly seenTo?: number;
  readonly through?: number;
}

/** New jobs as one flat array, `NEW_JOB_WIDTH` values each. */
export function packNewJobs(jobs: readonly NewJob[]): Value[] {
  const flat: Value[] = [];
  for (const job of jobs) {
    flat.push(job.id, job.type, job.queue, job.service, job.tenant, job.group, job.groupConcurrency, job.priority);
    flat.push(job.key, job.digest, job.payload, job.runAt, job.delayMs, job.version);
    flat.push(job.key === null ? null : job.unique, Number(job.limited), job.trace);
    pushTerms(flat, job);
  }
  return flat;
}

/** The index of each field in those values; the rest of the belonging follows the type, the terms come last. */
export const NEW_JOB = {
  id: 0,
  type: 1,
  key: 8,
  payload: 10,
  runAt: 11,
  delayMs: 12,
  version: 13,
  limited: 15,
  trace: 16,
  terms: 17,
} as const;

/** How many values a new job has in `packNewJobs`. */
export const NEW_JOB_WIDTH = NEW_JOB.terms + TERM_COLUMNS.length;

/** The new job that begins at this index of the flat array. */
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
    version: flat[at + 13] as number,
    unique: (flat[at + 14] ?? "key") as UniqueMode,
    limited: flat[at + 15] === 1,
    trace: flat[at + NEW_JOB.trace] as string | null,
    ...termsAt(flat, at + NEW_JOB.terms),
  };
}

/** The hot part of a claim: jobs as rows of `CLAIM_COLUMNS` and their lanes. */
export interface ClaimWire {
  readonly flat: (Value | Value[])[];
  readonly belongings: [number, Belonging][];
  readonly now: number;
  readonly refused: "worker" | "control" | null;
}

/** The columns a claim reads of every job; not those that all its jobs share. */
export const CLAIM_COLUMNS = `seq, id, payload, epoch, run_at, due_at, created_at, max_attempts, max_crashes, version, limited,
  ${keepText("keep_ms", "keep_dead_ms")}, trace`;

/** Columns that most jobs have never used; read only where PLAIN is false. */
export const CLAIM_REST = `${restColumns("job", "attempt")}, ${lastStack("job")}`;

/** True for a job that never ran or moved and has no time limits: all of CLAIM_REST has default values. */
export const PLAIN = isPlainJob();

/** How many of them are sent unchanged: all after its number. */
export const CLAIM_COUNT = 12;

/** How many values a claimed job has on the wire: id to trace, its lane, and its CLAIM_REST or null. */
export const CLAIM_WIDTH = CLAIM_COUNT + 2;

/** Claimed jobs from the wire, in the order in which they were taken. */
export function unpackClaim(request: ClaimRequest, wire: ClaimWire): ClaimedJob[] {
  const { flat, now } = wire;
  const belongings = new Map(wire.belongings);
  const jobs: ClaimedJob[] = [];
  for (let at = 0; at < flat.length; at += CLAIM_WIDTH) {
    const of = belongings.get(flat[at + CLAIM_COUNT] as number) as Belonging;
    const job = claimedFrom(of, flat[at + 10] as string | null, request, jobs.length);
    job.id = flat[at] as string;
    job.payload = flat[at + 1] as string;
    job.epoch = (flat[at + 2] as number) + 1;
    job.runAt = flat[at + 3] as number;
    job.dueAt = flat[at + 4] as number;
    job.createdAt = flat[at + 5] as number;
    job.updatedAt = job.startedAt = now;
    job.maxAttempts = flat[at + 6] as number;
    job.maxCrashes = flat[at + 7] as number;
    job.version = flat[at + 8] as number;
    job.limited = flat[at + 9] === 1;
    job.trace = flat[at + 11] as string | null;
    const rest = flat[at + CLAIM_COUNT + 1] as readonly Value[] | null;
    if (rest !== null) putRest(job, rest);
    jobs.push(job);
  }
  return jobs;
}

/**
 * Verdicts for the store thread: id, epoch, nonce and result of each, flat and in order. Where the verdict is not a
 * completion, or has more than a result, the place of the result holds the verdict's index among the others.
 */
export interface SettleWire {
  readonly flat: Value[];
  readonly others: readonly OtherVerdict[];
  readonly worker: string | null;
  readonly startedThrough: number;
  /** Which of them are about jobs that were sent back to work, counted from 0; null for none. */
  readonly redriven: ReadonlySet<number> | null;
}

/** Every settlement except a plain completion. */
export type OtherVerdict = Settlement["verdict"];

/** Sorts verdicts for the wire. */
export function packSettle({ settlements, worker, startedThrough }: SettleRequest): SettleWire {
  const flat: Value[] = [];
  const others: OtherVerdict[] = [];
  let redriven: Set<number> | null = null;
  for (const { id, epoch, nonce, verdict, redriven: isRedriven } of settlements) {
    if (isRedriven) (redriven ??= new Set()).add(flat.length / 4);
    if (verdict.kind === "complete" && verdict.keep !== false && !verdict.said)
      flat.push(id, epoch, nonce, verdict.result);
    else flat.push(id, epoch, nonce, others.push(verdict) - 1);
  }
  return { flat, others, worker: worker ?? null, startedThrough: startedThrough ?? 0, redriven };
}
