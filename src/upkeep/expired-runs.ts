// Finds runs whose worker is gone, has core judge them, and settles them under the lease that was lost. Every worker
// does this; two that find the same run are told apart by the fence, and one of them is stale.
import type { Failure } from "../core/job.ts";
import { lapsedWorkers, type TimeReading } from "../core/lapse.ts";
import { type RetryPolicy, verdict } from "../core/verdict.ts";
import type { ExpiredRun, Store, WorkerRecord } from "../store/store.ts";
import type { System } from "../system/system.ts";
import type { Reporter } from "../report/reporter.ts";
import { type JudgedRun, settleJudged } from "./judged-runs.ts";

/** Runs judged in one settle. */
const PAGE = 200;

/** What reaping needs to know. */
export interface ReaperOptions {
  readonly store: Store;
  readonly system: System;
  /** This worker's own id; it never gives itself up. */
  readonly self: string;
  readonly host: string;
  readonly isAlive: (pid: number) => boolean;
  /** The policy of a type, or the default for one nobody here knows. */
  readonly policyOf: (type: string) => RetryPolicy;
  /** This worker's own lease. Runs whose worker is given up, or has no row, are left to their worker for as long. */
  readonly leaseMs: number;
  /** True once contact has lasted for this lease, so that living workers that have it had the time to show themselves. */
  readonly hasLasted: (leaseMs: number) => boolean;
  /** Hears the store's time before anyone is judged by it. */
  readonly onTold: (reading: TimeReading) => void;
  /** Hears which workers were known. */
  readonly onSeen?: (workers: readonly WorkerRecord[]) => void;
  readonly report: Reporter;
}

/** Judges everything that dead workers left behind; returns how many runs it settled. */
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
  if (refused.length > 0) throw refused[0];
  // Whoever was given up and holds nothing any more is of no use to anybody.
  for (const { id } of workers.filter((worker) => worker.givenUp && worker.running === 0)) await store.leave(id);
  return settled;
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
