// Runs jobs now, whatever they wait for: sends dead ones back to work, and makes waiting ones due.
import { PAGE } from "../enqueue/paging.ts";
import type { ActionOptions } from "../report/event-log.ts";
import type { Store } from "../store/store.ts";
import type { DeadLetters } from "./dead-letters.ts";
import { checkId } from "./filter.ts";
import type { Jobs } from "./jobs.ts";

/** What became of the jobs. */
export interface RetriedNow {
  /** Dead jobs that were sent back to work. */
  readonly redriven: number;
  /** Waiting jobs that are due now. */
  readonly rescheduled: number;
  /** Jobs that run or have ended. */
  readonly refused: number;
  /** Ids without a job. */
  readonly missing: number;
}

/** Runs the jobs of these ids now. */
export async function retryNow(
  store: Pick<Store, "get">,
  { jobs, deadLetters }: { readonly jobs: Jobs; readonly deadLetters: DeadLetters },
  given: readonly string[],
  because: ActionOptions = {},
): Promise<RetriedNow> {
  const ids = [...new Set(given.map(checkId))];
  const sum = { redriven: 0, rescheduled: 0, refused: 0, missing: 0 };
  const [dead, waiting]: [string[], string[]] = [[], []];
  for (let from = 0; from < ids.length; from += PAGE)
    for (const job of await store.get(ids.slice(from, from + PAGE))) {
      if (job === null) sum.missing += 1;
      else if (job.state === "dead") dead.push(job.id);
      else if (job.state === "queued") waiting.push(job.id);
      else sum.refused += 1;
    }
  if (dead.length > 0) {
    const { redriven, refused, missing } = await deadLetters.retry(dead, because);
    sum.redriven += redriven;
    sum.refused += refused;
    sum.missing += missing;
  }
  if (waiting.length > 0) {
    const { changed, refused, missing } = await jobs.reschedule(waiting, { delay: 0, ...because });
    sum.rescheduled += changed;
    sum.refused += refused;
    sum.missing += missing;
  }
  return sum;
}
