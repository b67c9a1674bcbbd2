// What every file of verbs works with: the database, the name of the schema, the numbers of lanes.
import type { Ask, PostgresDatabase } from "./driver.ts";
import type { PostgresLaneNumbers } from "./lane-numbers.ts";
import type { Migrations } from "./migrate.ts";

/**
 * Store time in milliseconds; the same for a whole statement, and usable in an index condition. A separate query, so
 * that it is computed once and not for every row.
 */
export const NOW = "(select pg_catalog.floor(extract(epoch from pg_catalog.statement_timestamp()) * 1000)::bigint)";

/** The same at the moment when it is computed, which may be after a wait for a lock. */
export const NOW_IN_TURN = "pg_catalog.floor(extract(epoch from pg_catalog.clock_timestamp()) * 1000)::bigint";

/** How long to wait for a key or lane that another open transaction holds, where other work would wait too. */
export const IMPATIENT_MS = 250;
/** The same as a statement. */
export const IMPATIENT = { text: `set local lock_timeout = ${IMPATIENT_MS}` };

/**
 * A condition that is always true. A write under it waits no longer than this for rows that another transaction holds;
 * nor does the rest of its transaction. Inside a statement it costs no further one.
 */
export const waitsAtMost = (ms: number): string => `(select set_config('lock_timeout', '${ms}ms', true)) is not null`;

/**
 * Notes how far the runs of a worker have started. Skipped where its row is held, so that the row of a worker does not
 * block the write that the note goes with; the next note says the same.
 */
export const noteStarted = (s: string, worker: string, through: string, where = "true"): string =>
  `marked as (update ${s}.worker set started_through = ${through} where id = any(array(
    select id from ${s}.worker where id = ${worker} and started_through < ${through} and ${where} for update skip locked)))`;

/** The parts that verbs are made of. */
export interface Context {
  readonly db: PostgresDatabase;
  /** The same for what people ask, on connections of its own: no worker waits for one of them. */
  readonly questions: PostgresDatabase;
  /** The schema, a plain name that needs no quotes. */
  readonly s: string;
  readonly lanes: PostgresLaneNumbers;
  /** How the schema came to be; their number is the version that this program knows. */
  readonly migrations: Migrations;
}

/** An item with its index in the request, by which it is answered: the same item may occur twice. */
export interface Placed<T> {
  readonly at: number;
  readonly item: T;
}

/** Items with their indexes. */
export function placed<T>(items: readonly T[]): Placed<T>[] {
  return items.map((item, at) => ({ at, item }));
}

/** Groups of items in which no two have the same key, keeping the order of those that do. */
export function rounds<T>(items: readonly Placed<T>[], keyOf: (item: T) => string): Placed<T>[][] {
  const groups: Placed<T>[][] = [];
  const turns = new Map<string, number>();
  for (const each of items) {
    const key = keyOf(each.item);
    const turn = turns.get(key) ?? 0;
    turns.set(key, turn + 1);
    (groups[turn] ??= []).push(each);
  }
  return groups;
}

/** Marks the keys of deleted jobs; follows a CTE `gone` with their ids and keys. */
export const freeKeys = (s: string): string =>
  `freed as (update ${s}.job_key k set gone = true from gone where k.job_id = gone.id and gone.key is not null)`;

export type { Ask };
