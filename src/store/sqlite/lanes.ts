// The numbers of lanes on SQLite: interned once, cached, never changed.
import type { Belonging } from "../../core/job.ts";
import { firstLane, laneName, laneOfKind } from "../../core/lane.ts";
import type { Database, Value } from "./driver.ts";

/** The way from what a job belongs to to the number of its lane, and back. */
export interface Lanes {
  /** The lane for first tries; makes it where there is none. */
  intern(belonging: Belonging): number;
  /** The same for type, queue, service, tenant and priority that follow each other in a flat array. */
  internAt(flat: readonly Value[], at: number): number;
  /** What the jobs of a lane belong to; undefined for a lane that does not exist. */
  belonging(lane: number): Belonging | undefined;
  /** Forgets what a rolled-back transaction may have made. */
  reset(): void;
}

/** Lanes with a cache in front of their table; rows of that table never change. */
export function openLanes(db: Database): Lanes {
  const byName = new Map<string, number>();
  const byLane = new Map<number, Belonging>();
  const find = db.prepare(
    "select base from lane where type = ? and queue = ? and coalesce(service, '') = ? and coalesce(tenant, '') = ? and priority = ?",
  );
  const next = db.prepare("select coalesce(max(n) + 1, 0) from lane");
  const insert = db.prepare(
    "insert into lane (base, n, type, queue, service, tenant, priority) values (?, ?, ?, ?, ?, ?, ?)",
  );
  const read = db.prepare("select type, queue, service, tenant, priority from lane where base = ?");
  let last: { readonly belonging: Belonging; readonly base: number } | null = null;
  const lanes: Lanes = {
    internAt(flat, at) {
      // Jobs of one lane mostly come together.
      if (last && isAt(last.belonging, flat, at)) return last.base;
      const [type, queue, service, tenant, priority] = flat.slice(at, at + 5);
      const belonging = { type, queue, service, tenant, priority } as Belonging;
      last = { belonging, base: lanes.intern(belonging) };
      return last.base;
    },
    intern(belonging) {
      const { type, queue, service, tenant, priority } = belonging;
      const name = laneName(belonging);
      const cached = byName.get(name);
      if (cached !== undefined) return cached;
      let base = find.all(type, queue, service ?? "", tenant ?? "", priority)[0]?.[0] as number | undefined;
      if (base === undefined) {
        const n = next.all()[0]?.[0] as number;
        base = firstLane(n, priority);
        insert.run(base, n, type, queue, service, tenant, priority);
      }
      byName.set(name, base);
      return base;
    },
    belonging(lane) {
      const base = laneOfKind(lane, "first");
      const cached = byLane.get(base);
      if (cached) return cached;
      const row = read.all(base)[0];
      if (!row) return undefined;
      const [type, queue, service, tenant, priority] = row as [string, string, string | null, string | null, number];
      const belonging = { type, queue, service, tenant, priority };
      byLane.set(base, belonging);
      return belonging;
    },
    reset() {
      byName.clear();
      byLane.clear();
      last = null;
    },
  };
  return lanes;
}

function isAt({ type, queue, service, tenant, priority }: Belonging, flat: readonly Value[], at: number): boolean {
  if (type !== flat[at] || queue !== flat[at + 1] || priority !== flat[at + 4]) return false;
  return service === flat[at + 2] && tenant === flat[at + 3];
}
