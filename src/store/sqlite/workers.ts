// Workers and their leases on SQLite. A heartbeat is one write, however many jobs the worker holds.
import { JOB_WIDTH } from "../columns.ts";
import { leaseFromRow, workerFromRow } from "../rows.ts";
import type { ExpiredRequest, OverdueRequest } from "../store.ts";
import type { Verbs } from "../verbs.ts";
import type { SqliteDatabase } from "./driver.ts";
import type { Value } from "../columns.ts";
import { RUNNING } from "./jobs.ts";
import { SELECT_JOB, WITH_LANE } from "./wire.ts";

/** The columns of a run: a job, its nonce, whether it had started, and its position. */
const RUN_COLUMNS = `${SELECT_JOB}, j.nonce, coalesce(j.ticket <= w.started_through, 1), j.seq`;

/** The verbs about workers; expired runs come as rows of a job, its nonce and whether it had started. */
export interface SqliteWorkerVerbs extends Pick<Verbs, "register" | "beat" | "held" | "leave" | "workers"> {
  expired(request: ExpiredRequest): Value[][];
  overdue(request: OverdueRequest): Value[][];
}

/** The verbs about workers. */
export function workerVerbs(db: SqliteDatabase, clock: () => number): SqliteWorkerVerbs {
  const insert = db.prepare(
    `insert into worker (id, pid, host, release, lease_end, started_at, beat_at) values (?, ?, ?, ?, ?, ?, ?)
     on conflict (id) do nothing`,
  );
  const beat = db.prepare(
    `update worker set lease_end = ?, beat_at = ?, started_through = max(started_through, ?) where id = ? and given_up = 0`,
  );
  const asked = db.prepare(
    "select id, epoch, nonce from job indexed by job_cancelling where worker = ? and state = 'running' and cancel_requested = 1 order by seq",
  );
  const giveUpLate = db.prepare("update worker set given_up = 1 where given_up = 0 and lease_end <= ?");
  const giveUpIfLate = db.prepare("update worker set given_up = 1 where given_up = 0 and lease_end <= ? and id = ?");
  const giveUp = db.prepare("update worker set given_up = 1 where id = ?");
  const anyGivenUp = db.prepare("select 1 from worker where given_up = 1 limit 1");
  const held = db.prepare(
    `select ${RUN_COLUMNS}
     from job j ${WITH_LANE} left join worker w on w.id = j.worker
     where ${RUNNING} and j.seq > ? and coalesce(w.given_up, 1) = 1 order by j.seq limit ?`,
  );
  const ofWorker = db.prepare(
    `select j.id, j.epoch, j.nonce from job j where ${RUNNING} and j.worker = ? order by j.seq`,
  );
  const forget = db.prepare(
    `delete from worker where id = ? and not exists (select 1 from job j where ${RUNNING} and j.worker = ?)`,
  );
  const all = db.prepare(
    `select w.id, w.pid, w.host, w.release, w.lease_end, w.started_at, w.beat_at, w.given_up,
       coalesce(r.held, 0)
     from worker w left join (select j.worker, count(*) as held from job j where ${RUNNING} group by j.worker) r on r.worker = w.id
     order by w.rowid`,
  );
  return {
    register({ id, pid, host, release, leaseMs }) {
      const now = clock();
      insert.run(id, pid, host, release, now + leaseMs, now, now);
    },
    beat({ worker, leaseMs, startedThrough }) {
      const now = clock();
      if (beat.run(now + leaseMs, now, startedThrough, worker) === 0) return { alive: false, cancel: [], now };
      return { alive: true, cancel: asked.all(worker).map(leaseFromRow), now };
    },
    expired({ gone, limit, after = 0, lapsedBy = clock(), late }) {
      if (!late) giveUpLate.run(lapsedBy);
      for (const id of late ?? []) giveUpIfLate.run(lapsedBy, id);
      for (const id of gone) giveUp.run(id);
      return anyGivenUp.all().length > 0 || hasOrphans(db) ? held.all(after, limit) : [];
    },
    overdue: overdueRuns(db, clock),
    held: (id) => ofWorker.all(id).map(leaseFromRow),
    leave(id) {
      if (forget.run(id, id) === 0) giveUp.run(id);
    },
    workers: () => all.all().map(workerFromRow),
  };
}

/** Runs that exceed their own limit, the limit of their type, or that of the request. */
function overdueRuns(db: SqliteDatabase, clock: () => number): SqliteWorkerVerbs["overdue"] {
  const over = (from: string, where: string): ReturnType<SqliteDatabase["prepare"]> =>
    db.prepare(
      `select ${RUN_COLUMNS}, ? - j.started_at from ${from} ${WITH_LANE} left join worker w on w.id = j.worker
       where ${where} and j.seq > ? order by j.seq limit ? + 0`,
    );
  // Where a job was enqueued by name and its type has a limit, that limit counts.
  const own = over(
    "job j indexed by job_overdue",
    `j.state = 'running' and j.stuck_ms is not null and j.started_at + j.stuck_ms <= ?
     and (j.limited = 1 or l.type not in (select value ->> 0 from json_each(?)))`,
  );
  const ofType = over(
    "job j",
    `${RUNNING} and j.limited = 0
     and j.started_at + (select max(value ->> 1) from json_each(?) where value ->> 0 = l.type) <= ?`,
  );
  const any = over("job j", `${RUNNING} and j.started_at <= ?`);
  return ({ limit, after = 0, byMs = 0, ranMs, named = [] }) => {
    const now = clock();
    const before = now - byMs;
    if (ranMs !== undefined) return any.all(now, before - ranMs, after, limit);
    const types = JSON.stringify(named.map(({ type, stuckMs }) => [type, stuckMs]));
    const found = own.all(now, before, types, after, limit);
    if (named.length === 0) return found;
    const seqOf = (row: Value[]): number => row[JOB_WIDTH + 2] as number;
    return [...found, ...ofType.all(now, types, before, after, limit)]
      .sort((a, b) => seqOf(a) - seqOf(b))
      .slice(0, limit);
  };
}

/** True if a run belongs to a worker that no longer has a row. */
function hasOrphans(db: SqliteDatabase): boolean {
  const orphan = `select 1 from job j where ${RUNNING} and not exists (select 1 from worker w where w.id = j.worker) limit 1`;
  return db.prepare(orphan).all().length > 0;
}
