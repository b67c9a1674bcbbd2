// Deletes finished jobs from SQLite: by hand, or by a prune when they have expired. Rows that belong to a job are
// deleted with it by foreign key; a trigger marks its key.
import { LATEST_INSTANT } from "../../core/job.ts";
import {
  BUCKET_KINDS,
  END_STATES,
  type EndState,
  inPruneOrder,
  type Over,
  type Pruning,
  pruning,
  retained,
} from "../retention.ts";
import { CauseChanges, NO_WORKER } from "../causes.ts";
import { RedriveChanges } from "../dead-letters.ts";
import { UNREADABLE } from "../rows.ts";
import type { PruneAnswer } from "../store.ts";
import type { Verbs } from "../verbs.ts";
import { removals, ticker } from "./causes.ts";
import type { SqliteDatabase } from "./driver.ts";
import { goneCounter, runCounter } from "./redrives.ts";
import { eventCleaner } from "./event-log.ts";
import { RUNNING } from "./jobs.ts";
import type { SqliteLaneNumbers } from "./lane-numbers.ts";
import { laneCleaner } from "./old-lanes.ts";

/** The verbs that delete, and the one that moves expiries. */
export function retentionVerbs(
  db: SqliteDatabase,
  lanes: SqliteLaneNumbers,
  clock: () => number,
): Pick<Verbs, "remove" | "prune" | "retain"> {
  const addRemoved = removals(db);
  const addGone = goneCounter(db);
  const countRuns = runCounter(db);
  const tick = ticker(db);
  const typeOf = (lane: number): string => lanes.belonging(lane)?.type ?? UNREADABLE.type;
  const giveTimes = timer(db, typeOf);
  const look = onlooker(db, typeOf);
  const forget = db.prepare("delete from job where seq in (select value from json_each(?))");
  const setAside = db.prepare(
    `update job set expires_at = ${LATEST_INSTANT} where seq in (select value from json_each(?))`,
  );
  const clean = cleaner(db);
  const forgetLanes = laneCleaner(db, lanes, clock);
  const freeOldKeys = keyCleaner(db);
  const forgetEvents = eventCleaner(db);
  return {
    remove: remover(db, clock),
    prune(retention): PruneAnswer {
      const { limit, isFirst, holdDead = false } = retention;
      const by = pruning(retention, clock());
      const left = giveTimes(by, limit);
      const over = look(by.now, limit + 1, holdDead);
      const pruned = { completed: 0, cancelled: 0, dead: 0 };
      const gone: number[] = [];
      const aside: number[] = [];
      for (const each of over.slice(0, limit)) {
        (by.isAside(each) ? aside : gone).push(each.seq);
        if (!by.isAside(each)) pruned[each.state] += 1;
      }
      const changes = new CauseChanges();
      if (pruned.dead > 0) addRemoved(gone, changes);
      tick(changes, NO_WORKER, by.now);
      const runs = new RedriveChanges();
      if (pruned.dead + pruned.cancelled > 0) addGone(gone, runs);
      countRuns(runs, NO_WORKER, by.now);
      if (gone.length > 0) forget.run(JSON.stringify(gone));
      if (aside.length > 0) setAside.run(JSON.stringify(aside));
      freeOldKeys(by, limit);
      forgetEvents(by, limit);
      if (isFirst) {
        clean(by);
        forgetLanes(by, limit);
      }
      return { ...pruned, more: left || over.length > limit };
    },
    retain: retainer(db, typeOf),
  };
}

function remover(db: SqliteDatabase, clock: () => number): Verbs["remove"] {
  const remove = db.prepare("delete from job where id = ? and state in ('completed', 'dead', 'cancelled')");
  const removeDead = db.prepare("delete from job where id = ? and state = 'dead' and generation = ?");
  const seqOf = db.prepare(
    "select seq from job where id = ? and state in ('dead', 'cancelled') and (? is null or (state = 'dead' and generation = ?))",
  );
  const addRemoved = removals(db);
  const addGone = goneCounter(db);
  const countRuns = runCounter(db);
  const tick = ticker(db);
  return (targets) => {
    const changes = new CauseChanges();
    const runs = new RedriveChanges();
    let count = 0;
    for (const target of targets) {
      const [id, generation] = typeof target === "string" ? [target, null] : [target.id, target.generation];
      const seqs = seqOf.all(id, generation, generation).map(([seq]) => seq as number);
      addRemoved(seqs, changes);
      addGone(seqs, runs);
      count += generation === null ? remove.run(id) : removeDead.run(id, generation);
    }
    tick(changes, NO_WORKER, clock());
    countRuns(runs, NO_WORKER, clock());
    return count;
  };
}

