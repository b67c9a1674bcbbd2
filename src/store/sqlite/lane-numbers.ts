// The numbers of lanes on SQLite: interned once, cached, never changed, and never reused.
import { belongingAt } from "../rows.ts";
import type { Belonging } from "../../core/job.ts";
import { firstLane, laneName, laneOfKind } from "../../core/lane.ts";
import type { GroupKey } from "../store.ts";
import type { SqliteDatabase } from "./driver.ts";
import type { Value } from "../columns.ts";

/** Maps belongings to the numbers of their lanes, and back. */
export interface SqliteLaneNumbers {
  /** The lane for first attempts; creates a missing one. */
  intern(belonging: Belonging): number;
  /**
   * The same for type, queue, service, tenant, group, its concurrency and priority, one after the other in a flat
   * array.
   */
  internAt(flat: readonly Value[], at: number): number;
  /** The belonging of a lane; undefined for a lane that does not exist. */
  belonging(lane: number): Belonging | undefined;
  /** The number of the group of a lane; null for none. */
  groupOf(lane: number): number | null;
  /** The number of a group; null where it never had a job. */
  groupBy(key: GroupKey): number | null;
  /** Clears the cache if lanes were retired or deleted since; each write that interns begins with it. */
  refresh(): void;
  /** Clears what a rolled-back transaction may have created. */
  reset(): void;
}

/** Most lanes in the cache, because groups can be unlimited in number. */
const REMEMBERED = 100_000;

/** A cached lane. */
interface Known {
  readonly belonging: Belonging;
  readonly groupN: number | null;
}

/** Lanes with a cache in front of their table. */
export function openLaneNumbers(db: SqliteDatabase, clock: () => number): SqliteLaneNumbers {
  const byName = new Map<string, number>();
  const byLane = new Map<number, Known>();
  const table = laneTable(db, clock);
  const changes = db.prepare("select lanes from control");
  let seen: Value | undefined;
  const known = (lane: number): Known | undefined => {
    const base = laneOfKind(lane, "first");
    const cached = byLane.get(base);
    if (cached) return cached;
    const found = table.read(base);
    if (found) remember(byLane, base, found);
    return found;
  };
  let last: { readonly belonging: Belonging; readonly base: number } | null = null;
  const lanes: SqliteLaneNumbers = {
    internAt(flat, at) {
      // Jobs of one lane mostly arrive together.
      if (last && isAt(last.belonging, flat, at)) return last.base;
      const belonging = belongingAt(flat, at);
      last = { belonging, base: lanes.intern(belonging) };
      return last.base;
    },
    intern(belonging) {
      const name = laneName(belonging);
      const cached = byName.get(name);
      if (cached !== undefined) return cached;
      const base = table.find(belonging) ?? table.make(belonging);
      remember(byName, name, base);
      return base;
    },
    belonging: (lane) => known(lane)?.belonging,
    groupOf: (lane) => known(lane)?.groupN ?? null,
    groupBy: table.groupBy,
    refresh() {
      const now = changes.all()[0]?.[0];
      if (now !== seen) lanes.reset();
      seen = now;
    },
    reset() {
      byName.clear();
      byLane.clear();
      last = null;
    },
  };
  return lanes;
}

/** The table of lanes. */
interface LaneTable extends Pick<SqliteLaneNumbers, "groupBy"> {
  find(belonging: Belonging): number | undefined;
  make(belonging: Belonging): number;
  read(base: number): Known | undefined;
}

function laneTable(db: SqliteDatabase, clock: () => number): LaneTable {
  const find = db.prepare(
    `select base, retired_at from lane where type = ? and queue = ? and coalesce(service, '') = ? and coalesce(tenant, '') = ?
     and coalesce(group_key, '') = ? and coalesce(group_concurrency, 0) = ? and priority = ?`,
  );
  const revive = db.prepare("update lane set retired_at = null, retired_seq = null, used_at = ? where base = ?");
  const next = db.prepare("select max(lane_n, coalesce((select max(n) + 1 from lane), 0)) from control");
  const insert = db.prepare(
    `insert into lane (base, n, type, queue, service, tenant, group_key, group_concurrency, group_n, priority, used_at)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const read = db.prepare(
    "select type, queue, service, tenant, group_key, group_concurrency, priority, group_n from lane where base = ?",
  );
  const ofGroup = db.prepare("select group_n from lane where type = ? and group_key = ? limit 1");
  const groupBy: SqliteLaneNumbers["groupBy"] = ({ type, group }) =>
    (ofGroup.all(type, group)[0]?.[0] ?? null) as number | null;
  return {
    groupBy,
    find({ type, queue, service, tenant, group, groupConcurrency, priority }) {
      const values = [type, queue, service ?? "", tenant ?? "", group ?? "", groupConcurrency ?? 0, priority];
      const [row] = find.all(...values) as [number, number | null][];
      if (row && row[1] !== null) revive.run(clock(), row[0]);
      return row?.[0];
    },
    make({ type, queue, service, tenant, group, groupConcurrency, priority }) {
      const n = next.all()[0]?.[0] as number;
      const base = firstLane(n, priority);
      const groupN = group === null ? null : (groupBy({ type, group }) ?? n);
      insert.run(base, n, type, queue, service, tenant, group, groupConcurrency, groupN, priority, clock());
      return base;
    },
    read(base) {
      const [row] = read.all(base);
      return row && { belonging: belongingAt(row), groupN: row[7] as number | null };
    },
  };
}

function isAt(belonging: Belonging, flat: readonly Value[], at: number): boolean {
  const { type, queue, service, tenant, group, groupConcurrency, priority } = belonging;
  if (type !== flat[at] || queue !== flat[at + 1] || priority !== flat[at + 6]) return false;
  if (group !== flat[at + 4] || groupConcurrency !== flat[at + 5]) return false;
  return service === flat[at + 2] && tenant === flat[at + 3];
}

function remember<K, V>(cache: Map<K, V>, key: K, value: V): void {
  if (cache.size >= REMEMBERED) cache.clear();
  cache.set(key, value);
}
