// Lists stuck runs and ends them now, on request. Core judges them, as in the check of every worker.
import { type Duration, parseDuration } from "../core/duration.ts";
import { invalid, parseOptions } from "../core/options.ts";
import type { Verdict } from "../core/verdict.ts";
import type { ActionOptions, EventLog } from "../report/event-log.ts";
import { settleJudged, type SettlingOptions } from "../upkeep/judged-runs.ts";
import { judgedPages, type StuckJudge, type StuckJudgement } from "../upkeep/stuck-runs.ts";
import { checkKinds } from "./filter.ts";

/** Which runs count as stuck. */
export interface StuckFilter {
  /**
   * Every run longer than this, at least 1 ms, instead of the stuck limits of the jobs; also runs of jobs without a
   * limit.
   */
  readonly olderThan?: Duration;
  /** Only runs of jobs of this type. */
  readonly type?: string;
}

/** A run that takes too long, and the verdict about its job. Times are epoch milliseconds by the store's clock. */
export interface StuckRun {
  /** The id of the job. */
  readonly id: string;
  /** The type of the job. */
  readonly type: string;
  /** The key of the job; null without one. */
  readonly key: string | null;
  /** The worker that runs it. */
  readonly worker: string | null;
  /** When the run started; null if it did not. */
  readonly startedAt: number | null;
  /** How long it has run. */
  readonly ranMs: number;
  /** Its stuck limit; null without one. */
  readonly limitMs: number | null;
  /** The verdict: `release` if the run had not started, `cancel` if a cancel was requested. */
  readonly verdict: Exclude<Verdict["kind"], "complete">;
  /** When it is retried; null if it is not. */
  readonly retryAt: number | null;
  /** The failure that is recorded; null for `release` and `cancel`. */
  readonly message: string | null;
  /** True if this call ended the run; false in a list or a dry run, or if the run ended by itself meanwhile. */
  readonly fixed: boolean;
}

/** Finds and ends runs that exceed their limit. */
export interface Stuck {
  /** Lists the runs longer than their stuck limit, with the verdict that `fix` would write; changes nothing. */
  list(filter?: StuckFilter): Promise<StuckRun[]>;
  /**
   * Ends those runs now: the store refuses what they report later, and their jobs are retried or die as the limits of
   * each say. With `dryRun: true` it changes nothing.
   */
  fix(options?: StuckFilter & { readonly dryRun?: boolean } & ActionOptions): Promise<StuckRun[]>;
}

/** Which runs to end; a dry run ends none. */
interface Ending {
  readonly ranMs: number | undefined;
  readonly type: string | undefined;
  readonly dryRun: boolean;
}

/** Stuck runs of a store. */
export function openStuck(options: StuckJudge & SettlingOptions & { readonly eventLog: EventLog }): Stuck {
  const end = async ({ ranMs, type, dryRun }: Ending, found: StuckRun[]): Promise<StuckRun[]> => {
    const refused: unknown[] = [];
    for await (const page of judgedPages(ranMs === undefined ? {} : { ranMs }, options)) {
      const judged = page.filter(({ run }) => type === undefined || run.job.type === type);
      const settled = dryRun ? [] : await settleJudged(judged, options, refused);
      found.push(...judged.map((each) => stuckRun(each, settled.includes(each))));
    }
    if (refused.length > 0) throw refused[0];
    return found;
  };
  const fix = async (given: Parameters<Stuck["fix"]>[0] = {}): Promise<StuckRun[]> => {
    const {
      dryRun = false,
      olderThan,
      type,
      why,
    } = parseOptions(given, ["dryRun", "olderThan", "type", "why"], "stuck");
    checkKinds({ type, dryRun }, { text: ["type"], yesOrNo: ["dryRun"] });
    const ranMs = olderThan === undefined ? undefined : parseDuration(olderThan, "olderThan", { minMs: 1 });
    const ending = { ranMs, type, dryRun } as Ending;
    const found: StuckRun[] = [];
    if (ending.dryRun) return end(ending, found);
    const outcome = (): object => ({ fixed: found.filter(({ fixed }) => fixed).length, found: found.length });
    const action = { kind: "stuck.fix", subject: null, why, details: { filter: { ranMs, type } }, outcome };
    return options.eventLog.act(action, () => end(ending, found));
  };
  return {
    async list(filter = {}) {
      parseOptions(filter, ["olderThan", "type"], "stuck");
      return fix({ ...filter, dryRun: true });
    },
    fix,
  };
}

function stuckRun({ run: { job, ranMs }, verdict }: StuckJudgement, fixed: boolean): StuckRun {
  const { id, type, key, worker, startedAt } = job;
  if (verdict.kind === "complete")
    throw invalid("verdict", "none that completes", verdict.kind, "report this as a defect");
  const retryAt = "delayMs" in verdict ? (startedAt ?? 0) + ranMs + verdict.delayMs : null;
  const message = "failure" in verdict ? verdict.failure.message : null;
  const run = { id, type, key, worker, startedAt, ranMs, limitMs: job.stuckMs };
  return { ...run, verdict: verdict.kind, retryAt, message, fixed };
}
