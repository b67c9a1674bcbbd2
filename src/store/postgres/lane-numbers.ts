// The numbers of lanes on Postgres: interned once, cached, never changed. A lane without a job for long is retired and
// later deleted, so a statement that writes a job with a cached number checks the lane too.
import { belongingAt } from "../rows.ts";
import type { Belonging } from "../../core/job.ts";
import { firstLane, isSameBelonging, LANE_KINDS, laneName, laneOfKind } from "../../core/lane.ts";
import { IMPATIENT, NOW } from "./context.ts";
import type { Ask, PostgresDatabase } from "./driver.ts";
import { isLocked } from "./errors.ts";

/** Maps belongings to the numbers of their lanes, and back. */
export interface PostgresLaneNumbers {
  /** The lanes for first attempts; creates missing ones, if necessary after a transaction that creates them too. */
  intern(belongings: readonly Belonging[]): Promise<LaneOf>;
  /** The same on one connection; refused where it would wait for another transaction. */
  internAtOnce(belongings: readonly Belonging[]): Promise<LaneOf>;
  /**
   * The same inside a caller's transaction, which may be rolled back: nothing of it is cached, and nothing cached is
   * relied on.
   */
  internWithin(ask: Ask, belongings: readonly Belonging[]): Promise<LaneOf>;
  /** Removes the lanes of these from the cache, because one of them is no longer in use. */
  forget(belongings: readonly Belonging[]): void;
  /** The belonging of a lane; undefined for a lane that does not exist. */
  belonging(lane: number): Promise<Belonging | undefined>;
  /** Caches what a query has found. */
  remember(lane: number, belonging: Belonging): void;
  /** The cached belonging of a lane. */
  remembered(lane: number): Belonging | undefined;
  /** Every cached lane of every kind. */
  numbers(): Iterable<number>;
}

/** The lane for first attempts of one of the requested belongings. */
export type LaneOf = (belonging: Belonging) => number;

/** Belongings by their names. */
type Named = ReadonlyMap<string, Belonging>;

const DICE = 1_024;

/** The columns that distinguish lanes. */
export const LANE_BELONGING = `type, queue, coalesce(service, ''), coalesce(tenant, ''),
  coalesce(group_key, ''), coalesce(group_concurrency, 0), priority`;

/** The condition for the lane of a belonging, if it is in use; `of` gives the expressions for its columns. */
export const inUse = (of: (column: string) => string): string =>
  `type = ${of("type")} and queue = ${of("queue")} and coalesce(service, '') = coalesce(${of("service")}, '')
        and coalesce(tenant, '') = coalesce(${of("tenant")}, '') and coalesce(group_key, '') = coalesce(${of("group_key")}, '')
        and coalesce(group_concurrency, 0) = coalesce(${of("group_concurrency")}, 0) and priority = ${of("priority")}
        and retired_at is null`;

/** The statements that find lanes in use, draw numbers for new ones, and create them or take them into use again. */
export function laneStatements(s: string) {
  const columns = "type, queue, service, tenant, group_key, group_concurrency, priority";
  const arrays = "$1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::int[], $7::int[]";
  const find = {
    name: "lane_find",
    text: `select u.n, l.base from unnest(${arrays}) with ordinality as u (${columns}, n) cross join lateral (
      select base from ${s}.lane where ${inUse((column) => `u.${column}`)} limit 1) l`,
  };
  // A restored server, or a replica that takes over, may give out numbers again that some process has cached for
  // another belonging: a random part makes them differ.
  const next = {
    text: `select pg_catalog.nextval('${s}.lane_n') * ${DICE} + pg_catalog.floor(pg_catalog.random() * ${DICE})::bigint from pg_catalog.generate_series(1, $1::int)`,
  };
  const insert = {
    text: `insert into ${s}.lane as l (${columns}, base, used_at) select ${columns}, base, ${NOW}
      from unnest(${arrays}, $8::bigint[]) with ordinality as u (${columns}, base, n) order by n
      on conflict (${LANE_BELONGING}) do update set retired_at = null, retired_seq = null, used_at = excluded.used_at
      where l.retired_at is not null`,
  };
  return { find, next, insert };
}

/** Finds lanes in their table, or creates them, all in one order, so that no two transactions wait in a circle. */
function finder(s: string): (ask: Ask, named: Named) => Promise<Map<string, number>> {
  const { find, next, insert } = laneStatements(s);
  const search = async (ask: Ask, names: readonly string[], named: Named, found: Map<string, number>) => {
    // In a caller's transaction, 64-bit numbers have the type of that library.
    for (const [n, base] of await ask(find, ...columnsOf(names, named)))
      found.set(names[Number(n) - 1] as string, Number(base));
    return names.filter((name) => !found.has(name));
  };
  return async (ask, named) => {
    const found = new Map<string, number>();
    const missing = await search(ask, [...named.keys()].sort(), named, found);
    if (missing.length === 0) return found;
    const numbers = await ask(next, missing.length);
    const bases = missing.map((name, at) => firstLane(Number(numbers[at]?.[0]), named.get(name)?.priority ?? 0));
    await ask(insert, ...columnsOf(missing, named), bases);
    // Read again, because another process may have created some of them meanwhile.
    await search(ask, missing, named, found);
    return found;
  };
}

