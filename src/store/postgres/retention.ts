// Deletes finished jobs from Postgres: by hand, or by a prune when they have expired, a bounded number at a time, so
// that plain autovacuum keeps up. Rows that belong to a job are deleted with it; its key is marked.
import { LATEST_INSTANT } from "../../core/job.ts";
import { isJobId } from "../../core/new-job.ts";
import {
  BUCKET_KINDS,
  END_STATES,
  type EndState,
  inPruneOrder,
  type Over,
  type Pruning,
  pruning,
} from "../retention.ts";
import { UNREADABLE } from "../rows.ts";
import type { DeadTarget, PruneAnswer, Store } from "../store.ts";
import { tickLetters } from "./causes.ts";
import { goesAt, heldRuns, withLane } from "./columns.ts";
import { type Ask, type Context, freeKeys, NOW } from "./context.ts";
import { eventCleaner } from "./event-log.ts";
import { laneCleaner } from "./old-lanes.ts";
import { tickGone } from "./redrives.ts";
import { orphanSweeper } from "./orphans.ts";

/** The verbs that delete, and the one that moves expiries. */
export function retentionVerbs({ db, s }: Context): Pick<Store, "remove" | "prune" | "retain"> {
  const remove = {
    name: "remove",
    text: `with gone as (
      delete from ${s}.job j using unnest($1::text[], $2::int[]) as u (id, generation)
      where j.id = u.id and (case when u.generation is null then j.state in ('completed', 'dead', 'cancelled')
        else j.state = 'dead' and j.generation = u.generation end) returning j.id, j.key, j.seq, j.state),
    ${freeKeys(s)} select array_agg(seq), array_agg(seq) filter (where state <> 'completed') from gone`,
  };
  const bury = burier(s);
  const giveTimes = timer(s);
  const step = pruneStep(s);
  const clean = cleaner(s);
  const freeOldKeys = keyCleaner(s);
  const forgetEvents = eventCleaner(s);
  const sweepOrphans = orphanSweeper(s);
  const forgetLanes = laneCleaner(s);
  const clock = { text: `select ${NOW}` };
  return {
    async remove(targets) {
      const legal = targets.map(targetOf).filter(({ id }) => isJobId(id));
      return db.together(async (ask) => {
        const [row] = await ask(
          remove,
          legal.map(({ id }) => id),
          legal.map(({ generation }) => generation),
        );
        const [seqs, lost] = (row ?? []).map((found) => found ?? []) as [number[], number[]];
        await bury(ask, seqs, lost);
        return seqs.length;
      });
    },
    prune: (retention) =>
      db.together(async (ask) => {
        const by = pruning(retention, (await ask(clock))[0]?.[0] as number);
        const isLeft = await giveTimes(ask, by, retention.limit);
        const states = END_STATES.filter((state) => !(retention.holdDead && state === "dead"));
        const answer = await step(ask, by, retention.limit, states);
        await freeOldKeys(ask, by, retention.limit);
        await forgetEvents(ask, by, retention.limit);
        if (retention.isFirst) {
          await clean(ask, by);
          await sweepOrphans(ask, retention.limit);
          await forgetLanes(ask, by, retention.limit);
        }
        return { ...answer, more: isLeft || answer.more };
      }),
    retain: retainer(db, s),
  };
}

/**
 * Deletes the rows of jobs that were just deleted; a separate statement, so that it sees all writes until then. Those that
 * had not completed are `lost` to the redrive run that has sent them, unless their outcome was known.
 */
function burier(s: string): (ask: Ask, seqs: readonly number[], lost: readonly number[]) => Promise<void> {
  const attempts = {
    name: "bury_attempts",
    text: `with versions as (delete from ${s}.payload_version where job_seq = any($1::bigint[]))
      delete from ${s}.attempt where job_seq = any($1::bigint[])`,
  };
  const letters = {
    name: "bury_letters",
    text: `with letter as (
      delete from ${s}.dead_letter where job_seq = any($1::bigint[])
      returning fingerprint, type, release, redriven_at, redrive, outcome is null and job_seq = any($2::bigint[]) as is_lost),
    ${tickLetters(s, "removed", "letter", "redriven_at is null")},
    ${tickGone(s, "letter")} select 1`,
  };
  return async (ask, seqs, lost) => {
    if (seqs.length === 0) return;
    await ask(attempts, seqs);
    await ask(letters, seqs, lost);
  };
}

function targetOf(target: string | DeadTarget): { readonly id: string; readonly generation: number | null } {
  return typeof target === "string" ? { id: target, generation: null } : target;
}

/** Rows of `ended` with the jobs for which they are still right: not those redriven, removed or moved since. */
const endedJobs = (s: string): string => `${s}.ended b cross join unnest(b.seqs) as e (seq)
  join ${s}.job j on j.seq = e.seq and j.state = b.state and ${goesAt("j.")} = b.at`;

const TYPE = `coalesce(l.type, '${UNREADABLE.type}')`;

