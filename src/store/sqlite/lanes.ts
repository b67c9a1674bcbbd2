// The numbers of lanes on SQLite: interned once, cached, never changed.
import type { Belonging } from "../../core/job.ts";
import { firstLane, laneOfKind } from "../../core/lane.ts";
import type { Database } from "./driver.ts";

/** The way from what a job belongs to to the number of its lane, and back. */
export interface Lanes {
  /** The lane for first tries; makes it where there is none. */
  intern(belonging: Belonging): number;
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
  return {
    intern({ type, queue, service, tenant, priority }) {
      const name = `${priority} ${type} ${queue} ${service ?? ""} ${tenant ?? ""}`;
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
    },
  };
}
