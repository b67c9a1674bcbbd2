// Workers and their leases in memory.
import type { ExpiredRun } from "../store.ts";
import type { Verbs } from "../verbs.ts";
import { jobOf, type Row, type Tables } from "./tables.ts";

/** The verbs about workers. */
export function workerVerbs(
  tables: Tables,
): Pick<Verbs, "register" | "beat" | "expired" | "overdue" | "held" | "leave" | "workers"> {
  const runsOf = (worker: string) =>
    [...tables.running].filter((row) => row.worker === worker).sort((a, b) => a.seq - b.seq);
  return {
    register({ leaseMs, ...worker }) {
      const now = tables.clock();
      if (tables.workers.has(worker.id)) return;
      const lease = { leaseEnd: now + leaseMs, startedAt: now, beatAt: now, givenUp: false, startedThrough: 0 };
      tables.workers.set(worker.id, { ...worker, ...lease });
      tables.workersSeen += 1;
    },
    beat({ worker: id, leaseMs, startedThrough }) {
      const now = tables.clock();
      const worker = tables.workers.get(id);
      if (!worker || worker.givenUp) return { alive: false, cancel: [], now };
      worker.leaseEnd = now + leaseMs;
      worker.beatAt = now;
      worker.startedThrough = Math.max(worker.startedThrough, startedThrough);
      const asked = runsOf(id).filter((row) => row.cancelRequested);
      return {
        alive: true,
        now,
        cancel: asked.map((row) => ({ id: row.id, epoch: row.epoch, nonce: row.nonce ?? "" })),
      };
    },
    expired({ gone, limit, after = 0, lapsedBy = tables.clock(), late }) {
      for (const worker of tables.workers.values()) {
        const isLate = worker.leaseEnd <= lapsedBy && (late?.includes(worker.id) ?? true);
        if (isLate || gone.includes(worker.id)) worker.givenUp = true;
      }
      return runsAfter(tables, after, limit, (row) => tables.workers.get(row.worker ?? "")?.givenUp ?? true);
    },
    overdue({ limit, after = 0, byMs = 0, ranMs, named = [] }) {
      const now = tables.clock();
      const limits = new Map(named.map(({ type, stuckMs }) => [type, stuckMs]));
      const mayTake = ({ type, limited, stuckMs }: Row): number =>
        ranMs ?? (limited ? null : limits.get(type)) ?? stuckMs ?? Number.POSITIVE_INFINITY;
      const runs = runsAfter(tables, after, limit, (row) => (row.startedAt ?? now) + mayTake(row) + byMs <= now);
      return runs.map((run) => ({ ...run, ranMs: now - (run.job.startedAt ?? now) }));
    },
    held: (id) => runsOf(id).map((row) => ({ id: row.id, epoch: row.epoch, nonce: row.nonce ?? "" })),
    leave(id) {
      const worker = tables.workers.get(id);
      if (worker && runsOf(id).length > 0) worker.givenUp = true;
      else tables.workers.delete(id);
    },
    workers: () =>
      [...tables.workers.values()].map(({ startedThrough: _hidden, ...worker }) => ({
        ...worker,
        running: runsOf(worker.id).length,
      })),
  };
}

/** Runs of this kind, in the order of enqueue. */
function runsAfter(tables: Tables, after: number, limit: number, is: (row: Row) => boolean): ExpiredRun[] {
  return [...tables.running]
    .filter((row) => row.seq > after && is(row))
    .sort((a, b) => a.seq - b.seq)
    .slice(0, limit)
    .map((row) => ({
      position: row.seq,
      job: jobOf(row),
      lease: { id: row.id, epoch: row.epoch, nonce: row.nonce ?? "" },
      started: row.ticket <= (tables.workers.get(row.worker ?? "")?.startedThrough ?? Number.POSITIVE_INFINITY),
    }));
}