/** A lane damaged by hand can have a number that JavaScript cannot read. */
const LANE = `max(min(lane, ${Number.MAX_SAFE_INTEGER}), 0)`;

type TypeOf = (lane: number) => string;

/** Gives jobs that ended without an expiry one, at most so many; true if there are more. */
function timer(db: SqliteDatabase, typeOf: TypeOf): (by: Pruning, limit: number) => boolean {
  const timeless = db.prepare(
    `select seq, finished_at, ${LANE} from job where state = ? and state <> 'queued' and expires_at is null order by seq limit ?`,
  );
  const give = db.prepare("update job set expires_at = ? where seq = ?");
  return (by, limit) => {
    let left = limit;
    for (const state of END_STATES) {
      const rows = timeless.all(state, left + 1) as [number, number, number][];
      for (const [seq, finishedAt, lane] of rows.slice(0, left))
        give.run(by.expiryOf(typeOf(lane), state, finishedAt), seq);
      if (rows.length > left) return true;
      left -= rows.length;
    }
    return false;
  };
}

/** Finds expired jobs: of each state as many as allowed, and of all these the first. */
function onlooker(db: SqliteDatabase, typeOf: TypeOf): (now: number, most: number, holdDead: boolean) => Over[] {
  const over = db.prepare(
    `select seq, expires_at, ${LANE} from job where state = ? and state <> 'queued' and expires_at <= ?
     order by expires_at, seq limit ?`,
  );
  const inState = (state: EndState, now: number, most: number): Over[] =>
    (over.all(state, now, most) as [number, number, number][]).map(([seq, expiresAt, lane]) => {
      return { seq, expiresAt, state, type: typeOf(lane) };
    });
  return (now, most, holdDead) => {
    const states = END_STATES.filter((state) => !(holdDead && state === "dead"));
    const all = states.flatMap((state) => inState(state, now, most));
    return all.sort(inPruneOrder).slice(0, most);
  };
}

/** Moves the expiries of ended jobs. */
function retainer(db: SqliteDatabase, typeOf: TypeOf): Verbs["retain"] {
  const read = db.prepare(
    `select seq, state, finished_at, expires_at, keep_ms, keep_dead_ms, ${LANE} from job where seq > ? order by seq limit ?`,
  );
  const write = db.prepare("update job set expires_at = ?, keep_ms = ?, keep_dead_ms = ? where seq = ?");
  return ({ types, after, limit }) => {
    const byType = new Map(types.map((each) => [each.type, each]));
    const rows = read.all(after, limit + 1) as [number, EndState, ...(number | null)[]][];
    let moved = 0;
    for (const [seq, state, finishedAt, expiresAt, keepFinishedMs, keepDeadMs, lane] of rows.slice(0, limit)) {
      const type = typeOf(lane as number);
      const job = { type, state, finishedAt, expiresAt, keepFinishedMs, keepDeadMs };
      const change = retained(job as Parameters<typeof retained>[0], byType);
      if (!change) continue;
      write.run(change.expiresAt, change.keepFinishedMs, change.keepDeadMs, seq);
      moved += 1;
    }
    return { moved, next: rows.length > limit ? (rows[limit - 1]?.[0] as number) : null };
  };
}

const BUCKETS = BUCKET_KINDS.map((kind) => `'${kind}'`).join(", ");

/** Deletes keys of deleted jobs, with every step as many as allowed: there are as many as jobs. */
function keyCleaner(db: SqliteDatabase): (by: Pruning, limit: number) => void {
  const keys = db.prepare(
    `delete from job_key where (type, key) in (select k.type, k.key from job_key k where k.gone = 1 and k.created_at <= ?
       and not exists (select 1 from job where job.id = k.job_id) order by k.created_at, k.type, k.key limit ?)`,
  );
  return ({ keysUntil }, limit) => void keys.run(keysUntil, limit);
}

/** Deletes other old rows besides jobs and their keys. */
function cleaner(db: SqliteDatabase): (by: Pruning) => void {
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
