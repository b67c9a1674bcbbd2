// `redrive dlq edit`: gives a dead job another payload, shows the payloads that a job has had, and takes changes back.
import type { Command } from "commander";
import { isJson } from "../core/redact.ts";
import { RedriveError } from "../core/errors.ts";
import type { Job } from "../core/job.ts";
import { JOB_BOUNDS, tooLarge } from "../core/new-job.ts";
import { invalid } from "../core/options.ts";
import { patchText } from "../core/recovery/merge-patch.ts";
import { compactJson, indentJson } from "../core/recovery/spaced-json.ts";
import { safeLine } from "../core/safe-text.ts";
import { isoTime, rawJson } from "../operate/json-form.ts";
import { type EditAnswer, undoFor } from "../operate/edit.ts";
import { checkedPayload, type Known } from "../operate/repair-letters.ts";
import type { Redrive } from "../redrive-api.ts";
import { openEditedFile } from "../system/editor.ts";
import { put } from "../system/output.ts";
import { type Cli, examples, type Flags, textual, whyFlag, whyOf } from "./command.ts";
import { confirmed } from "./confirm.ts";
import { counted, shortTime } from "./format.ts";
import type { Io } from "./io.ts";
import { definitions, jobFiles, JOBS_FLAG } from "./job-files.ts";
import type { Paint } from "./paint.ts";
import { payloadDiff, shownPayload } from "./payload-diff.ts";
import type { Session } from "./session.ts";
import { withWholeId } from "./whole-ids.ts";

const NOTES = `
Without --payload, --patch, --undo or --versions the payload is opened in your
editor ($VISUAL, else $EDITOR, else vi). A new payload is checked against the
schema of its type (--jobs, or \`jobs\` of the config file). Every payload that
the job had is kept as long as the job.`;

/** The ways to say what the command does. */
const WAYS = ["payload", "patch", "undo", "versions"] as const;

/** Registers `dlq edit`. */
export function registerEdit(cli: Cli, dlq: Command): void {
  const command = dlq
    .command("edit")
    .description("give a dead job another payload; --undo takes it back")
    .argument("<id>", "job id")
    .option("--payload <json>", "the new payload, or - to read it from stdin")
    .option("--patch <json>", "a JSON merge patch (RFC 7396): null removes a field; all other bytes stay")
    .option("--undo", "the payload of its producer again; a job that was sent back to work is recalled with it")
    .option("--versions", "show the payloads that the job has had; change nothing")
    .option(...JOBS_FLAG)
    .option("--reveal", "do not mask fields that look like secrets")
    .option("--yes", "do not ask")
    .addHelpText("after", NOTES);
  whyFlag(command);
  examples(command, cli, [
    "dlq edit 0199c8a2-7d1e-7a4b-9c3d-2f1e5a6b7c8d",
    `dlq edit 0199c8a2-7d1e-7a4b-9c3d-2f1e5a6b7c8d --patch '{"currency":"EUR"}' --why "as the customer said"`,
    "dlq edit 0199c8a2-7d1e-7a4b-9c3d-2f1e5a6b7c8d --undo",
  ]);
  cli.act(command, async (session, [id = ""], flags) => {
    const ways = WAYS.filter((way) => flags[way] !== undefined);
    if (ways.length > 1) throw invalid("dlq edit", `one of ${flagged(WAYS)}`, flagged(ways), "give one");
    whyOf(flags);
    if (ways.length === 0 && !(session.io.stdin.isTTY && session.io.stderr.isTTY))
      throw invalid("dlq edit", `one of ${flagged(WAYS)}`, "no terminal for an editor", "give one");
    const isChecked = !flags.undo && !flags.versions && jobFiles(session, flags).length > 0;
    const jobs = isChecked ? await definitions(session, flags) : [];
    const redrive = await session.openExisting({ jobs });
    await withWholeId(session, id, async () => {
      const [job] = await redrive.store.get([id]);
      if (!job) throw noJob(id);
      if (flags.versions) await showVersions(session, redrive, job, flags);
      else if (flags.undo) await undo(session, redrive, job, flags);
      else await edit(session, redrive, job, { jobs, maxPayloadBytes: JOB_BOUNDS.payloadBytes }, flags);
    });
  });
}

function flagged(ways: readonly string[]): string {
  return ways.map((way) => `--${way}`).join(", ");
}

function noJob(id: string): RedriveError {
  const message = `There is no job ${JSON.stringify(id.slice(0, 80))}. Check the id; finished jobs are removed after their retention.`;
  return new RedriveError("not_found", message, { details: { id } });
}

function isRevealed(session: Session, flags: Flags): boolean {
  return flags.reveal === true && !session.redact;
}

async function edit(session: Session, redrive: Redrive, job: Job, known: Known, flags: Flags): Promise<void> {
  const given = await newPayload(session, job, flags);
  try {
    if (given.text === job.payload || job.state !== "dead") {
      const answer = await redrive.deadLetters.edit(job.id, given.text, { seen: job });
      session.answer(answer, () => `${job.id} is unchanged: it has this payload already; nothing was written.\n`);
      return given.remove?.();
    }
    await checkedPayload(job, given.text, known);
    if (await mayWrite(session, job, given.text, flags)) {
      const answer = await redrive.deadLetters.edit(job.id, given.text, { seen: job, ...whyOf(flags) });
      sayDone(session, answer, "has its new payload");
    }
  } catch (error) {
    given.keep?.();
    throw error;
  }
  given.remove?.();
}

