// Waiting jobs in order of due time. No index has that order, because every enqueue and every claim would have to write
// to it. So a page is put together from the lanes, each of which has it. Only for retries there is such an index.
import { LANE_KINDS } from "../../core/lane.ts";
import { JOB_WIDTH, RUN_AT, type Value } from "../columns.ts";
import { type DuePlace, readDueCursor } from "../cursor.ts";
import { Conditions, type Query } from "../dialect.ts";
import { duePage, LANES_MOST, laneFields } from "../due-page.ts";
import { addPlain } from "../list-queries.ts";
import { columnsFor } from "../rows.ts";
import type { JobQuery } from "../store.ts";
import { SQLITE, time } from "./dialect.ts";
import type { SqliteDatabase } from "./driver.ts";
import { type RowPage, SELECT_JOB, WITH_LANE } from "./wire.ts";

/** A page of waiting jobs, the earliest due first. */
export function listDue(db: SqliteDatabase, query: JobQuery, now: number): RowPage {
  const cut = (found: Value[][], bound: DuePlace | null): RowPage => duePage(found, query.limit, placeOf, bound);
  const lanes = query.tried || query.key !== undefined ? null : lanesOf(db, query);
  if (lanes) return cut(ofLanes(db, lanes, query, now), null);
  const bound = query.tried && query.key === undefined ? lastRetry(db, query, now) : null;
  const { text, values } = walk(query, now, columnsFor(SELECT_JOB, query), bound);
  return cut(db.prepare(`${text} limit ?`).all(...values, query.limit + 1), bound);
}

const placeOf = (row: readonly Value[]): DuePlace => ({ runAt: row[RUN_AT] as number, seq: row[JOB_WIDTH] as number });

/** The lanes that match; null for more than are searched one by one. */
function lanesOf(db: SqliteDatabase, query: JobQuery): number[] | null {
  const where = new Conditions(SQLITE);
  where.add("1");
  for (const [name, value] of laneFields(query)) where.add(`${name} = ${where.of(value)}`);
  const bases = db.prepare(`select base from lane where ${where.text} limit ?`).all(...where.values, LANES_MOST + 1);
  // A retry waits in a lane of retries or of suspects, so that all in a lane of retries are retries.
  const kinds = LANE_KINDS.flatMap((kind, at) => (query.tried === false && kind === "retry" ? [] : [at]));
  if (bases.length > LANES_MOST) return null;
  return bases.flatMap(([base]) => kinds.map((kind) => (base as number) + kind));
}

/** Adds the conditions that need no lane. */
function addPlace(where: Conditions, { cursor, due, tried }: JobQuery, now: number): void {
  const from = readDueCursor(cursor);
  where.add("j.state = 'queued'");
  if (from) where.add(`(j.run_at, j.seq) > (${where.of(from.runAt)}, ${where.of(from.seq)})`);
  if (due !== undefined) where.add(`j.run_at ${due ? "<=" : ">"} ${where.of(now)}`);
  if (tried !== undefined) where.add(tried ? "j.attempts > 0" : "j.attempts = 0");
}

/**
 * The first place of every lane; of those with the earliest of these, as many places as the page needs; and of them all
 * the earliest.
 */
function ofLanes(db: SqliteDatabase, lanes: readonly number[], query: JobQuery, now: number): Value[][] {
  const where = new Conditions(SQLITE);
  addPlace(where, query, now);
  const places = db.prepare(
    `select run_at, seq from job j indexed by job_waiting where ${where.text} and lane = ? order by run_at, seq limit ?`,
  );
  type Place = readonly [runAt: number, seq: number, lane: number];
  const most = query.limit + 1;
  const earliest = (all: Place[]): Place[] => all.sort((a, b) => a[0] - b[0] || a[1] - b[1]).slice(0, most);
  const of = (lane: number, limit: number): Place[] =>
    (places.all(...where.values, lane, limit) as [number, number][]).map(([runAt, seq]) => [runAt, seq, lane]);
  const heads = earliest(lanes.flatMap((lane) => of(lane, 1)));
  const page = earliest(heads.flatMap(([, , lane]) => of(lane, most)));
  const job = db.prepare(`select ${columnsFor(SELECT_JOB, query)}, j.seq from job j ${WITH_LANE} where j.seq = ?`);
  return page.map(([, seq]) => job.all(seq)[0] as Value[]);
}

/** All waiting jobs that match, in order; retries by the index of their due times. */
function walk(query: JobQuery, now: number, columns: string, bound: DuePlace | null): Query {
  const from = readDueCursor(query.cursor);
  const isByTime = query.tried && query.key === undefined;
  const [table, order] = isByTime ? ["job j indexed by job_retrying", time("j.run_at")] : ["job j", "j.run_at"];
  const where = new Conditions(SQLITE);
  addPlace(where, query, now);
  addPlain(where, "j.state", query);
  if (isByTime && from) where.add(`${order} >= ${time(where.of(from.runAt))}`);
  if (bound) where.add(`(j.run_at, j.seq) <= (${where.of(bound.runAt)}, ${where.of(bound.seq)})`);
  const text = `select ${columns}, j.seq from ${table} ${WITH_LANE} where ${where.text} order by ${order}, j.seq`;
  return { text, values: where.values };
}

/** The last retry that a page may look at; null where it may look at all, or all match. */
function lastRetry(db: SqliteDatabase, query: JobQuery, now: number): DuePlace | null {
  if (query.lookAt === undefined || laneFields(query).length === 0) return null;
  const { due, cursor = null, tried = true, limit } = query;
  const { text, values } = walk({ limit, cursor, tried, ...(due !== undefined && { due }) }, now, "j.run_at", null);
  const [row] = db.prepare(`${text} limit 1 offset ?`).all(...values, query.lookAt - 1);
  return row ? { runAt: row[0] as number, seq: row[1] as number } : null;
}