const STATES = `array[${END_STATES.map((state) => `'${state}'`).join(", ")}]`;

/** Rows of `ended` with a time in this range that are no longer right, at most so many of each state. */
const tidyStatement = (s: string) => ({
  name: "prune_tidy",
  text: `delete from ${s}.ended b where b.ctid = any(array(
    select void.ctid from unnest(${STATES}) as of (state) cross join lateral (
      select n.ctid from ${s}.ended n where n.state = of.state and n.at >= $1 and n.at <= $2 and not exists (
        select from unnest(n.seqs) as e (seq) join ${s}.job j on j.seq = e.seq and j.state = n.state and ${goesAt("j.")} = n.at)
      order by n.at limit $3) void))`,
});

/** Gives jobs that ended without an expiry one, at most so many; true if there are more. */
function timer(s: string): (ask: Ask, by: Pruning, limit: number) => Promise<boolean> {
  const look = {
    name: "prune_timeless",
    text: `select j.state, j.seq, j.finished_at, ${TYPE} from ${endedJobs(s)} ${withLane(s)}
      where b.state = any(${STATES}) and b.at = -1 limit $1`,
  };
  const give = moveStatement(s, "prune_time");
  const tidy = tidyStatement(s);
  return async (ask, by, limit) => {
    const rows = (await ask(look, limit + 1)) as [EndState, number, number, string][];
    const found = rows.slice(0, limit).sort(([, a], [, b]) => a - b);
    const times = found.map(([state, , finishedAt, type]) => by.expiryOf(type, state, finishedAt));
    const seqs = found.map(([, seq]) => seq);
    if (found.length > 0)
      await ask(
        give,
        seqs,
        found.map(() => -1),
        times,
      );
    await ask(tidy, -1, -1, limit);
    return rows.length > limit;
  };
}

/** Gives ended jobs another expiry, where they still have the given one and no transaction holds them. */
const moveStatement = (s: string, name: string) => ({
  name,
  text: `with free as materialized (
    select j.seq, u.at from unnest($1::bigint[], $2::bigint[], $3::bigint[]) as u (seq, was, at)
    join ${s}.job j on j.seq = u.seq and j.finished_at is not null and ${goesAt("j.")} = u.was for update of j skip locked),
  moved as (
    update ${s}.job j set expires_at = free.at from free where j.seq = free.seq returning j.seq, j.state, j.expires_at)
  insert into ${s}.ended (state, at, seqs) select state, expires_at, array_agg(seq order by seq) from moved
    where expires_at < ${LATEST_INSTANT} group by 1, 2`,
});

type Step = (ask: Ask, by: Pruning, limit: number, states: readonly EndState[]) => Promise<PruneAnswer>;

function pruneStep(s: string): Step {
  const look = {
    name: "prune_look",
    text: `select over.* from unnest(${STATES}) as of (state) cross join lateral (
      select b.at, e.seq, ${TYPE}, b.state from ${endedJobs(s)} ${withLane(s)}
      where b.state = of.state and b.at >= 0 and b.at <= $1 order by b.at, e.seq limit $2) over where of.state = any($3::text[])`,
  };
  // A job or key that another open transaction holds stays until a later prune, and nothing waits for it.
  const forget = {
    name: "prune",
    text: `with free as materialized (
      select j.seq, j.id, j.key from unnest($1::bigint[], $2::bigint[]) as u (seq, at)
      join ${s}.job j on j.seq = u.seq and j.finished_at is not null and j.expires_at = u.at
      order by j.seq for update of j skip locked),
    keys as materialized (
      select k.job_id from ${s}.job_key k where k.job_id = any(array(select id from free where key is not null)) for update skip locked),
    gone as (
      delete from ${s}.job j where j.seq = any(array(
        select seq from free where key is null or id = any(array(select job_id from keys))
          or not exists (select from ${s}.job_key k where k.job_id = free.id)))
      returning j.id, j.key, j.state, j.seq), ${freeKeys(s)}
      select state, array_agg(seq) from gone group by state`,
  };
  const setAside = moveStatement(s, "prune_aside");
  const tidy = tidyStatement(s);
  const bury = burier(s);
  return async (ask, by, limit, states) => {
    const rows = (await ask(look, by.now, limit + 1, states)) as [number, number, string, EndState][];
    const found = rows.map(([expiresAt, seq, type, state]): Over => ({ expiresAt, seq, type, state }));
    const over = found.sort(inPruneOrder).slice(0, limit);
    const aside = over.filter(by.isAside);
    if (aside.length > 0)
      await ask(
        setAside,
        ...placesOf(aside),
        aside.map(() => LATEST_INSTANT),
      );
    const pruned = { completed: 0, cancelled: 0, dead: 0 };
    // Counted as they are deleted: another process may be pruning, or redriving them.
    const going = over.filter((each) => !by.isAside(each));
    const gone = going.length === 0 ? [] : await ask(forget, ...placesOf(going));
    for (const [state, seqs] of gone as [EndState, number[]][]) {
      pruned[state] = seqs.length;
      await bury(ask, seqs, state === "completed" ? [] : seqs);
    }
    await ask(tidy, 0, over.at(-1)?.expiresAt ?? by.now, limit);
    // If everything on a page is held, the next page would be the same.
    return { ...pruned, more: found.length > limit && gone.length + aside.length > 0 };
  };
}