async function undo(session: Session, redrive: Redrive, job: Job, flags: Flags): Promise<void> {
  const decided = await undoFor(redrive.store, job);
  if ("payload" in decided && !(await mayWrite(session, job, decided.payload, flags))) return;
  sayDone(session, await redrive.deadLetters.undo(job.id, whyOf(flags)), "has the payload of its producer again");
}

/** Shows what would change, and asks on a terminal. A change can be undone, so a script need not say yes. */
async function mayWrite(session: Session, job: Job, text: string, flags: Flags): Promise<boolean> {
  const { io, json, quiet, paint } = session;
  const reveal = isRevealed(session, flags);
  if (!json && !quiet) {
    const diff = payloadDiff(job.payload, text, reveal ? plain : paint, reveal);
    write(session, diff || "  (only masked values or white space differ; --reveal shows them)\n", reveal);
  }
  if (flags.yes === true || (await confirmed(io, `Write this payload of ${job.id}?`)) !== false) return true;
  const nothing: EditAnswer = { id: job.id, version: 0, changed: false, recalled: false };
  session.answer(nothing, () => "Nothing was written.\n");
  return false;
}

const plain: Paint = (_, text) => text;

/** Writes a text for people; a revealed one only without what could control a terminal. */
function write({ io }: Session, text: string, reveal: boolean): void {
  put(io.stdout, reveal ? "json" : "text", text);
}

function sayDone(session: Session, answer: EditAnswer, done: string): void {
  const { id, version, recalled } = answer;
  const more = recalled ? "; it was recalled and is dead again" : "";
  session.answer(answer, () => `${id} ${done} (version ${version})${more}\n`);
  if (!session.json) session.say(`Send it back to work: ${session.suggest(`dlq retry ${id}`)}`);
}

interface Given {
  readonly text: string;
  readonly keep?: () => void;
  readonly remove?: () => void;
}

async function newPayload(session: Session, job: Job, flags: Flags): Promise<Given> {
  const [payload, patch] = [textual(flags.payload), textual(flags.patch)];
  if (patch !== undefined) return { text: patchText(job.payload, patch) };
  if (payload === undefined) return edited(session, job);
  return { text: (payload === "-" ? await allOf(session.io) : payload).trim() };
}

/** The payload as the person has left it in their editor; white space that only an editor adds is left out. */
async function edited(session: Session, job: Job): Promise<Given> {
  if (job.state !== "dead") return { text: job.payload };
  const shown = indentJson(job.payload);
  const isCompact = compactJson(shown) === job.payload;
  const file = openEditedFile(`${job.id}.json`, isCompact ? `${shown}\n` : job.payload);
  const { env } = session.io;
  const command = env.VISUAL || env.EDITOR || "vi";
  const answer = await file.edit(command);
  if ("failed" in answer) {
    file.remove();
    const message = `The editor ${safeLine(command)} did not write a payload: ${answer.failed}. Set $EDITOR, or use --payload; nothing was written.`;
    throw new RedriveError("invalid_argument", message);
  }
  const text = isCompact && isJson(answer.text) ? compactJson(answer.text) : withTail(answer.text, job.payload);
  return { text, remove: file.remove, keep: () => session.say(`Your text is kept in ${file.path}`) };
}

/** A text with the white space at its end that the payload had: editors end every file with a new line. */
function withTail(text: string, payload: string): string {
  const tailOf = (of: string): number => {
    let at = of.length;
    while (at > 0 && " \t\r\n".includes(of[at - 1] as string)) at -= 1;
    return at;
  };
  return text.slice(0, tailOf(text)) + payload.slice(tailOf(payload));
}

/** All of stdin, as long as it may be a payload. */
async function allOf({ stdin }: Io): Promise<string> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of stdin) {
    const bytes = Buffer.from(part as Uint8Array);
    size += bytes.length;
    if (size > JOB_BOUNDS.payloadBytesMost) throw tooLarge("The payload on stdin", JOB_BOUNDS.payloadBytesMost, size);
    parts.push(bytes);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(parts));
  } catch {
    throw invalid("payload", "JSON as UTF-8 text on stdin", "other bytes", "convert it; nothing was written");
  }
}

async function showVersions(session: Session, redrive: Redrive, job: Job, flags: Flags): Promise<void> {
  const versions = await redrive.deadLetters.payloads(job.id);
  const items = versions.map(({ payload, at, ...rest }) => ({ ...rest, at: isoTime(at), payload: rawJson(payload) }));
  if (session.json || versions.length === 0) {
    session.show({ id: job.id, items }, () => `${job.id} has its first payload; it was never changed.\n`);
    return;
  }
  const reveal = isRevealed(session, flags);
  const paint = reveal ? plain : session.paint;
  const head = `${counted(versions.length, "payload")} of ${job.id}\n`;
  write(session, head + versions.map((version) => versionText(paint, version, reveal)).join(""), reveal);
}

function versionText(
  paint: Paint,
  { n, at, actor, redrive, why, payload }: Awaited<ReturnType<Redrive["deadLetters"]["payloads"]>>[number],
  reveal: boolean,
): string {
  const who = actor ?? (redrive === null ? "its producer" : `redrive ${redrive}`);
  const because = why === null ? "" : `: ${why}`;
  const body = shownPayload(payload, reveal).replaceAll("\n", "\n  ");
  return `\n${paint("bold", `version ${n}`)}  ${safeLine(`${shortTime(at)} by ${who}${because}`)}\n  ${body}\n`;
}
