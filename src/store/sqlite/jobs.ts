// Reads, cancels and reschedules jobs on SQLite.
import { STATES, type State } from "../../core/job.ts";
import { kindOfLane, laneOfKind } from "../../core/lane.ts";
import type { EnqueueAnswer, JobQuery } from "../store.ts";
import { dueCursor, readCursor, readDueCursor } from "../cursor.ts";
import type { Verbs } from "../verbs.ts";
import type { SqliteDatabase } from "./driver.ts";
import type { Value } from "../columns.ts";
import { enqueuer } from "./enqueue.ts";
import type { SqliteLaneNumbers } from "./lane-numbers.ts";
import { JOB_WIDTH, RUN_AT } from "../columns.ts";
import { columnsFor } from "../rows.ts";
import { time } from "./time.ts";
import { SELECT_JOB } from "./wire.ts";

/** Joins jobs with their belonging. */
export const WITH_LANE = "left join lane l on l.base = j.lane - j.lane % 4";

/** Running jobs, worded so that the index of everything not waiting answers, in the order of arrival. */
export const RUNNING = "j.state = 'running' and j.state <> 'queued' and j.expires_at is null";

/** A page of rows on the wire. */
export interface RowPage {
  readonly rows: Value[][];
  readonly next: string | null;
}

/** The verbs about jobs; jobs come back as rows and go in as one flat array. */
export interface SqliteJobVerbs extends Pick<Verbs, "count" | "cancel" | "reschedule"> {
  enqueue(flat: readonly Value[]): EnqueueAnswer[];
  get(ids: readonly string[]): (Value[] | null)[];
  list(query: JobQuery): RowPage;
}

/** The verbs about jobs. */
export function jobVerbs(db: SqliteDatabase, lanes: SqliteLaneNumbers, clock: () => number): SqliteJobVerbs {
  const read = db.prepare(`select ${SELECT_JOB} from job j ${WITH_LANE} where j.id = ?`);
  return {
    enqueue: enqueuer(db, lanes, clock),
    get: (ids) => ids.map((id) => read.all(id)[0] ?? null),
    list: (query) => list(db, query, clock()),
    count() {
      const counts = Object.fromEntries(STATES.map((state) => [state, 0])) as Record<State, number>;
      // Each half is answered from an index alone; a plain group over the table would read every payload.
      const waiting = db.prepare("select count(*) from job where state = 'queued'").all();
      counts.queued = waiting[0]?.[0] as number;
      const ended = db.prepare(
        "select state, count(*) from job indexed by job_ended where state <> 'queued' group by state",
      );
      for (const [state, count] of ended.all()) counts[state as State] = count as number;
      return counts;
    },
    cancel: canceller(db, clock),
    reschedule: rescheduler(db, lanes, clock),
  };
}

function canceller(db: SqliteDatabase, clock: () => number): Verbs["cancel"] {
  const state = db.prepare("select state from job where id = ?");
  const end = db.prepare(
    `update job set state = 'cancelled', cancel_requested = 1, placed = null, finished_at = ?, expires_at = ? + keep_ms,
     updated_at = ? where id = ?`,
  );
  const ask = db.prepare("update job set cancel_requested = 1, updated_at = ? where id = ?");
  return (ids) => {
    const now = clock();
    return ids.map((id) => {
      const was = state.all(id)[0]?.[0] as State | undefined;
      if (was === undefined) return "missing";
      if (was === "queued") end.run(now, now, now, id);
      else if (was === "running") ask.run(now, id);
      else return "finished";
      return was === "queued" ? "cancelled" : "requested";
    });
  };
}

function rescheduler(db: SqliteDatabase, lanes: SqliteLaneNumbers, clock: () => number): Verbs["reschedule"] {
  const read = db.prepare("select state, lane, run_at, due_at, attempts + crashes from job where id = ?");
  const write = db.prepare("update job set lane = ?, run_at = ?, due_at = ?, updated_at = ? where id = ?");
  return (changes) => {
    const now = clock();
    lanes.refresh();
    return changes.map(({ id, delayMs, priority }) => {
      const [row] = read.all(id) as [State, number, number, number, number][];
      if (!row) return "missing";
      const [state, lane, runAt, dueAt, tried] = row;
      const belonging = lanes.belonging(lane);
      if (state !== "queued" || !belonging) return "refused";
      const moved =
        priority === undefined ? lane : laneOfKind(lanes.intern({ ...belonging, priority }), kindOfLane(lane));
      const due = delayMs === undefined ? runAt : now + delayMs;
      write.run(moved, due, delayMs !== undefined && tried === 0 ? due : dueAt, now, id);
      return "changed";
    });
  };
}

