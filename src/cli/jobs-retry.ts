// `redrive jobs retry`: sends dead jobs back to work and makes waiting jobs due now.
import { retryNow } from "../operate/retry-now.ts";
import { EXIT } from "./exit.ts";
import type { Session } from "./session.ts";
import { hintAtWholeIds } from "./whole-ids.ts";
import { counted } from "./format.ts";

/** Retries these jobs; refuses those that run, have completed or were cancelled. */
export async function retryJobs(
  session: Session,
  given: readonly string[],
  because: { readonly why?: string },
): Promise<number> {
  const ids = [...new Set(given)];
  const redrive = await session.openExisting();
  const sum = await retryNow(redrive.store, redrive, ids, because);
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
