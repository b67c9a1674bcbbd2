// Workers and their leases on Postgres. A heartbeat is one write, however many jobs the worker holds.
import type { Value } from "../columns.ts";
import { expiredFromRow, leaseFromRow, overdueFromRow, workerFromRow } from "../rows.ts";
import type { Store } from "../store.ts";
import { allRuns, heldRuns, jobColumns, withLane } from "./columns.ts";
import { type Context, NOW } from "./context.ts";
import type { PostgresValue } from "./driver.ts";

/** The verbs about workers. */
export type PostgresWorkerVerbs = Pick<
  Store,
  "register" | "beat" | "expired" | "overdue" | "held" | "leave" | "workers"
>;

/**
 * The heartbeat statement. It waits for the row of its worker only so long that there is time for another heartbeat
 * before the lease ends. A program that may not work with the schema any more is refused, so that others get its runs.
 */
export const beatText = (s: string, known: number): string => `with alive as (
    update ${s}.worker set lease_end = ${NOW} + $2, beat_at = ${NOW}, started_through = greatest(started_through, $3)
    where id = $1 and not given_up and not exists (select from ${s}.migration where readable_by > ${known})
      and (select pg_catalog.set_config('lock_timeout', greatest(150, least($2::bigint / 5, 4000))::text, true)) is not null returning id)
  select ${NOW}, exists (select from alive), (select pg_catalog.json_agg(pg_catalog.json_build_array(j.id, h.epoch, h.nonce) order by j.seq)::text
    from ${heldRuns(s)} where h.worker = $1 and j.cancel_requested and exists (select from alive))`;

/** The answer in a heartbeat's row. */
export function beatAnswer(row: readonly PostgresValue[] | undefined): Awaited<ReturnType<Store["beat"]>> {
  const [now, alive, asked] = row as [number, boolean, string | null];
  const leases = asked === null ? [] : (JSON.parse(asked) as [string, number, string][]);
  return { now, alive, cancel: leases.map(([id, epoch, nonce]) => ({ id, epoch, nonce })) };
}

/** The columns of a run: a job, its nonce, whether it had started, and its position. */
const runColumns = (s: string): string => `${jobColumns(s)}, h.nonce, coalesce(h.ticket <= greatest(w.started_through,
  (select max(m.started) from ${s}.claim m where m.worker = h.worker)), true)::int, j.seq`;

/**
 * Runs that exceed a limit: that of the request, of the type for a job enqueued by name, or of the job itself. The type is
 * read only of a job enqueued by name: a join would look up the lane of every run.
 */
export function overdueText(s: string): string {
  return `select ${runColumns(s)}, ${NOW} - h.at
    from ${allRuns(s, `c.at <= ${NOW} - $6::bigint`)} left join ${s}.worker w on w.id = h.worker ${withLane(s)}
    where h.at + coalesce($3::bigint, case when not j.limited then (select max(n.stuck_ms)
        from unnest($4::text[], $5::bigint[]) as n (type, stuck_ms)
        where n.type = (select o.type from ${s}.lane o where o.base = j.lane - j.lane % 4)) end, j.stuck_ms) <= ${NOW} - $6::bigint
      and j.seq > $1 order by j.seq limit $2`;
}

/** The verbs about workers. */
export function workerVerbs({ db, s, migrations }: Context): PostgresWorkerVerbs {
  const insert = {
    text: `insert into ${s}.worker (id, pid, host, release, lease_end, started_at, beat_at)
      values ($1, $2, $3, $4, ${NOW} + $5, ${NOW}, ${NOW}) on conflict (id) do nothing`,
  };
  const beat = { name: "beat", text: beatText(s, migrations.length) };
  // Writes only those that are late; a worker whose row is held is found by the next look.
  const giveUp = {
    name: "give_up",
    text: `with late as (
      select id from ${s}.worker where not given_up and (id = any($2::text[])
        or lease_end <= coalesce($1::bigint, ${NOW}) and ($3::text[] is null or id = any($3::text[])))
      for update skip locked)
    update ${s}.worker w set given_up = true from late where w.id = late.id`,
  };
  const lost = {
    name: "lost",
    text: `select ${runColumns(s)}
      from ${heldRuns(s)} left join ${s}.worker w on w.id = h.worker ${withLane(s)}
      where coalesce(w.given_up, true) and j.seq > $1 order by j.seq limit $2`,
  };
  const overdue = { name: "overdue", text: overdueText(s) };
  const held = {
    name: "held",
    text: `select j.id, h.epoch, h.nonce from ${heldRuns(s)} where h.worker = $1 order by j.seq`,
  };
  const forget = {
    text: `with gone as (
      delete from ${s}.worker where id = $1 and not exists (select from ${heldRuns(s)} where h.worker = $1) returning id),
    cleared as (delete from ${s}.claim using gone where claim.worker = gone.id),
    given_up as (update ${s}.worker set given_up = true where id = $1 and not exists (select from gone))
    select 1`,
  };
  const all = {
    text: `select w.id, w.pid, w.host, w.release, w.lease_end, w.started_at, w.beat_at, w.given_up::int, coalesce(r.held, 0)
      from ${s}.worker w left join (select h.worker, count(*) as held from ${allRuns(s)} group by h.worker) r on r.worker = w.id
      order by w.seq`,
  };
  return {
    async register({ id, pid, host, release, leaseMs }) {
      await db.ask(insert, id, pid, host, release, leaseMs);
    },
    beat: async ({ worker, leaseMs, startedThrough }) =>
      beatAnswer((await db.ask(beat, worker, leaseMs, startedThrough))[0]),
    async expired({ gone, limit, after = 0, lapsedBy = null, late = null }) {
      await db.ask(giveUp, lapsedBy, gone, late);
      return (await db.ask(lost, after, limit)).map((row) => expiredFromRow(row as Value[]));
    },
    async overdue({ limit, after = 0, byMs = 0, ranMs = null, named = [] }) {
      const types = [named.map(({ type }) => type), named.map(({ stuckMs }) => stuckMs)] as const;
      return (await db.ask(overdue, after, limit, ranMs, ...types, byMs)).map((row) => overdueFromRow(row as Value[]));
    },
    held: async (id) => (await db.ask(held, id)).map((row) => leaseFromRow(row as Value[])),
    async leave(id) {
      await db.ask(forget, id);
    },
    workers: async () => (await db.ask(all)).map((row) => workerFromRow(row as Value[])),
  };
}
