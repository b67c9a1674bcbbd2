// What holds work back, on SQLite: pauses and the state of services, under one version that every claim names.
import type { ControlNews, Pause } from "../store.ts";
import type { Verbs } from "../verbs.ts";
import type { SqliteDatabase } from "./driver.ts";

/** The verbs about pauses and services. */
export function controlVerbs(
  db: SqliteDatabase,
  clock: () => number,
): Pick<Verbs, "pause" | "resume" | "setService"> & { control(known: number, until: number): ControlNews } {
  const version = db.prepare("select version from control");
  const change = db.prepare("update control set version = version + 1");
  const pauses = db.prepare("select kind, name, from_at, until_at, reason from pause order by seq");
  const services = db.prepare("select name, version, value from service order by name");
  const end = db.prepare(
    "update pause set until_at = ? where kind = ? and name = ? and (until_at is null or until_at > ?)",
  );
  const begin = db.prepare("insert into pause (kind, name, from_at, until_at, reason) values (?, ?, ?, ?, ?)");
  const versionOf = db.prepare("select version from service where name = ?");
  const set = db.prepare(
    `insert into service (name, version, value) values (?, ?, ?)
     on conflict (name) do update set version = excluded.version, value = excluded.value`,
  );
  return {
    control(known, knownUntil) {
      const [now, current] = [clock(), version.all()[0]?.[0] as number];
      if (current === known && now < knownUntil) return { version: current, now, held: null };
      const held = {
        pauses: pauses.all().map(([kind, name, from, until, reason]) => ({ kind, name, from, until, reason }) as Pause),
        services: services
          .all()
          .map(([name, at, value]) => ({ name: name as string, version: at as number, value: value as string })),
      };
      return { version: current, now, held };
    },
    pause({ kind, name }, { forMs, reason }) {
      const now = clock();
      end.run(now, kind, name, now);
      begin.run(kind, name, now, forMs === null ? null : now + forMs, reason);
      change.run();
    },
    resume({ kind, name }) {
      const now = clock();
      const ended = end.run(now, kind, name, now) > 0;
      if (ended) change.run();
      return ended;
    },
    setService(name, expected, value) {
      if (((versionOf.all(name)[0]?.[0] as number | undefined) ?? 0) !== expected) return false;
      set.run(name, expected + 1, value);
      change.run();
      return true;
    },
  };
}
