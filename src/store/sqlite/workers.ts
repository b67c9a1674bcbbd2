// Workers and their leases on SQLite. A heartbeat is one write, however many jobs the worker holds.
import { leaseFromRow, workerFromRow } from "../rows.ts";
import type { ExpiredRequest } from "../store.ts";
import type { Verbs } from "../verbs.ts";
import type { Database, Value } from "./driver.ts";
import { RUNNING, WITH_LANE } from "./jobs.ts";
import { JOB_COLUMNS } from "./wire.ts";

/** The verbs about workers; expired runs come as rows of a job, its nonce and whether it had started. */
export interface WorkerVerbs extends Pick<Verbs, "register" | "beat" | "held" | "leave" | "workers"> {
  expired(request: ExpiredRequest): Value[][];
}

/** The verbs about workers. */
export function workerVerbs(db: Database, clock: () => number): WorkerVerbs {
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
  const giveUp = db.prepare("update worker set given_up = 1 where id = ?");
  const anyGivenUp = db.prepare("select 1 from worker where given_up = 1 limit 1");
  const held = db.prepare(
    `select ${JOB_COLUMNS}, j.nonce, coalesce(j.ticket <= w.started_through, 1), j.seq
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
    expired({ gone, limit, after = 0, lapsedBy = clock() }) {
      giveUpLate.run(lapsedBy);
      for (const id of gone) giveUp.run(id);
      return anyGivenUp.all().length > 0 || hasOrphans(db) ? held.all(after, limit) : [];
    },
    held: (id) => ofWorker.all(id).map(leaseFromRow),
    leave(id) {
      if (forget.run(id, id) === 0) giveUp.run(id);
    },
    workers: () => all.all().map(workerFromRow),
  };
}

/** True if a run is in the hands of a worker that has no row any more. */
function hasOrphans(db: Database): boolean {
  const orphan = `select 1 from job j where ${RUNNING} and not exists (select 1 from worker w where w.id = j.worker) limit 1`;
  return db.prepare(orphan).all().length > 0;
}
