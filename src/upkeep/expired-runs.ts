// Finds runs whose worker is gone, has core judge them, and settles them under the lease that was lost. Every worker
// does this; two that find the same run are told apart by the fence, and one of them is stale.
import type { Failure } from "../core/job.ts";
import { type RetryPolicy, verdict } from "../core/verdict.ts";
import type { ExpiredRun, Store, WorkerRecord } from "../store/store.ts";
import type { System } from "../system/system.ts";
import type { Reporter } from "../worker/report.ts";
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
  /** True once we have been in contact for a full lease, so that living workers had the time to show themselves. */
  readonly mayJudgeLeases: () => boolean;
  /** A look at the store that takes longer than this says nothing about others. */
  readonly slowMs: number;
  readonly report: Reporter;
}

/** Judges everything that dead workers left behind; returns how many runs it settled. */
export async function reap(
  options: ReaperOptions,
  evidence: ReadonlyMap<string, Failure> = new Map(),
): Promise<number> {
  const { store } = options;
  const asked = options.system.monotonic();
  const [workers, { now }] = await Promise.all([store.workers(), store.control()]);
  // A look that took long was held up, and so were the heartbeats of others.
  const heldUp = options.system.monotonic() - asked > options.slowMs;
  const gone = [...evidence.keys(), ...lostProcesses(workers, options)];
  const lapsedBy = !heldUp && options.mayJudgeLeases() ? now : 0;
  if (lapsedBy === 0 && gone.length === 0) return 0;
  let settled = 0;
  const refused: unknown[] = [];
  for (let after = 0; ; ) {
    const runs = await store.expired({ gone, limit: PAGE, lapsedBy, after });
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
