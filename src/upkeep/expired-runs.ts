// Finds runs whose worker is gone, lets core judge them, and settles them under the lost lease. Every worker does this;
// if two find the same run, the fence makes one of them stale.
import { workerGivenUp } from "../core/event-log.ts";
import type { Failure } from "../core/job.ts";
import { lapsedWorkers, type TimeReading } from "../core/lapse.ts";
import { type RetryPolicy, verdict } from "../core/verdict.ts";
import type { ExpiredRun, Store, WorkerRecord } from "../store/store.ts";
import type { System } from "../system/system.ts";
import type { Reporter } from "../report/reporter.ts";
import { type JudgedRun, settleJudged } from "./judged-runs.ts";

/** Runs judged in one settle. */
const PAGE = 200;

/** What reaping needs. */
export interface ReaperOptions {
  readonly store: Store;
  readonly system: System;
  /** This worker's id; it never gives itself up. */
  readonly self: string;
  readonly host: string;
  readonly isAlive: (pid: number) => boolean;
  /** The policy of a type, or the default for an unknown one. */
  readonly policyOf: (type: string) => RetryPolicy;
  /** This worker's lease. Runs of a worker that is given up or has no row are left to that worker for as long. */
  readonly leaseMs: number;
  /** True once contact has lasted for this lease, so that living workers with that lease had time for a heartbeat. */
  readonly hasLasted: (leaseMs: number) => boolean;
  /** Receives the store's time before any worker is judged by it. */
  readonly onTold: (reading: TimeReading) => void;
  /** Receives the known workers. */
  readonly onSeen?: (workers: readonly WorkerRecord[]) => void;
  readonly report: Reporter;
}

/** Judges all runs that dead workers left; returns how many it settled. */
export async function reap(
  options: ReaperOptions,
  evidence: ReadonlyMap<string, Failure> = new Map(),
): Promise<number> {
  const { store, system } = options;
  const asked = system.monotonic();
  const [workers, { now }] = await Promise.all([store.workers(), store.control()]);
  options.onTold({ storeTime: now, asked, answered: system.monotonic() });
  options.onSeen?.(workers);
  const gone = [...evidence.keys(), ...lostProcesses(workers, options)];
  const late = lapsedWorkers(workers, now, options.hasLasted);
  if (late.length === 0 && gone.length === 0 && !options.hasLasted(options.leaseMs)) return 0;
  let settled = 0;
  const refused: unknown[] = [];
  for (let after = 0; ; ) {
    const runs = await store.expired({ gone, late, limit: PAGE, lapsedBy: now, after });
    const last = runs.at(-1);
    if (!last) break;
    after = last.position;
    const judged = runs.map((run) => judge(run, evidence, options));
    settled += (await settleJudged(judged, options, refused)).length;
  }
  await noteGivenUp(
    store,
    workers.filter(({ id, givenUp }) => !givenUp && (gone.includes(id) || late.includes(id))),
  );
  if (refused.length > 0) throw refused[0];
  // A worker that was given up and holds no run has no further use.
  for (const { id } of workers.filter((worker) => worker.givenUp && worker.running === 0)) await store.leave(id);
  return settled;
}

/** Writes to the event log which of these workers were given up; one that is gone by now was given up and cleared away. */
async function noteGivenUp(store: Store, suspects: readonly WorkerRecord[]): Promise<void> {
  if (suspects.length === 0) return;
  const now = new Map((await store.workers()).map((worker) => [worker.id, worker]));
  const lost = suspects.filter(({ id }) => now.get(id)?.givenUp ?? true);
  if (lost.length > 0)
    await store.record(
      lost.map(({ id, host, pid, release, running }) => workerGivenUp(id, { host, pid, release, running })),
    );
}

/** Workers of this host whose process is gone. */
export function lostProcesses(
  workers: readonly WorkerRecord[],
  { host, self, isAlive }: Pick<ReaperOptions, "host" | "self" | "isAlive">,
): string[] {
  const ours = workers.filter((worker) => worker.host === host && worker.id !== self);
  return ours.filter((worker) => !isAlive(worker.pid)).map((worker) => worker.id);
}

function judge(
  run: ExpiredRun,
  evidence: ReadonlyMap<string, Failure>,
  { policyOf, system }: ReaperOptions,
): JudgedRun {
  const { job, started, isOutside = false } = run;
  const outcome = { kind: "lost", started, worker: job.worker ?? "unknown", isOutside } as const;
  const answer = verdict(job, outcome, policyOf(job.type), system.now(), system.random);
  const found = evidence.get(job.worker ?? "");
  return {
    run,
    verdict: found && "failure" in answer ? { ...answer, failure: { ...answer.failure, ...found } } : answer,
  };
}
