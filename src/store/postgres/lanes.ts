// Looks for lanes with work on Postgres. Searches `waiting` by its one index, (lane, run_at, seq), so that the cost
// follows the number of lanes, not the number of waiting jobs.
import { type ActiveLane, kindOfLane } from "../../core/lane.ts";
import type { Signs, Store } from "../store.ts";
import { type Context, NOW } from "./context.ts";
import type { PostgresValue } from "./driver.ts";
import type { Floors, FullLook } from "./floors.ts";
import { withRoom } from "./groups.ts";
import { belongingAt } from "../rows.ts";
import { openQuarantine } from "./quarantine.ts";

/** Less than any number a lane can have. */
const BELOW_ALL_LANES = -1;

/** This many jobs show whether lanes are thin: if they are in more lanes than half that number. */
const SAMPLE = 64;

/**
 * The statement that finds the head of every lane; always answers a row, for its time and its duration. The head of the
 * next lane is one step down the index, however many jobs lie between; where lanes have few jobs, reading on is several
 * times faster.
 */
export function lanesText(s: string): string {
  const near = `select w.lane, w.run_at, w.seq from ${s}.waiting w
    where (w.lane, w.run_at, w.seq) >= (p.lane, p.run_at, p.seq) and w.lane < p.below order by w.lane, w.run_at, w.seq`;
  const after = (lane: string): string => `select w.lane, w.run_at, w.seq from ${s}.waiting w where w.lane > ${lane}
    order by w.lane, w.run_at, w.seq limit 1`;
  return `select h.lane, h.run_at, ${NOW}, h.seq, extract(milliseconds from clock_timestamp() - statement_timestamp())::int,
      l.type, l.queue, l.service, l.tenant, l.group_key, l.group_concurrency, l.priority, r.room, r.run_at, ${signsText(s)}
    from (select) as always left join (
      select n.lane, n.run_at, n.seq from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) as p (lane, run_at, seq, below)
      cross join lateral (
        with recursive near as materialized (${near} limit (
          select case when count(distinct lane) > ${SAMPLE / 2} then $5 else 1 end from (${near} limit ${SAMPLE}) as sample)),
        head as (
          (${after("(select max(lane) from near)")})
          union all
          select n.lane, n.run_at, n.seq from head cross join lateral (${after("head.lane")}) n where n.lane < p.below)
        select lane, run_at, seq from (select distinct on (lane) lane, run_at, seq from near order by lane, run_at, seq) as read
        union all select lane, run_at, seq from head where lane < p.below) n limit $5) h on true
    left join lateral (select * from ${s}.lane where base = h.lane - h.lane % 4 limit 1) l on true
    ${withRoom(s)} order by h.lane`;
}

/** The columns of the signs; each is read once for the whole statement. */
const signsText = (s: string): string => `(select version from ${s}.control), (select count(*) from ${s}.worker),
      (select max(seq) from ${s}.worker), (select min(case when given_up then 0 else lease_end end) from ${s}.worker),
      (select coalesce(sum(version), 0)::bigint from ${s}.cell where name = '' and holder = '')`;

/** Their first index in a row. */
const SIGNS = 14;

function signsFrom(row: readonly PostgresValue[]): Omit<Signs, "isHeard"> {
  const [control, workers, newest, lapseAt, cells] = row.slice(SIGNS) as (number | null)[];
  return {
    control: control ?? 0,
    workers: workers ?? 0,
    newest: newest ?? 0,
    lapseAt: lapseAt ?? null,
    cells: cells ?? 0,
  };
}

/** The verb that looks for lanes with work; `isHeard` tells whether processes that make work due wake this process. */
export function lanesVerb(context: Context, floors: Floors, isHeard: () => boolean): Store["lanes"] {
  const { db, s, lanes } = context;
  const aside = openQuarantine(context);
  const heads = { name: "lanes", text: lanesText(s) };
  const look: Store["lanes"] = async (from, limit) => {
    const after = from ?? BELOW_ALL_LANES;
    const stretches = floors.stretches(after);
    const all = await db.ask(
      heads,
      stretches.map(({ lane }) => lane),
      stretches.map(({ runAt }) => runAt),
      stretches.map(({ seq }) => seq),
      stretches.map(({ below }) => below),
      limit + 1,
    );
    const now = all[0]?.[2] as number;
    const rows = all.filter(([lane]) => lane !== null);
    const active: ActiveLane[] = [];
    let nextRunAt: number | null = null;
    for (const row of rows.slice(0, limit)) {
      if (row[5] === null) {
        await aside();
        continue;
      }
      const belonging = belongingAt(row, 5);
      const [lane, room, heldRunAt] = [row[0], row[12], row[13]] as [number, number | null, number | null];
      lanes.remember(lane, belonging);
      if (room === 0) continue;
      const headRunAt = heldRunAt ?? (row[1] as number);
      if (headRunAt <= now) active.push({ lane, kind: kindOfLane(lane), headRunAt, ...belonging, room });
      else nextRunAt = Math.min(headRunAt, nextRunAt ?? headRunAt);
    }
    const next = rows.length > limit ? (rows[limit - 1]?.[0] as number) : null;
    if (stretches.length === 1) floors.looked(fullLook(all, rows, after, next, lanes.numbers()));
    // A floor must not make a lane look empty.
    else if (active.length === 0 && next === null) {
      floors.forget();
      return look(from, limit);
    }
    return {
      lanes: active,
      next,
      nextRunAt,
      now,
      signs: { ...signsFrom(all[0] as PostgresValue[]), isHeard: isHeard() },
    };
  };
  return look;
}

function fullLook(
  all: PostgresValue[][],
  rows: PostgresValue[][],
  after: number,
  through: number | null,
  known: Iterable<number>,
): FullLook {
  const heads = new Map(rows.map((row) => [row[0] as number, { runAt: row[1] as number, seq: row[3] as number }]));
  const [, , now] = all[0] as PostgresValue[];
  return { after, through, heads, known, now: now as number, tookMs: Math.max(...all.map((row) => row[4] as number)) };
}
