// Everything known about one job, as sections for people: what it is, how it failed, every bad run, what it carries.
import { formatDuration } from "../core/duration.ts";
import type { AttemptRecord, DeadLetter, Failure, Job } from "../core/job.ts";
import { attemptForm, jobForm, letterForm, shownState } from "../queue/json-form.ts";
import { stateStyle } from "./paint.ts";
import { masked, readableJson, safeLine, safeText } from "./safe-text.ts";
import type { Session } from "./session.ts";
import { type Column, tableText } from "./table.ts";
import { fullTime, shortTime, triesOf } from "./words.ts";

/** `jobs show`. */
export async function showJob(session: Session, id: string): Promise<void> {
  const redrive = await session.openExisting();
  const [{ job, history }, { now }] = await Promise.all([redrive.jobs.show(id), redrive.store.control()]);
  session.show({ ...jobForm(job, now), history: history.map(attemptForm) }, () =>
    sections(session, job, { now, failure: job.failure, history, letter: null }),
  );
}

/** `dlq show`. */
export async function showLetter(session: Session, id: string): Promise<void> {
  const redrive = await session.openExisting();
  const [{ history, ...letter }, { now }] = await Promise.all([redrive.deadLetters.get(id), redrive.store.control()]);
  session.show(letterForm(letter, history, now), () =>
    sections(session, letter.job, { now, failure: letter.failure, history, letter }),
  );
}

interface Shown {
  readonly now: number;
  readonly failure: Failure | null;
  readonly history: readonly AttemptRecord[];
  readonly letter: DeadLetter | null;
}

function sections(session: Session, job: Job, shown: Shown): string {
  const { paint } = session;
  const state = shownState(job, shown.now);
  const style = stateStyle(state);
  const title = `${paint("bold", safeLine(job.type))} ${job.id} ${style ? paint(style, state) : state}\n`;
  const section = (name: string, body: string): string => `\n${paint("bold", name)}\n${body}`;
  const parts = [title, facts(session, job, shown)];
  if (shown.failure) parts.push(section("Error", errorText(session, shown.failure)));
  if (shown.history.length > 0) parts.push(section("Attempts", attemptsTable(session, shown.history)));
  parts.push(section("Payload", indented(readableJson(job.payload))));
  if (job.progress !== null) parts.push(section("Progress", indented(readableJson(job.progress))));
  if (job.result !== null) parts.push(section("Result", indented(readableJson(job.result))));
  return parts.join("");
}

function facts({ paint }: Session, job: Job, { now, letter }: Shown): string {
  const tries = letter ?? job;
  const rows: [string, string | null][] = [
    ["died", letter && fullTime(letter.diedAt, now)],
    ["reason", letter && letter.reason],
    ["redriven", letter && letter.redrivenAt !== null ? fullTime(letter.redrivenAt, now) : null],
    ["attempts", `${letter ? letter.attempts : triesOf(job)} of ${job.maxAttempts}`],
    ["crashes", tries.crashes > 0 ? `${tries.crashes} of ${job.maxCrashes}` : null],
    ["released", job.releases > 0 ? `${job.releases} times` : null],
    ["generation", job.generation > 1 ? String(letter?.generation ?? job.generation) : null],
    ["due", job.state === "queued" ? fullTime(job.runAt, now) : null],
    ["created", fullTime(job.createdAt, now)],
    ["started", job.startedAt === null ? null : fullTime(job.startedAt, now)],
    ["finished", job.finishedAt === null ? null : fullTime(job.finishedAt, now)],
    ["deadline", job.deadlineMs === null ? null : `${formatDuration(job.deadlineMs)} over all attempts`],
    ["queue", job.queue],
    ["priority", job.priority === 0 ? null : String(job.priority)],
    ["service", job.service],
    ["tenant", job.tenant],
    ["key", job.key],
    ["worker", job.worker],
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
    indented(paint("dim", `${facts.join(", ")}; cause ${failure.fingerprint}`)) +
    (stack === "" ? "" : indented(paint("dim", masked(safeText(stack)))))
  );
}

/** A stack repeats name and message on its first lines. */
function withoutHead(stack: string, head: string): string {
  return (stack.startsWith(head) ? stack.slice(head.length) : stack).replace(/^\n+|\s+$/g, "");
}

const COLUMNS: readonly Column[] = [
  { title: "#", align: "right" },
  { title: "ENDED" },
  { title: "TOOK", align: "right" },
  { title: "WORKER" },
  { title: "CLASS" },
  { title: "THEN" },
  { title: "ERROR", least: 16, optional: true },
];

function attemptsTable({ paint, width }: Session, history: readonly AttemptRecord[]): string {
  const rows = history.map(({ attempt, startedAt, endedAt, worker, delayMs, failure }) => [
    attempt,
    shortTime(endedAt),
    startedAt === null ? "-" : formatDuration(endedAt - startedAt),
    worker ?? "-",
    failure.class,
    delayMs === null ? "-" : `again in ${formatDuration(delayMs)}`,
    masked(`${failure.name}: ${failure.message}`),
  ]);
  return indented(tableText(COLUMNS, rows, { width: width - 2, paint }));
}

function indented(text: string): string {
  return `${text
    .trimEnd()
    .split("\n")
    .map((line) => `  ${line}`)
    .join("\n")}\n`;
}
