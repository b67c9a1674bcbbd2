// What every file of verbs here works with: the way to the server, the name of the schema, the numbers of lanes.
import type { Ask, PostgresDatabase } from "./driver.ts";
import type { PostgresLaneNumbers } from "./lane-numbers.ts";
import type { Migrations } from "./migrate.ts";

/**
 * Store time in milliseconds; the same for all of a statement, and an index condition can use it. A query of its own, so
 * that it is computed once and not again for every row.
 */
export const NOW = "(select pg_catalog.floor(extract(epoch from pg_catalog.statement_timestamp()) * 1000)::bigint)";

/** A key or a lane may be in somebody's open transaction; not everybody can wait for that, only so long. */
export const IMPATIENT_MS = 250;
/** The same as a statement. */
export const IMPATIENT = { text: `set local lock_timeout = ${IMPATIENT_MS}` };

/**
 * A condition that is always true. What is written where it holds does not wait longer than this for rows that somebody
 * holds; nor does the rest of its transaction. Said inside a statement, it costs no further one.
 */
export const waitsAtMost = (ms: number): string => `(select set_config('lock_timeout', '${ms}ms', true)) is not null`;

/**
 * Notes how far the runs of a worker have started. Passed over where its row is held, so that no row of one worker holds
 * up what the note goes with; the next one says the same.
 */
export const noteStarted = (s: string, worker: string, through: string, where = "true"): string =>
  `marked as (update ${s}.worker set started_through = ${through} where id = any(array(
    select id from ${s}.worker where id = ${worker} and started_through < ${through} and ${where} for update skip locked)))`;

/** The parts that verbs are made of. */
export interface Context {
  readonly db: PostgresDatabase;
  /** The schema, which is a plain name and needs no quotes. */
  readonly s: string;
  readonly lanes: PostgresLaneNumbers;
  /** How the schema came to be; their number is the version that this program knows. */
  readonly migrations: Migrations;
}

/** An item with its place in the request, by which it is answered: the same item may be there twice. */
export interface Placed<T> {
  readonly at: number;
  readonly item: T;
}

/** Items with their places. */
export function placed<T>(items: readonly T[]): Placed<T>[] {
  return items.map((item, at) => ({ at, item }));
}

/** Groups of items in which no two have the same key, in an order that keeps the turns of those that do. */
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

/** Marks the keys of deleted jobs; goes behind a CTE `gone` with their ids and keys. */
export const freeKeys = (s: string): string =>
  `freed as (update ${s}.job_key k set gone = true from gone where k.job_id = gone.id and gone.key is not null)`;

export type { Ask };