function columnsOf(names: readonly string[], named: Named): (string | number | null)[][] {
  const all = names.map((name) => named.get(name) as Belonging);
  return [
    all.map(({ type }) => type),
    all.map(({ queue }) => queue),
    all.map(({ service }) => service),
    all.map(({ tenant }) => tenant),
    all.map(({ group }) => group),
    all.map(({ groupConcurrency }) => groupConcurrency),
    all.map(({ priority }) => priority),
  ];
}

type Make = (named: Named) => Promise<ReadonlyMap<string, number>>;

/** Creates lanes outside callers' transactions; `made` receives them. */
function makers(
  db: PostgresDatabase,
  s: string,
  tell: (name: string, base: number) => void,
): { readonly atOnce: Make; readonly oneByOne: Make } {
  const through = finder(s);
  const told = (found: ReadonlyMap<string, number>): ReadonlyMap<string, number> => {
    for (const [name, base] of found) tell(name, base);
    return found;
  };
  return {
    atOnce: async (named) =>
      told(
        await db.together(async (ask) => {
          await ask(IMPATIENT);
          return through(ask, named);
        }),
      ),
    // A transaction that waits for another one holds no lane that others wait for.
    async oneByOne(named) {
      const found = new Map<string, number>();
      for (const each of named)
        for (const [name, base] of await through(db.ask, new Map([each]))) found.set(name, base);
      return told(found);
    },
  };
}

/** Lanes with a cache in front of their table. */
export function openLaneNumbers(db: PostgresDatabase, s: string): PostgresLaneNumbers {
  const byName = new Map<string, number>();
  const byLane = new Map<number, Belonging>();
  const through = finder(s);
  const read = {
    name: "lane_read",
    text: `select type, queue, service, tenant, group_key, group_concurrency, priority from ${s}.lane where base = $1`,
  };
  /** Finds everything that is not cached with one query. */
  const laneOf = async (belongings: readonly Belonging[], find: Make, known = byName): Promise<LaneOf> => {
    const all = new Map<string, number>();
    const unknown = new Map<string, Belonging>();
    let last: Belonging | null = null;
    for (const belonging of belongings) {
      if (last && isSameBelonging(belonging, last)) continue;
      last = belonging;
      const name = laneName(belonging);
      const base = known.get(name);
      if (base === undefined) unknown.set(name, belonging);
      else all.set(name, base);
    }
    if (unknown.size > 0) for (const [name, base] of await find(unknown)) all.set(name, base);
    return (belonging) => all.get(laneName(belonging)) as number;
  };
  const { atOnce, oneByOne } = makers(db, s, (name, base) => remember(byName, name, base));
  const lanes: PostgresLaneNumbers = {
    intern: (belongings) =>
      laneOf(belongings, async (unknown) => {
        if (unknown.size === 1) return oneByOne(unknown);
        return atOnce(unknown).catch((error: unknown) => {
          if (!isLocked(error)) throw error;
          return oneByOne(unknown);
        });
      }),
    internAtOnce: (belongings) => laneOf(belongings, atOnce),
    internWithin: (ask, belongings) => laneOf(belongings, (unknown) => through(ask, unknown), new Map()),
    forget(belongings) {
      for (const belonging of belongings) byName.delete(laneName(belonging));
    },
    async belonging(lane) {
      const base = laneOfKind(lane, "first");
      const cached = byLane.get(base);
      if (cached) return cached;
      const [row] = await db.ask(read, base);
      if (!row) return undefined;
      const belonging = belongingAt(row);
      remember(byLane, base, belonging);
      return belonging;
    },
    remember: (lane, belonging) => remember(byLane, laneOfKind(lane, "first"), belonging),
    remembered: (lane) => byLane.get(laneOfKind(lane, "first")),
    *numbers() {
      for (const base of byLane.keys()) for (const kind of LANE_KINDS) yield laneOfKind(base, kind);
    },
  };
  return lanes;
}

/** Most lanes in the cache, because groups can be unlimited in number. */
const REMEMBERED = 100_000;

function remember<K, V>(cache: Map<K, V>, key: K, value: V): void {
  // Moved to the end: recently used entries are the last to be dropped.
  cache.delete(key);
  if (cache.size >= REMEMBERED) for (const oldest of [...cache.keys()].slice(0, REMEMBERED / 10)) cache.delete(oldest);
  cache.set(key, value);
}
