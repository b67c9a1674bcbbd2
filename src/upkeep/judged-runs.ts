// Settles runs over the heads of those who hold them, each under its own lease: whoever settles first is right, and the
// other one is stale.
import { isRedriveError } from "../core/errors.ts";
import type { Verdict } from "../core/verdict.ts";
import type { ExpiredRun, Store } from "../store/store.ts";
import type { Reporter } from "../report/reporter.ts";

/** A run of somebody else's, and what it deserves. */
export interface JudgedRun {
  readonly run: ExpiredRun;
  readonly verdict: Verdict;
}

/** What settling needs. */
export interface SettlingOptions {
  readonly store: Store;
  readonly report: Reporter;
}

/** Settles these; answers which counted. One that the store refuses does not keep the others from it, and is put aside. */
export async function settleJudged<J extends JudgedRun>(
  judged: readonly J[],
  options: SettlingOptions,
  refused: unknown[],
): Promise<J[]> {
  try {
    return await settleTogether(judged, options);
  } catch (error) {
    if (!isRedriveError(error, "illegal_transition")) throw error;
    if (judged.length === 1) refused.push(error);
    const settled: J[] = [];
    if (judged.length > 1) for (const each of judged) settled.push(...(await settleJudged([each], options, refused)));
    return settled;
  }
}

async function settleTogether<J extends JudgedRun>(judged: readonly J[], options: SettlingOptions): Promise<J[]> {
  const settlements = judged.map(({ run: { lease, job }, verdict }) => ({
    ...lease,
    grouped: job.group !== null,
    verdict,
  }));
  const { stale, locked = [] } = await options.store.settle({ settlements });
  // A stale one was settled by its own worker or by somebody like us in the meantime: theirs to report. One that somebody
  // holds is found again by the next round.
  const lost = new Set([...stale, ...locked].map(({ id }) => id));
  const counted = judged.filter(({ run }) => !lost.has(run.job.id));
  for (const { run, verdict } of counted) options.report(run.job, verdict, "counted");
  return counted;
}
