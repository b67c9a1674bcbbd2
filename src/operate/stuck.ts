// Stuck runs by hand: which there are, and ending them now. Judged by core as the check in every worker does it.
import { type Duration, parseDuration } from "../core/duration.ts";
import { invalid, parseOptions } from "../core/options.ts";
import type { Verdict } from "../core/verdict.ts";
import { settleJudged, type SettlingOptions } from "../upkeep/judged-runs.ts";
import { judgedPages, type StuckJudge, type StuckJudgement } from "../upkeep/stuck-runs.ts";
import { checkKinds } from "./filter.ts";

/** Which runs count as stuck. */
export interface StuckFilter {
  /** Every run longer than this, in place of the limits of their types; runs of types without a limit as well. */
  readonly olderThan?: Duration;
  readonly type?: string;
}

/** A run that takes too long, and what becomes of its job. Times are epoch milliseconds by the store's clock. */
export interface StuckRun {
  /** The id of the job. */
  readonly id: string;
  readonly type: string;
  readonly worker: string | null;
  readonly startedAt: number | null;
  readonly ranMs: number;
  /** Its limit; null where it has none. */
  readonly limitMs: number | null;
  /** `release` where it had not even started, `cancel` where somebody had asked for that. */
  readonly verdict: Exclude<Verdict["kind"], "complete">;
  /** When it is tried again; null if it is not. */
  readonly retryAt: number | null;
  readonly message: string | null;
  /** False where nothing was done: for a list, a dry run, or a run that ended meanwhile. */
  readonly fixed: boolean;
}

/** Stuck runs. */
export interface Stuck {
  /** Runs that take longer than they may, with what would become of them. */
  list(filter?: StuckFilter): Promise<StuckRun[]>;
  /** Ends them now: what they say later is refused. With `dryRun` nothing is changed. */
  fix(options?: StuckFilter & { readonly dryRun?: boolean }): Promise<StuckRun[]>;
}

/** Stuck runs of a store. */
export function openStuck(options: StuckJudge & SettlingOptions): Stuck {
  const fix = async (given: Parameters<Stuck["fix"]>[0] = {}): Promise<StuckRun[]> => {
    const { dryRun = false, olderThan, type } = parseOptions(given, ["dryRun", "olderThan", "type"], "stuck");
    checkKinds({ type, dryRun }, { text: ["type"], yesOrNo: ["dryRun"] });
    const ranMs = olderThan === undefined ? undefined : parseDuration(olderThan, "olderThan", { minMs: 1 });
    const found: StuckRun[] = [];
    const refused: unknown[] = [];
    for await (const page of judgedPages(ranMs === undefined ? {} : { ranMs }, options)) {
      const judged = page.filter(({ run }) => type === undefined || run.job.type === type);
      const settled = dryRun ? [] : await settleJudged(judged, options, refused);
      found.push(...judged.map((each) => stuckRun(each, settled.includes(each))));
    }
    if (refused.length > 0) throw refused[0];
    return found;
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
  const { id, type, worker, startedAt } = job;
  if (verdict.kind === "complete")
    throw invalid("verdict", "none that completes", verdict.kind, "report this as a defect");
  const retryAt = "delayMs" in verdict ? (startedAt ?? 0) + ranMs + verdict.delayMs : null;
  const message = "failure" in verdict ? verdict.failure.message : null;
  return { id, type, worker, startedAt, ranMs, limitMs: job.stuckMs, verdict: verdict.kind, retryAt, message, fixed };
}