function placesOf(over: readonly Over[]): number[][] {
  return [over.map(({ seq }) => seq), over.map(({ expiresAt }) => expiresAt)];
}

/** Moves the expiries of ended jobs. */
function retainer(db: Context["db"], s: string): Store["retain"] {
  const move = {
    name: "retain",
    // Only jobs to be moved are looked up by number: on most pages there are none.
    text: `with page as materialized (
      select seq, lane, state, finished_at, keep_ms, keep_dead_ms, expires_at from ${s}.job where seq > $1 order by seq limit $2),
    kept as (select * from unnest($3::text[], $4::bigint[], $5::bigint[]) as kept (type, keep_ms, keep_dead_ms)),
    wrong as materialized (
      select p.seq, k.keep_ms, k.keep_dead_ms from page p join ${s}.lane l on l.base = p.lane - p.lane % 4 join kept k on k.type = l.type
      where ${isKeptOtherwise("p")}),
    moved as (
      update ${s}.job j set keep_ms = k.keep_ms, keep_dead_ms = k.keep_dead_ms, expires_at = ${timeBy("j")}
      from wrong k where j.seq = k.seq and ${isKeptOtherwise("j")}
      returning j.seq, j.state, j.expires_at),
    noted as (insert into ${s}.ended (state, at, seqs) select state, expires_at, array_agg(seq order by seq) from moved
      where expires_at < ${LATEST_INSTANT} group by 1, 2)
    select (select count(*) from page), (select max(seq) from page), (select count(*) from moved)`,
  };
  return async ({ types, after, limit }) => {
    const columns = [
      types.map(({ type }) => type),
      types.map(({ finishedMs }) => finishedMs),
      types.map(({ deadMs }) => deadMs),
    ];
    const [row] = await db.ask(move, after, limit, ...columns);
    const [seen, last, moved] = row as [number, number | null, number];
    return { moved, next: seen === limit ? last : null };
  };
}

/** When an ended job expires that is kept as long as `k` says; one that waits for its archive keeps waiting. */
const timeBy = (job: string): string => `case when ${job}.expires_at = ${LATEST_INSTANT} then ${job}.expires_at
  else ${job}.finished_at + case when ${job}.state = 'dead' then k.keep_dead_ms else k.keep_ms end end`;

/** True for an ended job whose expiry differs from what `k` says. */
const isKeptOtherwise = (job: string): string => `${job}.finished_at is not null
  and (${job}.keep_ms, ${job}.keep_dead_ms, ${job}.expires_at) is distinct from (k.keep_ms, k.keep_dead_ms, ${timeBy(job)})`;

/** Deletes keys of deleted jobs, with every step as many as allowed: there are as many as jobs. */
function keyCleaner(s: string): (ask: Ask, by: Pruning, limit: number) => Promise<void> {
  // A key that is being taken stays: by the time it could be deleted it would belong to another job.
  const keys = {
    text: `delete from ${s}.job_key where (type, key) in (select k.type, k.key from ${s}.job_key k where k.gone and k.created_at <= $1
      and not exists (select from ${s}.job j where j.id = k.job_id) order by k.created_at, k.type, k.key limit $2
      for update of k skip locked)`,
  };
  return async (ask, { keysUntil }, limit) => void (await ask(keys, keysUntil, limit));
}

/** Deletes other old rows besides jobs and their keys. */
function cleaner(s: string): (ask: Ask, by: Pruning) => Promise<void> {
  const workers = {
    text: `with gone as (
      delete from ${s}.worker where id in (select w.id from ${s}.worker w where w.given_up and w.beat_at <= $1
        and not exists (select from ${heldRuns(s)} where h.worker = w.id) for update of w skip locked) returning id)
    delete from ${s}.claim c using gone where c.worker = gone.id`,
  };
  const pauses = {
    text: `with gone as (delete from ${s}.pause where until_at <= $1 returning seq)
      update ${s}.control set version = version + 1 where exists (select from gone)`,
  };
  // A cell that is being written is no longer old.
  const cells = {
    text: `delete from ${s}.cell where (kind, name, holder) in (
      select kind, name, holder from ${s}.cell where (holder <> '' and at <= $1) or (kind = any($3::text[]) and at <= $2)
      for update skip locked)`,
  };
  return async (ask, { debrisUntil, cellsUntil, bucketsUntil }) => {
    await ask(workers, debrisUntil);
    await ask(pauses, debrisUntil);
    await ask(cells, cellsUntil, bucketsUntil, [...BUCKET_KINDS]);
  };
}
