// Finds runs that exceed their stuck limit, lets core judge them, and settles them under their lease, so that the store
// refuses whatever they report later. A worker ends its stuck runs itself; this is for workers that do not, because
// their event loop is blocked or their clock is wrong, and for operators who ask for it.
import type { Job } from "../core/job.ts";
import { pausedMs } from "../core/paused.ts";
import { parkedSpans, recordFrom } from "../core/service-record.ts";
import { type Outcome, type RetryPolicy, type Verdict, verdict } from "../core/verdict.ts";
import type { OverdueRequest, OverdueRun, Store } from "../store/store.ts";
import type { System } from "../system/system.ts";
import { settleJudged, type SettlingOptions } from "./judged-runs.ts";
import type { Service } from "./upkeep.ts";

/** What judging stuck runs needs. */
export interface StuckJudge {
  readonly system: Pick<System, "random">;
  /** The policy of a type, or the default for an unknown one. */
  readonly policyOf: (type: string) => RetryPolicy;
}

/** What the check needs. */
export interface StuckCheckOptions extends StuckJudge, SettlingOptions {
  /** How long after its limit a run is still left to its own worker. */
  readonly graceMs: number;
  /** How many workers share the check, as far as is known; default 1. */
  readonly workers?: () => number;
  /** True if no worker can have a run now, as far as is known; default false. */
  readonly nothingRuns?: () => boolean;
}

/** A run that exceeds its limit, and its verdict. */
export interface StuckJudgement {
  readonly run: OverdueRun;
  readonly verdict: Verdict;
}

const PAGE = 200;
const EVERY_MS = 10_000;
/** Most workers that share the check. */
const SHARED_MOST = 6;

/** While nothing runs, the store is asked at one step of so many: jobs of a claim that went wrong may be left. */
const IDLE_STEPS = 12;

/** The service: every ten seconds; where several workers share the check, each of them less often. */
export function stuckService(options: StuckCheckOptions): Service {
  let idleSteps = 0;
  return {
    name: "stuck check",
    async step(signal) {
      idleSteps = options.nothingRuns?.() ? idleSteps + 1 : 0;
      if (idleSteps % IDLE_STEPS === 0) await checkStuck(options, signal);
      return EVERY_MS * Math.max(1, Math.min(SHARED_MOST, options.workers?.() ?? 1));
    },
  };
}

/** Settles every run that is over its limit and the grace; answers how many. */
export async function checkStuck(options: StuckCheckOptions, signal?: AbortSignal): Promise<number> {
  let settled = 0;
  const refused: unknown[] = [];
  for await (const page of judgedPages({ byMs: options.graceMs }, options)) {
    settled += (await settleJudged(page, options, refused)).length;
    if (signal?.aborted) break;
  }
  if (refused.length > 0) throw refused[0];
  return settled;
}

/** Runs that exceed their limit, with their verdicts, page by page. */
export async function* judgedPages(
  request: Pick<OverdueRequest, "byMs" | "ranMs">,
  options: StuckJudge & { readonly store: Store },
): AsyncGenerator<StuckJudgement[]> {
  for (let after = 0; ; ) {
    const found = await options.store.overdue({ ...request, limit: PAGE, after });
    const last = found.at(-1);
    if (!last) return;
    after = last.position;
    // A job that was enqueued by name gets the limits of its type only here, and these may be longer, or none.
    const { ranMs: least, byMs = 0 } = request;
    const isStuck = ({ job, ranMs }: OverdueRun): boolean => job.stuckMs !== null && ranMs >= job.stuckMs + byMs;
    const runs = least === undefined ? found.filter(isStuck) : found;
    const heldMs = await heldBy(runs, options.store);
    yield runs.map((run) => ({ run, verdict: judge(run, heldMs, options) }));
  }
}

function judge(
  { job, started, ranMs }: OverdueRun,
  heldMs: (job: Job, until: number) => number,
  { policyOf, system }: StuckJudge,
): Verdict {
  // A job that was fetched ahead and never started is not at fault.
  const outcome: Outcome = started ? { kind: "stuck", ranMs } : { kind: "released", reason: "not_started", delayMs: 0 };
  const now = (job.startedAt ?? 0) + ranMs;
  return verdict(job, outcome, policyOf(job.type), now, system.random, heldMs(job, now));
}

/** The time that a job was held back, which deadlines do not count; read only where there is a deadline. */
async function heldBy(runs: readonly OverdueRun[], store: Store): Promise<(job: Job, until: number) => number> {
  if (runs.every(({ job }) => job.deadlineMs === null)) return () => 0;
  const { pauses, services } = await store.control();
  const parked = services.flatMap(({ name, value }) => parkedSpans(recordFrom(value), name));
  return (job, until) => (job.deadlineMs === null ? 0 : pausedMs([...pauses, ...parked], job, job.dueAt, until));
}
