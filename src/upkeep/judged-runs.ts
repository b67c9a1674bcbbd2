// Settles runs without waiting for the workers that hold them, each under its own lease: the first to settle wins, and
// the other is stale.
import { isRedriveError } from "../core/errors.ts";
import type { Verdict } from "../core/verdict.ts";
import type { ExpiredRun, Store } from "../store/store.ts";
import type { Reporter } from "../report/reporter.ts";

/** A run of another worker, and its verdict. */
export interface JudgedRun {
  readonly run: ExpiredRun;
  readonly verdict: Verdict;
}

/** What settling needs. */
export interface SettlingOptions {
  readonly store: Store;
  readonly report: Reporter;
}

/** Settles these; answers which counted. A verdict that the store refuses is set aside and blocks no other. */
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
    redriven: job.generation > 1,
    verdict,
  }));
  const { stale, locked = [] } = await options.store.settle({ settlements });
  // A stale one was meanwhile settled by its own worker or by another reaper, which reports it. One that another
  // transaction holds is found again in the next round.
  const lost = new Set([...stale, ...locked].map(({ id }) => id));
  const counted = judged.filter(({ run }) => !lost.has(run.job.id));
  for (const { run, verdict } of counted) options.report(run.job, verdict, "counted");
  return counted;
}
