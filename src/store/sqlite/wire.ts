// How jobs and verdicts are sent between the caller's thread and the store thread, and turned from rows into objects.
// The hot ones (new jobs, claimed jobs, completions) go as one flat array each: copying thousands of small objects
// between threads would cost more than writing them.
import { type Belonging, TERM_READERS } from "../../core/job.ts";
import type { NewJob, UniqueMode } from "../../core/new-job.ts";
import type { ClaimedJob, ClaimRequest, SettleRequest, Settlement } from "../store.ts";
import { isPlainJob, ofGeneration, restColumns, selectJob, TERM_COLUMNS, termsAt, type Value } from "../columns.ts";
import { belongingAt, claimedFrom, keepText, putRest, UNREADABLE } from "../rows.ts";

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

/**
 * New jobs on the wire. The jobs of one call are mostly alike: of neighbours that differ only in id and payload, the first
 * goes whole and the others as these two.
 */
export interface NewJobsWire {
  /** The first ones, `NEW_JOB_WIDTH` values each. */
  readonly flat: Value[];
  /** How many jobs follow each of them that are like it. */
  readonly alike: number[];
  /** Their ids and payloads. */
  readonly own: string[];
  /** How many jobs these are in all. */
  readonly count: number;
}

/** Sorts new jobs for the wire. */
export function packNewJobs(jobs: readonly NewJob[]): NewJobsWire {
  const [flat, alike, own]: [Value[], number[], string[]] = [[], [], []];
  const values: Value[] = Array(NEW_JOB_WIDTH).fill(null);
  for (const job of jobs) {
    putNewJob(values, job);
    if (job.key === null && isLikeLast(flat, values)) {
      own.push(job.id, job.payload);
      alike[alike.length - 1] = (alike.at(-1) as number) + 1;
    } else {
      flat.push(...values);
      alike.push(0);
    }
  }
  return { flat, alike, own, count: jobs.length };
}

function putNewJob(values: Value[], job: NewJob): void {
  values[NEW_JOB.id] = job.id;
  values[NEW_JOB.type] = job.type;
  values[NEW_JOB.type + 1] = job.queue;
  values[NEW_JOB.type + 2] = job.service;
  values[NEW_JOB.type + 3] = job.tenant;
  values[NEW_JOB.type + 4] = job.group;
  values[NEW_JOB.type + 5] = job.groupConcurrency;
  values[NEW_JOB.type + 6] = job.priority;
  values[NEW_JOB.key] = job.key;
  values[NEW_JOB.digest] = job.digest;
  values[NEW_JOB.payload] = job.payload;
  values[NEW_JOB.runAt] = job.runAt;
  values[NEW_JOB.delayMs] = job.delayMs;
  values[NEW_JOB.version] = job.version;
  values[NEW_JOB.unique] = job.key === null ? null : job.unique;
  values[NEW_JOB.limited] = Number(job.limited);
  values[NEW_JOB.trace] = job.trace;
  let at: number = NEW_JOB.terms;
  for (const of of TERM_READERS) values[at++] = of(job);
}

/** True if these values are those of the last job in the flat array, but for id and payload. */
function isLikeLast(flat: readonly Value[], values: readonly Value[]): boolean {
  const last = flat.length - NEW_JOB_WIDTH;
  if (last < 0) return false;
  for (let at = NEW_JOB.type; at < NEW_JOB_WIDTH; at++)
    if (at !== (NEW_JOB.payload as number) && flat[last + at] !== values[at]) return false;
  return true;
}

/** The index of each field in the values of a job; the rest of the belonging follows the type, the terms come last. */
export const NEW_JOB = {
  id: 0,
  type: 1,
  key: 8,
  digest: 9,
  payload: 10,
  runAt: 11,
  delayMs: 12,
  version: 13,
  unique: 14,
  limited: 15,
  trace: 16,
  terms: 17,
} as const;

/** How many values a new job has where it goes whole. */
export const NEW_JOB_WIDTH = NEW_JOB.terms + TERM_COLUMNS.length;

/** The new job that begins at this index of the flat array. */
export function newJobAt(flat: readonly Value[], at: number): NewJob {
  return {
    id: flat[at] as string,
    ...belongingAt(flat, at + NEW_JOB.type),
    key: flat[at + NEW_JOB.key] as string | null,
    digest: flat[at + NEW_JOB.digest] as string | null,
    payload: flat[at + NEW_JOB.payload] as string,
    runAt: flat[at + NEW_JOB.runAt] as number | null,
    delayMs: flat[at + NEW_JOB.delayMs] as number,
    version: flat[at + NEW_JOB.version] as number,
    unique: (flat[at + NEW_JOB.unique] ?? "key") as UniqueMode,
    limited: flat[at + NEW_JOB.limited] === 1,
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
