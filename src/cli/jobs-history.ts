// `redrive jobs history`: every run of one job with its retries.
import { formatDuration } from "../core/duration.ts";
import type { RunRecord } from "../core/run-record.ts";
import { runRecordForm } from "../operate/view-forms.ts";
import { stateStyle } from "./paint.ts";
import { masked } from "../core/safe-text.ts";
import type { Session } from "./session.ts";
import { type Column, tableText } from "./table.ts";
import { byIdOrKey } from "./id-or-key.ts";
import { relativeTime, shortTime } from "./format.ts";

/** Shows the runs of a job, oldest first. */
export async function showHistory(session: Session, id: string): Promise<void> {
  const redrive = await session.openExisting();
  const runs = await byIdOrKey(session, redrive, id, (found) => redrive.runs.history(found));
  const { now } = await redrive.store.control();
  session.show({ items: runs.map(runRecordForm) }, () => historyTable(runs, now, session));
}

const COLUMNS: readonly Column[] = [
  { title: "RUN" },
  { title: "STATUS" },
  { title: "STARTED" },
  { title: "TOOK", align: "right" },
  { title: "NEXT RETRY" },
  { title: "MESSAGE", least: 16, optional: true },
];

function historyTable(runs: readonly RunRecord[], now: number, { width, paint }: Session): string {
  const rows = runs.map((run) => {
    const { status, startedAt, completedAt, nextRetryAt, generation } = run;
    const name = run.label ?? (generation === 1 ? "original" : `redriven ${generation - 1}`);
    const took = startedAt === null ? "-" : formatDuration(Math.max(0, (completedAt ?? now) - startedAt));
    const next = nextRetryAt === null ? "-" : `${shortTime(nextRetryAt)} (${relativeTime(nextRetryAt, now)})`;
    const style = stateStyle(status === "pending_retry" ? "retrying" : status === "failed" ? "dead" : status);
    const started = startedAt === null ? "-" : shortTime(startedAt);
    return [name, { text: status, style }, started, took, next, masked(run.errorMessage ?? "")];
  });
  return tableText(COLUMNS, rows, { width, paint });
}
