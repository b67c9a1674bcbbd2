// The tables of the memory store, and two things every verb needs: interned lanes, and waiting jobs in order of due
// time.
import type { LoggedEvent } from "../../core/event-log.ts";
import type { AttemptRecord, Belonging, DeadLetter, Job, LetterOutcome } from "../../core/job.ts";
import { firstLane, laneName, laneOfKind } from "../../core/lane.ts";
import type { RedriveSums } from "../../core/recovery/outcome.ts";
import type { CauseRow, FlowRow, TickRow } from "./causes.ts";
import type { PayloadVersion } from "../payloads.ts";
import type { Cell, Pause, PauseTarget, ServiceState, WorkerRecord } from "../store.ts";

/** A job as stored: its fields, mutable, and those that only the store uses. */
export type Row = { -readonly [K in keyof Job]: Job[K] } & {
  readonly seq: number;
  lane: number;
  /** Null unless the job runs: a spent lease matches nothing. */
  nonce: string | null;
  ticket: number;
};

/** A worker as stored. */
export type WorkerRow = { -readonly [K in keyof Omit<WorkerRecord, "running">]: WorkerRecord[K] } & {
  startedThrough: number;
};

/** A death as stored; the payload stays with the job. */
export interface DeathRow
  extends Omit<DeadLetter, "job" | "redrivenAt" | "redrive" | "outcome" | "outcomeAt" | "supersededBy"> {
  readonly seq: number;
  readonly jobId: string;
  redrivenAt: number | null;
  redrive: string | null;
  outcome: LetterOutcome | null;
  outcomeAt: number | null;
}

/** A death that was not sent back to work. */
export const NOT_SENT = { redrivenAt: null, redrive: null, outcome: null, outcomeAt: null } as const;

/** Counts of a span of time. */
export interface Ticked {
  /** Its start. */
  readonly at: number;
  /** Empty once it is folded. */
  readonly holder: string;
}
/** The same fields, which may be changed. */
export type Writable<T> = { -readonly [K in keyof T]: T[K] };
/** What a holder has counted of a redrive run in a tick. */
export type RedriveTickRow = Ticked & { readonly redrive: string } & Writable<RedriveSums>;

/** The job that a key stands for, as long as the key is kept. */
export interface KeyRow {
  readonly jobId: string;
  readonly digest: string;
  readonly createdAt: number;
}

/** The name of a key in `keys`. */
export function keyName(type: string, key: string | null): string {
  return JSON.stringify([type, key]);
}

/** All tables. */
export interface Tables {
  readonly clock: () => number;
  readonly jobs: Map<string, Row>;
  readonly keys: Map<string, KeyRow>;
  readonly lanes: Map<string, number>;
  readonly belongings: Map<number, Belonging>;
  /** Since when each lane has had no job, by number. */
  readonly empty: Map<number, number>;
  /** Waiting jobs by lane, each in order of due time and arrival. */
  readonly waiting: Map<number, Row[]>;
  readonly running: Set<Row>;
  /** Jobs that hold a place in their group, by the name of the group. */
  readonly placed: Map<string, Set<Row>>;
  readonly workers: Map<string, WorkerRow>;
  /** How many have ever registered. */
  workersSeen: number;
  readonly attempts: Map<string, AttemptRecord[]>;
  readonly deaths: DeathRow[];
  /** The folded counts of causes, and those per minute. */
  readonly causes: Map<string, CauseRow>;
  readonly ticks: Map<string, TickRow>;
  readonly flow: Map<string, FlowRow>;
  readonly redriveTicks: Map<string, RedriveTickRow>;
  /** The payloads of jobs that got another one, by id, in the order of their numbers. */
  readonly payloads: Map<string, PayloadVersion[]>;
  readonly pauses: (Pause & { until: number | null })[];
  readonly services: Map<string, ServiceState>;
  readonly cells: Map<string, Cell>;
  /** In the order of their numbers. */
  readonly events: (LoggedEvent & { readonly once: boolean })[];
  /** The number of the last event ever written. */
  lastEvent: number;
  sequence: number;
  laneCount: number;
  controlVersion: number;
}

/** An empty store. */
export function emptyTables(clock: () => number): Tables {
  return {
    clock,
    jobs: new Map(),
    keys: new Map(),
    lanes: new Map(),
    belongings: new Map(),
    empty: new Map(),
    waiting: new Map(),
    running: new Set(),
    placed: new Map(),
    workers: new Map(),
    workersSeen: 0,
    attempts: new Map(),
    deaths: [],
    causes: new Map(),
    ticks: new Map(),
    flow: new Map(),
    redriveTicks: new Map(),
    payloads: new Map(),
    pauses: [],
    services: new Map(),
    cells: new Map(),
    events: [],
    lastEvent: 0,
    sequence: 0,
    laneCount: 0,
    controlVersion: 1,
  };
}

/** The number of the lane for first attempts of a belonging; always the same. */
export function internLane(tables: Tables, belonging: Belonging): number {
  const { type, queue, service, tenant, group, groupConcurrency, priority } = belonging;
  const name = laneName(belonging);
  const known = tables.lanes.get(name);
  tables.empty.delete(known ?? -1);
  if (known !== undefined) return known;
  const lane = firstLane(tables.laneCount++, priority);
  tables.lanes.set(name, lane);
  tables.belongings.set(lane, { type, queue, service, tenant, group, groupConcurrency, priority });
  return lane;
}

/** The belonging of a lane. */
export function belongingOf(tables: Tables, lane: number): Belonging {
  return tables.belongings.get(laneOfKind(lane, "first")) as Belonging;
}

/** Adds a job to the waiting ones, after those that are due before it or came before it. */
export function startWaiting(tables: Tables, row: Row): void {
  const line = tables.waiting.get(row.lane) ?? [];
  tables.waiting.set(row.lane, line);
  let from = 0;
  let to = line.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    const other = line[middle] as Row;
    if (other.runAt < row.runAt || (other.runAt === row.runAt && other.seq < row.seq)) from = middle + 1;
    else to = middle;
  }
  line.splice(from, 0, row);
}

/** Removes a job from the waiting ones. */
export function stopWaiting(tables: Tables, row: Row): void {
  const line = tables.waiting.get(row.lane) ?? [];
  line.splice(line.indexOf(row), 1);
  if (line.length === 0) tables.waiting.delete(row.lane);
}

/** A copy for callers, without the fields that only the store uses. */
export function jobOf(row: Row): Job {
  const { seq: _seq, lane: _lane, nonce: _nonce, ticket: _ticket, ...job } = row;
  return job;
}

/** True for two names of the same pause target. */
export function isSameTarget(a: PauseTarget, b: PauseTarget): boolean {
  return a.kind === b.kind && a.name === b.name;
}
