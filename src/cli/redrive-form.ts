// A redrive run for people: its progress line and its last words.
import { formatDuration } from "../core/duration.ts";
import { RUN_STATES } from "../core/recovery/run.ts";
import { safeLine } from "../core/safe-text.ts";
import type { RedriveRunView } from "../operate/redrive-views.ts";
import { EXIT } from "./exit.ts";
import { counted, grouped } from "./format.ts";
import type { Session } from "./session.ts";

/** The exit code at the end of a run: 0 only if it completed. */
export function runExit({ state }: Pick<RedriveRunView, "state">): number {
  return state === "completed" ? EXIT.ok : EXIT.refused;
}

/** `step 1 of 3`, `the rest`. */
export function stepText({ step, steps }: Pick<RedriveRunView, "step" | "steps">): string {
  return step < steps.length ? `step ${step + 1} of ${steps.length + 1}` : "the rest";
}

/** One line about a run that is under way. */
export function progressText(run: RedriveRunView): string {
  const { counts } = run;
  const parts = [
    `${run.id} ${run.state === "running" ? stepText(run) : run.state}`,
    `${grouped(counts.sent)} of ${grouped(run.toSend)} sent`,
    `✓ ${grouped(counts.completed)}`,
    ...(counts.failed > 0 ? [`✗ ${grouped(counts.failed)}`] : []),
    ...(counts.pending > 0 ? [`${grouped(counts.pending)} to run`] : []),
    ...(run.waits === null ? [] : [`waits: ${safeLine(run.waits)}`]),
  ];
  return parts.join("  ");
}

const ENDS: Readonly<Record<(typeof RUN_STATES)[number], string>> = {
  running: "Running",
  paused: "Paused",
  stopped: "Stopped",
  completed: "Completed",
  cancelled: "Cancelled",
};

/** How a run ended, and what to do next. */
export function endText(run: RedriveRunView, session: Session): string {
  const { counts, state, toSend } = run;
  const style = state === "completed" ? "green" : state === "stopped" ? "red" : "yellow";
  const why = run.reason === null ? "" : `: ${safeLine(run.reason)}`;
  const took = run.endedAt === null ? "" : ` in ${formatDuration(Math.max(0, run.endedAt - run.startedAt))}`;
  const lines = [
    `${session.paint(style, ENDS[state])} after ${grouped(counts.sent)} of ${counted(toSend, "letter")}${took}${why}.`,
    `${booksText(run)}.`,
    ...nextLines(run, session),
  ];
  return `${lines.join("\n")}\n`;
}

/** What became of all letters, in one sentence. */
export function booksText({ counts, newDeaths }: RedriveRunView): string {
  const parts: readonly (readonly [number, string])[] = [
    [counts.completed, "completed"],
    [counts.failed, "failed"],
    [counts.pending, "not run yet"],
    [counts.recalled, "recalled"],
    [counts.cancelled, "cancelled"],
    [counts.gone, "deleted"],
    [counts.byOthers, "sent back or deleted by others"],
    [counts.left, "not sent"],
  ];
  const said = parts.filter(([count], at) => count > 0 || at === 0).map(([count, what]) => `${grouped(count)} ${what}`);
  const anew = newDeaths !== null && newDeaths > 0 ? `; ${counted(newDeaths, "new death")} since it began` : "";
  return `${said.join(", ")}${anew}`;
}

function nextLines({ id, state, counts, selection }: RedriveRunView, session: Session): string[] {
  if (state === "paused") return [`Go on: ${session.suggest(`redrives resume ${id}`)}`];
  if (state !== "stopped") return [];
  const cause = selection.fingerprint;
  const look = cause === undefined ? "dlq causes" : `dlq list --fingerprint ${cause}`;
  return [
    ...(counts.left > 0
      ? [`${counted(counts.left, "letter")} ${counts.left === 1 ? "stays" : "stay"} dead; nothing else was sent.`]
      : []),
    `Look: ${session.suggest(look)}`,
  ];
}
