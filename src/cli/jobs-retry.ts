// `redrive jobs retry`: sends dead jobs back to work and makes waiting jobs due now.
import { EXIT } from "./exit.ts";
import type { Session } from "./session.ts";
import { hintAtWholeIds } from "./whole-ids.ts";
import { counted } from "./format.ts";

const PAGE = 200;

/** Retries these jobs; refuses those that run, have completed or were cancelled. */
export async function retryJobs(session: Session, given: readonly string[]): Promise<number> {
  const ids = [...new Set(given)];
  const redrive = await session.openExisting();
  const sum = { redriven: 0, rescheduled: 0, refused: 0, missing: 0 };
  for (let from = 0; from < ids.length; from += PAGE) {
    const jobs = await redrive.store.get(ids.slice(from, from + PAGE));
    const found = jobs.filter((job) => job !== null);
    const dead = found.filter(({ state }) => state === "dead").map(({ id }) => id);
    const waiting = found.filter(({ state }) => state === "queued").map(({ id }) => id);
    const redriven = dead.length > 0 ? await redrive.deadLetters.retry(dead) : { redriven: 0, refused: 0, missing: 0 };
    const moved =
      waiting.length > 0
        ? await redrive.jobs.reschedule(waiting, { delay: 0 })
        : { changed: 0, refused: 0, missing: 0 };
    sum.redriven += redriven.redriven;
    sum.rescheduled += moved.changed;
    sum.refused += redriven.refused + moved.refused + found.length - dead.length - waiting.length;
    sum.missing += redriven.missing + moved.missing + jobs.length - found.length;
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
