// How finished jobs go from SQLite: removed by hand, or pruned when their time is over. What belongs to a job goes with
// it by foreign key; its key only learns, by trigger, that the job is gone.
import { BUCKET_KINDS, inPruneOrder, type Place, placeCursor, type Pruning, pruning } from "../retention.ts";
import type { PruneAnswer, Retention } from "../store.ts";
import type { Verbs } from "../verbs.ts";
import type { Database } from "./driver.ts";
import { RUNNING } from "./jobs.ts";
import type { Lanes } from "./lanes.ts";
import { UNREADABLE } from "../rows.ts";

/** The verbs that delete. */
export function retentionVerbs(db: Database, lanes: Lanes, clock: () => number): Pick<Verbs, "remove" | "prune"> {
  const remove = db.prepare("delete from job where id = ? and state in ('completed', 'dead', 'cancelled')");
  const removeDead = db.prepare("delete from job where id = ? and state = 'dead' and generation = ?");
  const look = onlooker(db, lanes);
  const forget = db.prepare("delete from job where seq in (select value from json_each(?))");
  const clean = cleaner(db);
  const freeOldKeys = keyCleaner(db);
  return {
    remove: (targets) =>
      targets.reduce<number>((count, target) => {
        const gone = typeof target === "string" ? remove.run(target) : removeDead.run(target.id, target.generation);
        return count + gone;
      }, 0),
    prune(retention): PruneAnswer {
      const by = pruning(retention, clock());
      const { seen, next } = look(by, retention);
      const over = seen.filter(({ type, state, finishedAt }) => by.isOver(type, state, finishedAt));
      if (over.length > 0) forget.run(JSON.stringify(over.map(({ seq }) => seq)));
      freeOldKeys(by, retention.limit);
      if (retention.cursor === null) clean(by);
      const pruned = { completed: 0, cancelled: 0, dead: 0 };
      for (const { state } of over) pruned[state] += 1;
      return { ...pruned, next };
    },
  };
}

interface Finished extends Place {
  readonly type: string;
  readonly state: "completed" | "cancelled" | "dead";
}

type Onlooker = (by: Pruning, retention: Retention) => { seen: Finished[]; next: string | null };

/** Finds the jobs that a step looks at: of each state as many as it may, and of all these the oldest. */
function onlooker(db: Database, lanes: Lanes): Onlooker {
  // A lane damaged by hand can have a number that JavaScript does not read.
  const columns = `seq, finished_at, max(min(lane, ${Number.MAX_SAFE_INTEGER}), 0)`;
  // Thousands can end in one millisecond; one condition for both halves would read all of these at every step.
  const within = db.prepare(
    `select ${columns} from job where state = ? and state <> 'queued' and finished_at = ? and seq > ? order by seq limit ?`,
  );
  const behind = db.prepare(
    `select ${columns} from job where state = ? and state <> 'queued' and finished_at > ? and finished_at <= ?
     order by finished_at, seq limit ?`,
  );
  const inState = (state: Finished["state"], after: Place, until: number, most: number): Finished[] => {
    if (after.finishedAt > until) return [];
    const rows = within.all(state, after.finishedAt, after.seq, most);
    rows.push(...behind.all(state, after.finishedAt, until, most - rows.length));
    return (rows as [number, number, number][]).map(([seq, finishedAt, lane]) => {
      return { seq, finishedAt, state, type: lanes.belonging(lane)?.type ?? UNREADABLE.type };
    });
  };
  return ({ after, finishedUntil, deadUntil }, { limit }) => {
    const old = [
      ...inState("completed", after, finishedUntil, limit + 1),
      ...inState("cancelled", after, finishedUntil, limit + 1),
      ...(deadUntil === null ? [] : inState("dead", after, deadUntil, limit + 1)),
    ];
    const seen = old.sort(inPruneOrder).slice(0, limit);
    return { seen, next: old.length > seen.length ? placeCursor(seen.at(-1) as Finished) : null };
  };
}

const BUCKETS = BUCKET_KINDS.map((kind) => `'${kind}'`).join(", ");

/** Deletes keys of jobs that are gone, with every step as many as it may: there are as many as jobs. */
function keyCleaner(db: Database): (by: Pruning, limit: number) => void {
  const keys = db.prepare(
    `delete from job_key where (type, key) in (select k.type, k.key from job_key k where k.gone = 1 and k.created_at <= ?
       and not exists (select 1 from job where job.id = k.job_id) order by k.created_at, k.type, k.key limit ?)`,
  );
  return ({ keysUntil }, limit) => void keys.run(keysUntil, limit);
}

/** Deletes what nobody needs any more beside jobs and their keys. */
function cleaner(db: Database): (by: Pruning) => void {
  const workers = db.prepare(
    `delete from worker where given_up = 1 and beat_at <= ?
       and not exists (select 1 from job j where ${RUNNING} and j.worker = worker.id)`,
  );
  const pauses = db.prepare("delete from pause where until_at <= ?");
  const change = db.prepare("update control set version = version + 1");
  const cells = db.prepare(`delete from cell where (holder <> '' and at <= ?) or (kind in (${BUCKETS}) and at <= ?)`);
  return ({ debrisUntil, cellsUntil, bucketsUntil }) => {
    workers.run(debrisUntil);
    if (pauses.run(debrisUntil) > 0) change.run();
    cells.run(cellsUntil, bucketsUntil);
  };
}
