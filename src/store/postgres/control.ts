// What holds work back, on Postgres: pauses and the state of services, under one version that every claim names.
import { type ControlNews, rememberControl } from "../control.ts";
import type { Pause, Store } from "../store.ts";
import { notReadable } from "../migrations.ts";
import { type Ask, NOW } from "./context.ts";
import type { PostgresDependencies } from "./dependencies.ts";
import { nameOf } from "./migrate.ts";
import type { Waker } from "./wake.ts";

/** The verbs about pauses and services. */
export type ControlVerbs = Pick<Store, "control" | "pause" | "resume" | "setService">;

/** The verbs about pauses and services. */
export function controlVerbs(parts: PostgresDependencies, waker: Waker): ControlVerbs {
  const { db, s } = parts;
  // Every change begins with a lock on this row, so that changes follow one another.
  const lock = { text: `select version from ${s}.control for update` };
  const change = { text: `update ${s}.control set version = version + 1` };
  const end = {
    text: `update ${s}.pause set until_at = ${NOW} where kind = $1 and name = $2 and (until_at is null or until_at > ${NOW}) returning seq`,
  };
  const begin = {
    text: `insert into ${s}.pause (kind, name, from_at, until_at, reason) values ($1, $2, ${NOW}, ${NOW} + $3::bigint, $4)`,
  };
  const wake = { text: `select ${waker.notify}` };
  /** Work that was held back may be due now. */
  const released = async (ask: Ask): Promise<void> => {
    await ask(change);
    await ask(wake);
  };
  const set = {
    text: `insert into ${s}.service (name, version, value) select $1, $2::bigint + 1, $3
      where coalesce((select version from ${s}.service where name = $1), 0) = $2
      on conflict (name) do update set version = excluded.version, value = excluded.value returning name`,
  };
  return {
    control: controlReader(parts),
    pause: ({ kind, name }, { forMs, reason }) =>
      db.together(async (ask) => {
        await ask(lock);
        await ask(end, kind, name);
        await ask(begin, kind, name, forMs, reason);
        await ask(change);
      }),
    resume: ({ kind, name }) =>
      db.together(async (ask) => {
        await ask(lock);
        const ended = (await ask(end, kind, name)).length > 0;
        if (ended) await released(ask);
        return ended;
      }),
    setService: (name, version, value) =>
      db.together(async (ask) => {
        await ask(lock);
        const written = (await ask(set, name, version, value)).length > 0;
        if (written) await released(ask);
        return written;
      }),
  };
}

function controlReader({ db, s, migrations, place }: PostgresDependencies): Store["control"] {
  const read = {
    name: "control",
    text: `select version, ${NOW}, case when version <> $1::bigint or ${NOW} >= $2::bigint then json_build_array(
      (select json_agg(json_build_array(kind, name, from_at, until_at, reason) order by seq) from ${s}.pause),
      (select json_agg(json_build_array(name, version, value) order by name) from ${s}.service),
      (select json_build_array(max(version), max(readable_by)) from ${s}.migration))::text end
      from ${s}.control`,
  };
  const known = migrations.length;
  // A migration changes the version of `control`, so that every worker comes by here before its next claim.
  const checkSchema = (version: number, readableBy: number): void => {
    if (readableBy > known) throw notReadable({ version, readableBy }, known, nameOf(s, place.shown));
  };
  return rememberControl(async (...last) => newsFromRow((await db.ask(read, ...last))[0] as ControlRow, checkSchema));
}

type ControlRow = [version: number, now: number, held: string | null];
type PauseRow = [Pause["kind"], string, number, number | null, string];
type HeldRow = [PauseRow[] | null, [string, number, string][] | null, schema: [number, number]];

function newsFromRow(
  [version, now, text]: ControlRow,
  checkSchema: (version: number, readableBy: number) => void,
): ControlNews {
  if (text === null) return { version, now, held: null };
  const [pauses, services, schema] = JSON.parse(text) as HeldRow;
  checkSchema(...schema);
  const held = {
    pauses: (pauses ?? []).map(([kind, name, from, until, reason]) => ({ kind, name, from, until, reason })),
    services: (services ?? []).map(([name, at, value]) => ({ name, version: at, value })),
  };
  return { version, now, held };
}
