// `redrive jobs explain`: why a job is not running; each reason with what happens next and when.
import type { Reason } from "../core/explain.ts";
import { explanationForm } from "../operate/view-forms.ts";
import { stateStyle } from "./paint.ts";
import { masked, safeLine } from "../core/safe-text.ts";
import type { Session } from "./session.ts";
import { byIdOrKey } from "./id-or-key.ts";
import { fullTime } from "./format.ts";

/** Explains one job. */
export async function explainToPeople(session: Session, name: string): Promise<void> {
  const redrive = await session.openExisting();
  const explanation = await byIdOrKey(session, redrive, name, (found) => redrive.jobs.explain(found));
  const { now } = await redrive.store.control();
  const { id, state, summary, reasons } = explanation;
  const form = explanationForm(explanation);
  session.show(form, () => {
    const style = stateStyle(state);
    const word = style ? session.paint(style, state) : state;
    if (reasons.length === 0) return `${id} ${word}\n  ${summary}\n`;
    return `${id} ${word}\n${reasons.map((reason) => reasonText(reason, now, session)).join("")}`;
  });
}

function reasonText({ kind, message, next, at }: Reason, now: number, { paint }: Session): string {
  // The end of a finished job is in the past; every other time is still to come.
  const when = at === null ? "" : kind === "finished" ? fullTime(at, now) : fullTime(Math.max(at, now), now);
  const said = masked(safeLine(message));
  if (kind === "finished") return `  ${paint("dim", kind.padEnd(12))}  ${said} ${when}\n`;
  const then = `${" ".repeat(16)}→ ${safeLine(next)}${when === "" ? "" : `, ${when}`}`;
  return `  ${paint("dim", kind.padEnd(12))}  ${said}\n${then}\n`;
}
