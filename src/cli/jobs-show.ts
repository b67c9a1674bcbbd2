// Shows everything known about one job in sections: its fields, its error, every failed run, its payload.
import { formatDuration } from "../core/duration.ts";
import { type Holding, shownState } from "../core/holding.ts";
import type { AttemptRecord, DeadLetter, Failure, Job } from "../core/job.ts";
import { invalid } from "../core/options.ts";
import { isNextRound } from "../core/round.ts";
import { readHolding } from "../services/holding.ts";
import { attemptForm, jobForm, letterForm } from "../operate/job-forms.ts";
import { stateStyle } from "./paint.ts";
import { masked, readableJson, safeLine, safeText } from "../core/safe-text.ts";
import type { Session } from "./session.ts";
import { type TableCell, type Column, tableText } from "./table.ts";
import { byIdOrKey, letterOfKey } from "./id-or-key.ts";
import { withWholeId } from "./whole-ids.ts";
import { errorLine, fullTime, ofLimit, shortTime, triesOf } from "./format.ts";

/** `jobs show`. */
export async function showJob(session: Session, id: string): Promise<void> {
  const redrive = await session.openExisting();
  const { job, history } = await byIdOrKey(session, redrive, id, (found) => redrive.jobs.show(found));
  const holding = await readHolding(redrive.store);
  session.show({ ...jobForm(job, holding), history: history.map(attemptForm) }, () =>
    sections(session, job, { holding, failure: job.failure, history, letter: null }),
  );
}

/** `dlq show`. */
export async function showLetter(session: Session, given: string | undefined, key: string | undefined): Promise<void> {
  if ((given === undefined) === (key === undefined))
    throw invalid("dlq show", "a job id or --key", given === undefined ? "neither" : "both", "give one of the two");
  const redrive = await session.openExisting();
  const id = given ?? (await letterOfKey(session, redrive, key ?? ""));
  const { history, ...letter } = await withWholeId(session, id, () => redrive.deadLetters.get(id));
  const holding = await readHolding(redrive.store);
  session.show(letterForm(letter, history, holding), () =>
    sections(session, letter.job, { holding, failure: letter.failure, history, letter }),
  );
}

interface Shown {
  readonly holding: Holding;
  readonly failure: Failure | null;
  readonly history: readonly AttemptRecord[];
  readonly letter: DeadLetter | null;
}

function sections(session: Session, job: Job, shown: Shown): string {
  const { paint } = session;
  const state = shownState(job, shown.holding);
  const style = stateStyle(state);
  const title = `${paint("bold", safeLine(job.type))} ${job.id} ${style ? paint(style, state) : state}\n`;
  const section = (name: string, body: string): string => `\n${paint("bold", name)}\n${body}`;
  const parts = [title, facts(session, job, shown)];
  const isGood = job.state === "completed" && shown.letter === null;
  const attempts = [...shown.history.map((each) => badRun(job.type, each)), ...(isGood ? [goodRun(job)] : [])];
  const error = shown.failure && errorText(session, shown.failure);
  if (error && !isGood) parts.push(section("Error", error));
  if (shown.history.length > 0) parts.push(section("Attempts", attemptsTable(session, attempts)));
  if (error && isGood) parts.push(section("Last error, before it succeeded", error));
  parts.push(section("Payload", indented(readableJson(job.payload))));
  if (job.progress !== null) parts.push(section("Progress", indented(readableJson(job.progress))));
  if (job.result !== null) parts.push(section("Result", indented(readableJson(job.result))));
  return parts.join("");
}

