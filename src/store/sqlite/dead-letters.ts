// Dead letters on SQLite: list them, send them back, remove and prune what is finished.
import { LANE_KINDS } from "../../core/lane.ts";
import type { DeadLetterQuery, PruneAnswer, Retention } from "../store.ts";
import { readCursor, type Verbs } from "../verbs.ts";
import type { Database, Value } from "./driver.ts";
import { narrow, page, type RowPage, WITH_LANE } from "./jobs.ts";
import { JOB_COLUMNS, JOB_WIDTH } from "./wire.ts";
import { RUNNING } from "./workers.ts";

/** The verbs about what has ended, with rows in the place of objects. */
export interface DeadLetterVerbs extends Pick<Verbs, "redrive" | "remove" | "prune"> {
  deadLetters(query: DeadLetterQuery): RowPage;
  history(id: string): Value[][];
}

const DEATH_COLUMNS = "d.generation, d.reason, d.failure, d.attempts, d.crashes, d.died_at, d.redriven_at";
const DEATH_WIDTH = 7;
const CONDITIONS = {
  jobId: "j.id = ?",
  type: "d.type = ?",
  class: "d.error_class = ?",
  reason: "d.reason = ?",
  fingerprint: "d.fingerprint = ?",
} as const;

/** The verbs about what has ended. */
export function deadLetterVerbs(db: Database, clock: () => number): DeadLetterVerbs {
  const history = db.prepare(
    `select j.id, a.generation, a.epoch, a.attempt, a.worker, a.started_at, a.ended_at, a.delay_ms, a.failure
     from attempt a join job j on j.seq = a.job_seq where j.id = ? order by a.epoch`,
  );
  const remove = db.prepare("delete from job where id = ? and state in ('completed', 'dead', 'cancelled')");
  return {
    deadLetters: (query) => list(db, query),
    history: (id) => history.all(id),
    redrive: redriver(db, clock),
    remove: (ids) => ids.reduce((count, id) => count + remove.run(id), 0),
    prune: (retention) => prune(db, retention, clock()),
  };
}

function list(db: Database, query: DeadLetterQuery): RowPage {
  const { where, values } = narrow("d.seq < ?", readCursor(query.cursor), CONDITIONS, query);
  if (!query.redriven) where.push("d.redriven_at is null");
  const found = db
    .prepare(
      `select ${DEATH_COLUMNS}, ${JOB_COLUMNS}, d.seq from dead_letter d join job j on j.seq = d.job_seq ${WITH_LANE}
       where ${where.join(" and ")} order by d.seq desc limit ?`,
    )
    .all(...values, query.limit + 1);
  return page(found, query.limit, DEATH_WIDTH + JOB_WIDTH);
}

function redriver(db: Database, clock: () => number): Verbs["redrive"] {
  const exists = db.prepare("select 1 from job where id = ?");
  const revive = db.prepare(
    `update job set state = 'queued', generation = generation + 1, attempts = 0, crashes = 0, releases = 0, last_delay_ms = 0,
       cancel_requested = 0, finished_at = null, run_at = ?, due_at = ?, updated_at = ?, lane = lane - lane % 4 + ${LANE_KINDS.indexOf("first")}
     where id = ? and state = 'dead' and generation = ?`,
  );
  const mark = db.prepare(
    "update dead_letter set redriven_at = ? where job_seq = (select seq from job where id = ?) and generation = ?",
  );
  return (requests) => {
    const now = clock();
    return requests.map(({ id, generation, delayMs }) => {
      if (revive.run(now + delayMs, now + delayMs, now, id, generation) === 0)
        return exists.all(id).length > 0 ? "refused" : "missing";
      mark.run(now, id, generation);
      return "redriven";
    });
  };
}

function prune(db: Database, retention: Retention, now: number): PruneAnswer {
  const old = db.prepare(
    `delete from job where seq in (select seq from job where state = ? and state <> 'queued' and finished_at <= ?
       order by finished_at, seq limit ?)`,
  );
  let left = retention.limit;
  const forget = (state: "completed" | "cancelled" | "dead", keepMs: number): number => {
    const count = old.run(state, now - keepMs, left);
    left -= count;
    return count;
  };
  const completed = forget("completed", retention.completedMs);
  const cancelled = forget("cancelled", retention.cancelledMs);
  const dead = forget("dead", retention.deadMs);
  db.prepare(
    `delete from job_key where (type, key) in (select k.type, k.key from job_key k where k.created_at <= ?
       and not exists (select 1 from job where job.id = k.job_id) limit ?)`,
  ).run(now - retention.keyMs, retention.limit);
  const longAgo = now - retention.deadMs;
  db.prepare(
    `delete from worker where given_up = 1 and beat_at <= ? and not exists (select 1 from job j where ${RUNNING} and j.worker = worker.id)`,
  ).run(longAgo);
  db.prepare("delete from pause where until_at <= ?").run(longAgo);
  return { completed, cancelled, dead };
}
