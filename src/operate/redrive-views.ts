// Redrive runs as callers see them: the record, with what became of the jobs that were sent.
import { ranOf, pendingOf } from "../core/recovery/judge.ts";
import type { RedriveRun } from "../core/recovery/run.ts";
import { filterOf } from "../core/recovery/selection.ts";
import type { RedriveCounts, Store } from "../store/store.ts";

/** What became of the letters of a run. `sent` is always the sum of all but `left` and `byOthers`. */
export interface RedriveRunCounts {
  /** Jobs that were sent back to work. */
  readonly sent: number;
  /** Completed since. */
  readonly completed: number;
  /** Failed in their first run and not completed since: they are retried, or have died again. */
  readonly failed: number;
  /** Taken back before a worker took them: they are dead as before. */
  readonly recalled: number;
  /** Cancelled before their first run had ended. */
  readonly cancelled: number;
  /** Deleted before an outcome was known. */
  readonly gone: number;
  /** Sent, and their first run has not ended. */
  readonly pending: number;
  /** Letters that were not sent. */
  readonly left: number;
  /** Letters that were to be sent and were sent back by others, or deleted; known once the run has seen all. */
  readonly byOthers: number;
}

/** A redrive run. */
export interface RedriveRunView extends RedriveRun {
  /** What became of its letters. */
  readonly counts: RedriveRunCounts;
  /** Jobs of the same selection that have died since it began, as far as was looked; null in lists. */
  readonly newDeaths: number | null;
}

/** Letters that are looked at for new deaths. */
const LOOK_AT = 10_000;

/** The run with its counts. */
export function viewOf(run: RedriveRun, counts: RedriveCounts, newDeaths: number | null = null): RedriveRunView {
  const { sent, good, recovered, recalled, cancelled, gone } = counts;
  const unsent = Math.max(0, run.toSend - sent);
  return {
    ...run,
    counts: {
      sent,
      completed: good + recovered,
      failed: ranOf(counts) - good - recovered,
      recalled,
      cancelled,
      gone,
      pending: pendingOf(counts),
      left: run.walked ? 0 : unsent,
      byOthers: run.walked ? unsent : 0,
    },
    newDeaths,
  };
}

/** Jobs of the run's selection that have died since it began, without those that it sent itself. */
export async function newDeathsOf(
  store: Pick<Store, "tally">,
  { selection, startedAt }: RedriveRun,
  { dead }: RedriveCounts,
): Promise<number> {
  if (selection.ids) return 0;
  const { until: _, ...filter } = filterOf(selection);
  const { total } = await store.tally({ ...filter, from: startedAt + 1, lookAt: LOOK_AT });
  return Math.max(0, total - dead);
}
