// How finished jobs go from Postgres: removed by hand, or pruned when their time is over, a bounded number at a time, so
// that plain autovacuum keeps up. What belongs to a job goes with it; its key learns that the job is gone.
import { isJobId } from "../../core/new-job.ts";
import { BUCKET_KINDS, inPruneOrder, type Place, placeCursor, type Pruning, pruning } from "../retention.ts";
import { UNREADABLE } from "../rows.ts";
import type { DeadTarget, PruneAnswer, Retention, Store } from "../store.ts";
import { heldRuns } from "./columns.ts";
import { type Ask, type Context, freeKeys, NOW } from "./context.ts";
import { orphanSweeper } from "./orphans.ts";

/** The verbs that delete. */
export function retentionVerbs({ db, s }: Context): Pick<Store, "remove" | "prune"> {
  const remove = {
    name: "remove",
    text: `with gone as (
      delete from ${s}.job j using unnest($1::text[], $2::int[]) as u (id, generation)
      where j.id = u.id and (case when u.generation is null then j.state in ('completed', 'dead', 'cancelled')
        else j.state = 'dead' and j.generation = u.generation end) returning j.id, j.key, j.seq),
    ${freeKeys(s)} select array_agg(seq) from gone`,
  };
  const bury = burier(s);
  const step = pruneStep(s);
  const clean = cleaner(s);
  const freeOldKeys = keyCleaner(s);
  const sweepOrphans = orphanSweeper(s);
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
        const seqs = (row?.[0] ?? []) as number[];
        await bury(ask, seqs);
        return seqs.length;
      });
    },
    prune: (retention) =>
      db.together(async (ask) => {
        const by = pruning(retention, (await ask(clock))[0]?.[0] as number);
        const answer = await step(ask, by, retention);
        await freeOldKeys(ask, by, retention.limit);
        if (retention.cursor === null) {
          await clean(ask, by);
          await sweepOrphans(ask, retention.limit);
        }
        return answer;
      }),
  };
}

/** Deletes what belonged to jobs that were just deleted; of its own, so that it sees what was written until then. */
function burier(s: string): (ask: Ask, seqs: readonly number[]) => Promise<void> {
  const attempts = { name: "bury_attempts", text: `delete from ${s}.attempt where job_seq = any($1::bigint[])` };
  const letters = { name: "bury_letters", text: `delete from ${s}.dead_letter where job_seq = any($1::bigint[])` };
  return async (ask, seqs) => {
    if (seqs.length === 0) return;
    await ask(attempts, seqs);
    await ask(letters, seqs);
  };
}

function targetOf(target: string | DeadTarget): { readonly id: string; readonly generation: number | null } {
  return typeof target === "string" ? { id: target, generation: null } : target;
}

interface Finished extends Place {
  readonly type: string;
  readonly state: "completed" | "cancelled" | "dead";
}

type Step = (ask: Ask, by: Pruning, retention: Retention) => Promise<PruneAnswer>;

function pruneStep(s: string): Step {
  // A job that was redriven or removed meanwhile is not where its note says any more, and is not looked at.
  const look = {
    name: "prune_look",
    text: `select b.at, e.seq, coalesce(l.type, '${UNREADABLE.type}') from ${s}.ended b cross join unnest(b.seqs) as e (seq)
      join ${s}.job j on j.seq = e.seq and j.state = b.state and j.finished_at = b.at
      left join ${s}.lane l on l.base = j.lane - j.lane % 4
      where b.state = $1 and b.at >= $2 and b.at <= $4 and (b.at > $2 or e.seq > $3) order by b.at, e.seq limit $5`,
  };
  const forget = {
    name: "prune",
    text: `with gone as (
      delete from ${s}.job j using unnest($1::bigint[], $2::bigint[]) as u (seq, at) where j.seq = u.seq and j.finished_at = u.at
      returning j.id, j.key, j.state, j.seq), ${freeKeys(s)}
      select state, array_agg(seq) from gone group by state`,
  };
  // Notes of which nothing is left.
  const tidy = {
    name: "prune_tidy",
    text: `delete from ${s}.ended b where b.ctid = any(array(
      select n.ctid from ${s}.ended n where n.state = $1 and n.at >= $2 and n.at <= $3 and not exists (
        select from unnest(n.seqs) as e (seq) join ${s}.job j on j.seq = e.seq and j.state = n.state and j.finished_at = n.at)
      order by n.at limit $4))`,
  };
  const bury = burier(s);
  return async (ask, by, { limit }) => {
    const { after, finishedUntil, deadUntil } = by;
    const inState = async (state: Finished["state"], until: number | null): Promise<Finished[]> => {
      if (until === null || after.finishedAt > until) return [];
      const rows = await ask(look, state, after.finishedAt, after.seq, until, limit + 1);
      return (rows as [number, number, string][]).map(([finishedAt, seq, type]) => ({ finishedAt, seq, type, state }));
    };
    const old = [
      ...(await inState("completed", finishedUntil)),
      ...(await inState("cancelled", finishedUntil)),
      ...(await inState("dead", deadUntil)),
    ];
    const seen = old.sort(inPruneOrder).slice(0, limit);
    const over = seen.filter(({ type, state, finishedAt }) => by.isOver(type, state, finishedAt));
    const pruned = { completed: 0, cancelled: 0, dead: 0 };
    // Counted as they go: somebody else may be pruning, or sending them back to work.
    const gone = over.length === 0 ? [] : await ask(forget, ...placesOf(over));
    for (const [state, seqs] of gone as [Finished["state"], number[]][]) {
      pruned[state] = seqs.length;
      await bury(ask, seqs);
    }
    const untils = { completed: finishedUntil, cancelled: finishedUntil, dead: deadUntil };
    for (const state of ["completed", "cancelled", "dead"] as const) {
      const times = seen.filter((each) => each.state === state).map(({ finishedAt }) => finishedAt);
      const [from, until] = times.length > 0 ? [times[0], times.at(-1)] : [after.finishedAt, untils[state]];
      if (until !== null) await ask(tidy, state, from as number, until as number, limit);
    }
    return { ...pruned, next: old.length > seen.length ? placeCursor(seen.at(-1) as Finished) : null };
  };
}

function placesOf(places: readonly Place[]): number[][] {
  return [places.map(({ seq }) => seq), places.map(({ finishedAt }) => finishedAt)];
}

/** Deletes keys of jobs that are gone, with every step as many as it may: there are as many as jobs. */
function keyCleaner(s: string): (ask: Ask, by: Pruning, limit: number) => Promise<void> {
  const keys = {
    text: `delete from ${s}.job_key where (type, key) in (select k.type, k.key from ${s}.job_key k where k.gone and k.created_at <= $1
      and not exists (select from ${s}.job j where j.id = k.job_id) order by k.created_at, k.type, k.key limit $2)`,
  };
  return async (ask, { keysUntil }, limit) => void (await ask(keys, keysUntil, limit));
}

/** Deletes what nobody needs any more beside jobs and their keys. */
function cleaner(s: string): (ask: Ask, by: Pruning) => Promise<void> {
  const workers = {
    text: `with gone as (
      delete from ${s}.worker w where w.given_up and w.beat_at <= $1
        and not exists (select from ${heldRuns(s)} where h.worker = w.id) returning w.id)
    delete from ${s}.claim c using gone where c.worker = gone.id`,
  };
  const pauses = {
    text: `with gone as (delete from ${s}.pause where until_at <= $1 returning seq)
      update ${s}.control set version = version + 1 where exists (select from gone)`,
  };
  // One that is being written is not old any more.
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
