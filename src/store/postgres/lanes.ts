// The numbers of lanes on Postgres: interned once, cached, never changed.
import type { Belonging } from "../../core/job.ts";
import { firstLane, LANE_KINDS, laneName, laneOfKind } from "../../core/lane.ts";
import { IMPATIENT } from "./context.ts";
import type { Ask, Cell, Database } from "./driver.ts";

/** The way from what a job belongs to to the number of its lane, and back. */
export interface Lanes {
  /** The lane for first tries; makes it where there is none, if need be after a transaction that makes it too. */
  intern(belonging: Belonging): Promise<number>;
  /** The same on one connection, and refused where another transaction would have to be waited for. */
  internAtOnce(belonging: Belonging): Promise<number>;
  /** The same inside somebody's transaction, which may be rolled back: nothing of it is remembered. */
  internWithin(ask: Ask, belonging: Belonging): Promise<number>;
  /** The number, if it is known here already. */
  known(belonging: Belonging): number | undefined;
  /** What the jobs of a lane belong to; undefined for a lane that does not exist. */
  belonging(lane: number): Promise<Belonging | undefined>;
  /** Remembers what a query has found. */
  remember(lane: number, belonging: Belonging): void;
  /** What is remembered of a lane. */
  remembered(lane: number): Belonging | undefined;
  /** Every lane of every kind that is remembered. */
  numbers(): Iterable<number>;
}

/** Finds the lane in its table, or makes it there. */
function finder(s: string): (ask: Ask, belonging: Belonging) => Promise<number> {
  const find = {
    name: "lane_find",
    text: `select base from ${s}.lane where type = $1 and queue = $2 and coalesce(service, '') = coalesce($3, '')
      and coalesce(tenant, '') = coalesce($4, '') and coalesce(group_key, '') = coalesce($5, '')
      and coalesce(group_concurrency, 0) = coalesce($6::int, 0) and priority = $7`,
  };
  const next = { text: `select nextval('${s}.lane_n') as n` };
  const insert = {
    text: `insert into ${s}.lane (type, queue, service, tenant, group_key, group_concurrency, priority, base)
      values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing returning base`,
  };
  return async (ask, { type, queue, service, tenant, group, groupConcurrency, priority }) => {
    const values = [type, queue, service, tenant, group, groupConcurrency, priority];
    const [known] = await ask(find, ...values);
    if (known) return Number(known[0]);
    const [number] = (await ask(next)) as [[number]];
    const [made] = await ask(insert, ...values, firstLane(Number(number[0]), priority));
    // Somebody else made it meanwhile.
    const [base] = made ?? ((await ask(find, ...values))[0] as [number]);
    return Number(base);
  };
}

/** Lanes with a cache in front of their table; rows of that table never change. */
export function openLanes(db: Database, s: string): Lanes {
  const byName = new Map<string, number>();
  const byLane = new Map<number, Belonging>();
  const through = finder(s);
  const read = {
    name: "lane_read",
    text: `select type, queue, service, tenant, group_key, group_concurrency, priority from ${s}.lane where base = $1`,
  };
  const remembering = async (belonging: Belonging, find: () => Promise<number>): Promise<number> => {
    const name = laneName(belonging);
    const base = byName.get(name) ?? (await find());
    remember(byName, name, base);
    return base;
  };
  const lanes: Lanes = {
    known: (belonging) => byName.get(laneName(belonging)),
    intern: (belonging) => remembering(belonging, () => through(db.ask, belonging)),
    internAtOnce: (belonging) =>
      remembering(belonging, () =>
        db.together(async (ask) => {
          await ask(IMPATIENT);
          return through(ask, belonging);
        }),
      ),
    internWithin: async (ask, belonging) => lanes.known(belonging) ?? through(ask, belonging),
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
export function belongingFrom(row: readonly Cell[]): Belonging {
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
  if (cache.size >= REMEMBERED) for (const oldest of [...cache.keys()].slice(0, REMEMBERED / 10)) cache.delete(oldest);
  cache.set(key, value);
}
