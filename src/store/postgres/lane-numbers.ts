// The numbers of lanes on Postgres: interned once, cached, never changed. A lane that was without a job for long is
// retired and later deleted, so whoever writes a job with a remembered number checks that in the same statement.
import type { Belonging } from "../../core/job.ts";
import { firstLane, isSameBelonging, LANE_KINDS, laneName, laneOfKind } from "../../core/lane.ts";
import { IMPATIENT, NOW } from "./context.ts";
import type { Ask, PostgresValue, PostgresDatabase } from "./driver.ts";
import { isLocked } from "./errors.ts";
import { LANE_BELONGING } from "./schema.ts";

/** The way from what a job belongs to to the number of its lane, and back. */
export interface PostgresLaneNumbers {
  /** The lanes for first tries; makes those that are missing, if need be after a transaction that makes them too. */
  intern(belongings: readonly Belonging[]): Promise<LaneOf>;
  /** The same on one connection, and refused where another transaction would have to be waited for. */
  internAtOnce(belongings: readonly Belonging[]): Promise<LaneOf>;
  /**
   * The same inside somebody's transaction, which may be rolled back: nothing of it is remembered, nor is anything that is
   * remembered relied on.
   */
  internWithin(ask: Ask, belongings: readonly Belonging[]): Promise<LaneOf>;
  /** Forgets the lanes of these, one of which is not in use any more. */
  forget(belongings: readonly Belonging[]): void;
  /** What the jobs of a lane belong to; undefined for a lane that does not exist. */
  belonging(lane: number): Promise<Belonging | undefined>;
  /** Remembers what a query has found. */
  remember(lane: number, belonging: Belonging): void;
  /** What is remembered of a lane. */
  remembered(lane: number): Belonging | undefined;
  /** Every lane of every kind that is remembered. */
  numbers(): Iterable<number>;
}

/** The lane for first tries of one of those that were asked for. */
export type LaneOf = (belonging: Belonging) => number;

/** Belongings by their names. */
type Named = ReadonlyMap<string, Belonging>;

const DICE = 1_024;

/** Finds lanes in their table, or makes them there, all in one order, so that nobody waits in a circle. */
function finder(s: string): (ask: Ask, named: Named) => Promise<Map<string, number>> {
  const columns = "type, queue, service, tenant, group_key, group_concurrency, priority";
  const arrays = "$1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::int[], $7::int[]";
  const find = {
    name: "lane_find",
    text: `select u.n, l.base from unnest(${arrays}) with ordinality as u (${columns}, n) cross join lateral (
      select base from ${s}.lane where type = u.type and queue = u.queue and coalesce(service, '') = coalesce(u.service, '')
        and coalesce(tenant, '') = coalesce(u.tenant, '') and coalesce(group_key, '') = coalesce(u.group_key, '')
        and coalesce(group_concurrency, 0) = coalesce(u.group_concurrency, 0) and priority = u.priority
        and retired_at is null limit 1) l`,
  };
  // A server that is restored, or whose replica takes over, may give out numbers again that some process still remembers
  // for another belonging: with dice in them they are not the same ones.
  const next = {
    text: `select pg_catalog.nextval('${s}.lane_n') * ${DICE} + pg_catalog.floor(pg_catalog.random() * ${DICE})::bigint from pg_catalog.generate_series(1, $1::int)`,
  };
  const insert = {
    text: `insert into ${s}.lane as l (${columns}, base, used_at) select ${columns}, base, ${NOW}
      from unnest(${arrays}, $8::bigint[]) with ordinality as u (${columns}, base, n) order by n
      on conflict (${LANE_BELONGING}) do update set retired_at = null, retired_seq = null, used_at = excluded.used_at
      where l.retired_at is not null`,
  };
  const search = async (ask: Ask, names: readonly string[], named: Named, found: Map<string, number>) => {
    // In somebody's transaction, 64-bit numbers come as that library has them.
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
    // Not those that were sent: somebody else may have made some of them meanwhile.
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

/** The ways to make lanes outside of other people's transactions; whoever made some is told of them. */
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
    // Whoever waits for an open transaction holds no lane that others wait for.
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
  /** What is not in the cache is found in one go. */
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
      const belonging = belongingFrom(row);
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

/** What a lane belongs to, from its columns in this order. */
export function belongingFrom(row: readonly PostgresValue[]): Belonging {
  return {
    type: row[0] as string,
    queue: row[1] as string,
    service: row[2] as string | null,
    tenant: row[3] as string | null,
    group: row[4] as string | null,
    groupConcurrency: row[5] as number | null,
    priority: row[6] as number,
  };
}

/** Lanes remembered in memory at most; groups can be of any number. */
const REMEMBERED = 100_000;

function remember<K, V>(cache: Map<K, V>, key: K, value: V): void {
  // Again at the end: what was asked for lately is the last to be forgotten.
  cache.delete(key);
  if (cache.size >= REMEMBERED) for (const oldest of [...cache.keys()].slice(0, REMEMBERED / 10)) cache.delete(oldest);
  cache.set(key, value);
}
