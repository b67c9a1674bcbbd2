// `redrive jobs retry`: sends dead jobs back to work and makes waiting jobs due now.
import { EXIT } from "./exit.ts";
import type { Session } from "./session.ts";
import { hintAtWholeIds } from "./whole-ids.ts";
import { counted } from "./format.ts";

const PAGE = 200;

/** Retries these jobs; refuses those that run, have completed or were cancelled. */
export async function retryJobs(
  session: Session,
  given: readonly string[],
  because: { readonly why?: string },
): Promise<number> {
  const ids = [...new Set(given)];
  const redrive = await session.openExisting();
  const sum = { redriven: 0, rescheduled: 0, refused: 0, missing: 0 };
  const [dead, waiting]: [string[], string[]] = [[], []];
  for (let from = 0; from < ids.length; from += PAGE)
    for (const job of await redrive.store.get(ids.slice(from, from + PAGE))) {
      if (job === null) sum.missing += 1;
      else if (job.state === "dead") dead.push(job.id);
      else if (job.state === "queued") waiting.push(job.id);
      else sum.refused += 1;
    }
  if (dead.length > 0) {
    const { redriven, refused, missing } = await redrive.deadLetters.retry(dead, because);
    sum.redriven += redriven;
    sum.refused += refused;
    sum.missing += missing;
  }
  if (waiting.length > 0) {
    const { changed, refused, missing } = await redrive.jobs.reschedule(waiting, { delay: 0, ...because });
    sum.rescheduled += changed;
    sum.refused += refused;
    sum.missing += missing;
  }
  session.answer(sum, () => {
    const said = [
      ...(sum.redriven > 0 ? [`${counted(sum.redriven, "dead job")} sent back to work`] : []),
      ...(sum.rescheduled > 0 ? [`${counted(sum.rescheduled, "waiting job")} due now`] : []),
      ...(sum.refused > 0 ? [`${sum.refused} running or ended`] : []),
      ...(sum.missing > 0 ? [`${sum.missing} not found`] : []),
    ];
    return `${said.join(", ")}\n`;
  });
  if (sum.missing > 0) hintAtWholeIds(session, ids);
  return sum.refused + sum.missing > 0 ? EXIT.failed : EXIT.ok;
}