const CONDITIONS = {
  state: "j.state = ?",
  type: "l.type = ?",
  queue: "l.queue = ?",
  service: "l.service = ?",
  tenant: "l.tenant = ?",
  key: "j.key = ?",
} as const;

/** The source of a list, worded so that an index answers; `seq` is the position in the list. */
interface Source {
  readonly from: string;
  readonly where: string;
  readonly seq: string;
}

const ANY: Source = { from: "job j", where: "1", seq: "j.seq" };
const OF_KEY: Source = { from: "job j indexed by job_keyed", where: "j.key is not null", seq: "j.seq" };
/** These are found without reading completed jobs, however many there are. */
const OF_STATE: ReadonlyMap<State | undefined, Source> = new Map([
  ["running", { from: "job j indexed by job_ended", where: RUNNING, seq: "j.seq" }],
  // A dead job has one letter that was not redriven, and letters cost nothing where jobs are claimed and completed.
  [
    "dead",
    {
      from: "dead_letter d indexed by dead_letter_live cross join job j on j.seq = d.job_seq",
      where: "d.redriven_at is null",
      seq: "d.job_seq",
    },
  ],
  ["cancelled", { from: "job j indexed by job_ended", where: "j.state <> 'queued'", seq: "j.seq" }],
]);

function list(db: SqliteDatabase, query: JobQuery, now: number): RowPage {
  if (query.sort === "due") return listDue(db, query, now);
  const source = query.key === undefined ? (OF_STATE.get(query.state) ?? ANY) : OF_KEY;
  const { where, values } = narrow(`${source.seq} < ?`, readCursor(query.cursor), CONDITIONS, query);
  where.push(source.where);
  if (query.due !== undefined) {
    where.push(`j.state = 'queued' and j.run_at ${query.due ? "<=" : ">"} ?`);
    values.push(now);
  }
  if (query.tried !== undefined) where.push(query.tried ? "j.attempts > 0" : "j.attempts = 0");
  const found = db
    .prepare(
      `select ${columnsFor(SELECT_JOB, query)}, j.seq from ${source.from} ${WITH_LANE} where ${where.join(" and ")} order by ${source.seq} desc limit ?`,
    )
    .all(...values, query.limit + 1);
  return page(found, query.limit, JOB_WIDTH);
}

/** Waiting jobs by due time, the earliest first; for retries an index has that order. */
function listDue(db: SqliteDatabase, query: JobQuery, now: number): RowPage {
  const from = readDueCursor(query.cursor);
  const [table, order] = query.tried ? ["job j indexed by job_retrying", time("j.run_at")] : ["job j", "j.run_at"];
  const { where, values } = narrow("j.seq > ?", 0, CONDITIONS, query);
  where.push("j.state = 'queued'");
  if (from) {
    where.push(`${order} >= ${query.tried ? time("?") : "?"} and (j.run_at, j.seq) > (?, ?)`);
    values.push(from.runAt, from.runAt, from.seq);
  }
  if (query.due !== undefined) {
    where.push(`j.run_at ${query.due ? "<=" : ">"} ?`);
    values.push(now);
  }
  if (query.tried !== undefined) where.push(query.tried ? "j.attempts > 0" : "j.attempts = 0");
  const text = `select ${columnsFor(SELECT_JOB, query)}, j.seq from ${table} ${WITH_LANE} where ${where.join(" and ")} order by ${order}, j.seq limit ?`;
  const found = db.prepare(text).all(...values, query.limit + 1);
  const rows = found.slice(0, query.limit);
  const last = rows.at(-1);
  const place = last && { runAt: last[RUN_AT] as number, seq: last[JOB_WIDTH] as number };
  return { rows, next: place && found.length > query.limit ? dueCursor(place) : null };
}

/** The conditions of a list: below its cursor, and one for each given field of the query. */
export function narrow<K extends string>(
  below: string,
  cursor: number,
  conditions: Readonly<Record<K, string>>,
  query: { readonly [key in NoInfer<K>]?: string | number },
): { where: string[]; values: Value[] } {
  const where = [below];
  const values: Value[] = [cursor];
  for (const field of Object.keys(conditions) as K[]) {
    const value = query[field];
    if (value === undefined) continue;
    where.push(conditions[field]);
    values.push(value);
  }
  return { where, values };
}

/** Cuts a page of rows, of which one more than wanted was read; the cursor is the column at `at`. */
export function page(found: Value[][], limit: number, at: number): RowPage {
  const rows = found.slice(0, limit);
  return { rows, next: found.length > limit ? String(rows.at(-1)?.[at]) : null };
}