function facts({ paint }: Session, job: Job, { holding, letter }: Shown): string {
  const { now } = holding;
  const tries = letter ?? job;
  const ended = letter === null && job.state === "completed" ? fullTime(job.finishedAt, now) : null;
  const rows: [string, string | null][] = [
    ["completed", ended],
    ["died", letter && fullTime(letter.diedAt, now)],
    ["reason", letter && letter.reason],
    ["redriven", letter && letter.redrivenAt !== null ? fullTime(letter.redrivenAt, now) : null],
    ["attempts", ofLimit(job, letter ? letter.attempts : triesOf(job), " of ", job.maxAttempts)],
    ["crashes", tries.crashes > 0 ? ofLimit(job, tries.crashes, " of ", job.maxCrashes) : null],
    ["released", job.releases > 0 ? `${job.releases} times` : null],
    ["generation", job.generation > 1 ? String(letter?.generation ?? job.generation) : null],
    ["due", job.state === "queued" ? dueText(job, now) : null],
    ["created", fullTime(job.createdAt, now)],
    ["started", job.startedAt === null ? null : fullTime(job.startedAt, now)],
    ["finished", ended === null && job.finishedAt !== null ? fullTime(job.finishedAt, now) : null],
    ["deadline", job.deadlineMs === null ? null : `${formatDuration(job.deadlineMs)} over all attempts`],
    ["queue", job.queue],
    ["priority", job.priority === 0 ? null : String(job.priority)],
    ["service", job.service],
    ["tenant", job.tenant],
    ["group", job.group],
    ["key", job.key],
    ["worker", job.worker],
    ["release", letter && letter.release],
    ["cancel", job.cancelRequested ? "asked for" : null],
  ];
  const said = rows.filter(([, value]) => value !== null);
  return said.map(([name, value]) => `  ${paint("dim", name.padEnd(10))}  ${safeLine(value ?? "")}\n`).join("");
}

function errorText({ paint }: Session, failure: Failure): string {
  const head = `${failure.name}: ${failure.message}`;
  const facts = [failure.class, failure.severity, ...(failure.code === undefined ? [] : [failure.code])];
  const stack = failure.stack === null ? "" : withoutHead(failure.stack, head);
  return (
    indented(paint("red", masked(safeText(head)))) +
    indented(paint("dim", `${safeLine(facts.join(", "))}; cause ${failure.fingerprint}`)) +
    (stack === "" ? "" : indented(paint("dim", masked(safeText(stack)))))
  );
}

function dueText({ type, runAt }: Job, now: number): string {
  return isNextRound(type, runAt - now) ? "in the next round of its batch run" : fullTime(runAt, now);
}

/** Removes the first lines of a stack, which repeat name and message. */
function withoutHead(stack: string, head: string): string {
  return (stack.startsWith(head) ? stack.slice(head.length) : stack).replace(/^\n+/, "").trimEnd();
}

const COLUMNS: readonly Column[] = [
  { title: "#", align: "right" },
  { title: "ENDED" },
  { title: "TOOK", align: "right" },
  { title: "WORKER", least: 8, optional: true },
  { title: "RELEASE", least: 7, optional: true, onlyFilled: true },
  { title: "CLASS", least: 9 },
  { title: "THEN" },
  { title: "ERROR", least: 16, optional: true },
];

function badRun(type: string, run: AttemptRecord): readonly TableCell[] {
  const { attempt, startedAt, endedAt, worker, release, delayMs, failure } = run;
  const again = (ms: number): string =>
    isNextRound(type, ms) ? "again in the next round" : `again in ${formatDuration(ms)}`;
  const then = delayMs === null ? "-" : again(delayMs);
  const took = tookText(startedAt, endedAt);
  return [attempt, shortTime(endedAt), took, worker ?? "-", release ?? "", failure.class, then, errorLine(failure)];
}

/** The successful run has no attempt record; its times come from the job. */
function goodRun(job: Job): readonly TableCell[] {
  const { startedAt, finishedAt, worker } = job;
  const took = finishedAt === null ? "-" : tookText(startedAt, finishedAt);
  const then = { text: "completed", style: stateStyle("completed") };
  return [triesOf(job), finishedAt === null ? "-" : shortTime(finishedAt), took, worker ?? "-", "", "-", then, ""];
}

function tookText(startedAt: number | null, endedAt: number): string {
  return startedAt === null ? "-" : formatDuration(endedAt - startedAt);
}

function attemptsTable({ paint, width }: Session, rows: readonly (readonly TableCell[])[]): string {
  return indented(tableText(COLUMNS, rows, { width, paint, indent: 2 }));
}

function indented(text: string): string {
  return `${text
    .trimEnd()
    .split("\n")
    .map((line) => `  ${line}`)
    .join("\n")}\n`;
}
