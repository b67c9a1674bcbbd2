// Groups on Postgres. A row of `place` is a place that a job holds; its key is the group and the number of the place,
// so that two concurrent claims never both get it, whatever they saw before.
import type { Value } from "../columns.ts";
import { jobFromRow } from "../rows.ts";
import type { Store } from "../store.ts";
import { jobColumns, withLane, withRun } from "./columns.ts";
import { type Context, NOW } from "./context.ts";
import { groupNumber } from "./schema.ts";
import type { Waker } from "./wake.ts";

/** The verb about groups. */
export function groupVerbs({ db, s }: Context): Pick<Store, "holders"> {
  const read = {
    name: "holders",
    text: `select ${jobColumns(s)} from ${s}.place p join ${s}.job j on j.seq = p.seq ${withLane(s)} ${withRun(s)}
      where p.group_n = ${groupNumber("$1::text", "$2::text")} order by j.seq`,
  };
  return {
    holders: async ({ type, group }) => (await db.ask(read, type, group)).map((row) => jobFromRow(row as Value[])),
  };
}

/** How many places of the group of a lane `l` are held, and by which job if by one. */
const places = (s: string): string =>
  `(select count(*)::int as held, min(p.seq) as holder from ${s}.place p where p.group_n = l.group_n) g`;

/**
 * Joins the head `h` of a lane `l` with the room of its group, null for a lane without a group; and, for groups of one,
 * with the due time of the job that holds the place and waits in this lane.
 */
export const withRoom = (s: string): string => `left join lateral (
    select case when a.run_at is null then greatest(l.group_concurrency - g.held, 0) else 1 end as room, a.run_at
    from ${places(s)} left join lateral (
      select j.run_at from ${s}.job j join ${s}.waiting w on w.lane = j.lane and w.run_at = j.run_at and w.seq = j.seq
      where j.seq = g.holder and j.lane = h.lane and g.held = 1 and l.group_concurrency = 1 limit 1) a on true
    where l.group_n is not null limit 1) r on true`;

const LAST = "9223372036854775807";

/**
 * Takes work from lanes of groups, each group named once, into `taken`, as a claim does from other lanes. A job that
 * holds the place of its group and waits goes before all others; any other job needs a free place. In groups of one, a
 * first job that another claim is about to take is not skipped.
 */
export const takenOfGroups = (s: string): string => `q as materialized (
      select q.lane, q.quota, q.n, l.group_n, l.group_concurrency as most, g.held, g.holder
      from unnest($4::bigint[], $5::int[], $10::int[]) as q (lane, quota, n)
      cross join lateral (select * from ${s}.lane where base = q.lane - q.lane % 4 and group_n is not null limit 1) l
      cross join lateral ${places(s)}
      where exists (select from ${s}.worker where id = $1 and not given_up) and exists (select from ${s}.control where version = $3)
        and (select set_config('synchronous_commit', 'off', true)) is not null),
    again as materialized (
      select w.row, j.run_at, j.seq, q.n, true as holds, q.group_n, 0 as slot
      from q cross join lateral (
        select j.lane, j.run_at, j.seq from ${s}.job j where j.seq = q.holder and q.most = 1 and q.held = 1 limit 1) j
      cross join lateral (
        select w.ctid as row from ${s}.waiting w where w.lane = j.lane and w.run_at = j.run_at and w.seq = j.seq
          and j.lane = q.lane and j.run_at <= ${NOW} limit 1 for update skip locked) w),
    fresh as materialized (
      select w.row, w.run_at, w.seq, q.n, false as holds, q.group_n,
        f.slots[row_number() over (partition by q.n order by w.run_at, w.seq)] as slot
      from q cross join lateral (select array(
          select generate_series(1, q.most) as slot except select p.slot from ${s}.place p where p.group_n = q.group_n
          order by slot limit least(q.quota, q.most - q.held, $6)) as slots where q.held < q.most limit 1) f
      cross join lateral (
        select e.run_at, e.seq from ${s}.waiting e where e.lane = q.lane order by e.run_at, e.seq limit 1) e
      cross join lateral (
        select w.ctid as row, w.run_at, w.seq from ${s}.waiting w where w.lane = q.lane and w.run_at <= ${NOW}
          and (w.run_at, w.seq) <= (case when q.most = 1 then e.run_at else ${LAST} end, case when q.most = 1 then e.seq else ${LAST} end)
        order by w.run_at, w.seq limit least(q.quota, q.most - q.held, $6) for update skip locked) w),
    wanted as materialized (
      select * from (select * from again union all select * from fresh) as either order by n, run_at, seq limit $6),
    placed as (
      insert into ${s}.place (group_n, slot, seq) select group_n, slot, seq from wanted where not holds
      order by group_n, slot on conflict do nothing returning seq),
    taken as (
      delete from ${s}.waiting where ctid = any(array(
        select row from wanted where holds or seq = any(array(select seq from placed))))
      returning lane, run_at, seq, epoch)`;

/** Frees the places of ended jobs; follows a CTE that has their numbers. */
export const freePlaces = (s: string, of: string): string =>
  `places as (delete from ${s}.place p using ${of} where p.seq = ${of}.seq)`;

/** Frees the places of jobs whose run was judged, except those that go back to a group of one. */
export const freeStatement = (s: string, waker: Waker | null) => ({
  name: "settle_places",
  text: `with places as (
      delete from ${s}.place p where p.seq = any($1::bigint[]) and not exists (
        select from ${s}.job j join ${s}.lane l on l.base = j.lane - j.lane % 4
        where j.seq = p.seq and j.state = 'queued' and l.group_concurrency = 1))
    select ${waker ? waker.notify : "null"}`,
});
