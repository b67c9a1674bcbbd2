// Handlers in any language: a batch goes to a command, and its answers or its exit are the outcome.
//
//   plain   the inputs as a JSON array on stdin and in JOB_INPUT, or in the file that JOB_INPUT_FILE names where they are too
//           long for a variable; exit code 0: all succeeded, any other: some failed
//   lines   a line of JSON per item in, a line per outcome out (stdout, or descriptor 3); then also a long-lived child
import { type Duration, parseDuration } from "../core/duration.ts";
import { done } from "../core/item-outcome.ts";
import { invalid, parseNumber, namesOf, parseOptions } from "../core/options.ts";
import { type BatchContext, type BatchItem, outside, type RunBatch } from "./batch-handler.ts";
import { writeInputFile } from "../system/input-file.ts";
import { realSystem } from "../system/real.ts";
import { startSubprocess, type Subprocess, type SubprocessEnd } from "../system/subprocess.ts";
import { hearLine } from "./subprocess-lines.ts";

/** How a command runs as a batch handler; durations as `"5s"` or milliseconds. */
export interface SubprocessOptions {
  /** The program and its arguments; no shell runs in between. */
  readonly command: readonly string[];
  /**
   * How it gets its items and how it answers: `plain` (a JSON array in, its exit code out) or `lines` (a line of JSON
   * for each); default `plain`.
   */
  readonly contract?: "plain" | "lines";
  /** How long a batch may take, from 1 ms to 7 d. */
  readonly timeout: Duration;
  /**
   * Variables of this process that the command may see besides PATH, LANG, TZ and HOME, or `["*"]` for all; default
   * none.
   */
  readonly env?: readonly string[];
  /**
   * True keeps the command running for the next batch, with `lines` only: the command then answers `{"end":true}` after
   * each batch; default false.
   */
  readonly keepAlive?: boolean;
  /** How much of its last output is kept, and how long a line may be; default 1 MiB, from 1 KiB to 16 MiB. */
  readonly outputBytes?: number;
  /** The folder it runs in; default that of this process. */
  readonly cwd?: string;
  /** How long it has between the request to stop and the kill; default 5 s, at most 1 min. */
  readonly killAfter?: Duration;
}

interface Settings {
  readonly command: readonly string[];
  readonly contract: "plain" | "lines";
  readonly timeoutMs: number;
  readonly env: readonly string[];
  readonly keepAlive: boolean;
  readonly outputBytes: number;
  readonly cwd: string | undefined;
  readonly killAfterMs: number;
  readonly onPrinted?: Printed;
}

/** Receives each printed line that is not an outcome. */
export type Printed = (line: string, pid: number) => void;

const FIELDS = namesOf<SubprocessOptions>()([
  "command",
  "contract",
  "timeout",
  "env",
  "keepAlive",
  "outputBytes",
  "cwd",
  "killAfter",
]);
/** The longest text that Linux passes in one variable, with its name. */
const VARIABLE_BYTES = 131_072;
/** A kept command that was idle for this long is ended. */
const IDLE_MS = 10_000;

/** A batch handler that runs a command, in any language. */
export function subprocess(options: SubprocessOptions): RunBatch {
  return commandHandler(options);
}

/** The same, for a caller that shows the output of the command. */
export function commandHandler(options: SubprocessOptions, onPrinted?: Printed): RunBatch {
  const settings: Settings = { ...resolveSubprocess(options), ...(onPrinted && { onPrinted }) };
  if (settings.contract === "plain") return outside((items, context) => runPlain(settings, items, context));
  const idle: Kept[] = [];
  return outside((items, context) => runLines(settings, idle, items, context));
}

/** Checks and completes the options. */
function resolveSubprocess(options: SubprocessOptions): Settings {
  const given = parseOptions(options, FIELDS, "subprocess");
  const { command, contract = "plain", env = [], keepAlive = false, cwd } = given;
  if (!isTexts(command) || command.length === 0 || command[0] === "")
    throw invalid("subprocess.command", "a list of texts: the program, then its arguments", command, "pass one");
  if (/\.(bat|cmd)$/i.test(command[0] ?? ""))
    throw invalid(
      "subprocess.command",
      "a program",
      command[0],
      "batch files need a shell; run their program directly",
    );
  if (contract !== "plain" && contract !== "lines")
    throw invalid("subprocess.contract", '"plain" or "lines"', contract, "use one of these");
  if (!isTexts(env)) throw invalid("subprocess.env", "a list of names of variables", env, "pass one");
  for (const name of env) checkVariable("subprocess.env", name);
  if (typeof keepAlive !== "boolean" || (keepAlive && contract === "plain"))
    throw invalid("subprocess.keepAlive", "true with the contract lines, or false", keepAlive, "change one of the two");
  if (cwd !== undefined && typeof cwd !== "string") throw invalid("subprocess.cwd", "a folder", cwd, "pass its path");
  const bytes = { min: 1_024, max: 16 * 1_048_576, integer: true };
  return {
    command,
    contract,
    timeoutMs: parseDuration(given.timeout, "subprocess.timeout", { minMs: 1, maxMs: 7 * 86_400_000 }),
    env,
    keepAlive,
    outputBytes: parseNumber(given.outputBytes ?? 1_048_576, "subprocess.outputBytes", bytes),
    cwd,
    killAfterMs: parseDuration(given.killAfter ?? "5s", "subprocess.killAfter", { maxMs: 60_000 }),
  };
}

/** Refuses a text that cannot be the name of a variable: the command would silently not see it. */
export function checkVariable(field: string, name: string): void {
  if (!/^[^\s=,]+$/.test(name))
    throw invalid(field, "names of variables", name, "pass one name per entry, without its value");
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string" && !each.includes("\0"));
}

async function runPlain(settings: Settings, items: readonly BatchItem[], { signal }: BatchContext): Promise<Outcomes> {
  const text = `[${items.map(textOfInput).join(",")}]`;
  const fits = Buffer.byteLength(text) + "JOB_INPUT=".length < VARIABLE_BYTES;
  const file = fits ? null : await writeInputFile(text);
  const child = startSubprocess({ ...settings, added: file ? { JOB_INPUT_FILE: file.path } : { JOB_INPUT: text } });
  const limit = within(settings.timeoutMs, signal, child);
  child.write(text);
  child.close();
  const end = await child.ended;
  limit.disarm();
  await file?.remove();
  if (limit.isOver || end.code !== 0) throw failureOf(settings, end, limit.isOver ? "late" : "ended");
  return items.map(() => done());
}

/** An input on one line, with the enqueued text where it is known, so that long numbers keep all their digits. */
function textOfInput({ input, text }: BatchItem): string {
  return text?.replace(/[\r\n]+/g, " ") ?? JSON.stringify(input) ?? "null";
}

type Outcomes = Awaited<ReturnType<RunBatch>>;

/** A kept command, and the batch that receives its lines now. */
interface Kept {
  readonly child: Subprocess;
  hear: (line: string | null) => void;
}

async function runLines(
  settings: Settings,
  idle: Kept[],
  items: readonly BatchItem[],
  context: BatchContext,
  before: Kept | null = takeKept(idle),
): Promise<Outcomes> {
  const kept = before ?? startKept(settings);
  const { child } = kept;
  child.wake();
  const limit = within(settings.timeoutMs, context.signal, child);
  const open = new Set(items.map(({ id }) => id));
  let isBroken = false;
  let hasSpoken = false;
  const answered = new Promise<void>((resolve) => {
    kept.hear = (line) => {
      const heard = line === null ? "broken" : hearLine(line, open, context);
      if (heard === "outcome") hasSpoken = true;
      if (heard === "end" && settings.keepAlive) resolve();
      if (heard === "other" && line !== null) settings.onPrinted?.(line, child.pid);
      if (heard !== "broken") return;
      isBroken = true;
      child.stop();
    };
  });
  for (const item of items) {
    const { id, attempt } = item;
    child.write(`{"id":${JSON.stringify(id)},"input":${textOfInput(item)},"attempt":${attempt}}\n`);
  }
  child.write("\n");
  if (!settings.keepAlive) child.close();
  const end = await Promise.race([child.ended, answered]);
  limit.disarm();
  if (!end && !child.isEnding) keep(kept, idle);
  if (open.size === 0) return undefined;
  // It was about to end when it got the batch, so a new command runs the batch.
  const isOver = limit.isOver || context.signal.aborted || isBroken || hasSpoken;
  if (before && end && inGoodOrder(end) && !isOver) return runLines(settings, idle, items, context, null);
  if (isBroken) throw failureOf(settings, end ?? child.said(), "broken");
  if (end && (limit.isOver || end.code !== 0)) throw failureOf(settings, end, limit.isOver ? "late" : "ended");
  throw failureOf(settings, end ?? child.said(), "silent");
}

function startKept(settings: Settings): Kept {
  const kept: { current: Kept | null } = { current: null };
  const child = startSubprocess({
    ...settings,
    added: { REDRIVE_OUTCOMES_FD: "3" },
    onLine: (line) => kept.current?.hear(line),
  });
  kept.current = { child, hear: () => undefined };
  return kept.current;
}

/** A kept command that is not about to end. */
function takeKept(idle: Kept[]): Kept | null {
  for (let kept = idle.pop(); kept; kept = idle.pop()) if (!kept.child.isEnding) return kept;
  return null;
}

/** True for a command that exited by itself, or because it was asked to. */
function inGoodOrder({ code, signal }: SubprocessEnd): boolean {
  return code === 0 || signal === "SIGTERM";
}

/** Keeps a command for the next batch. */
function keep(kept: Kept, idle: Kept[]): void {
  kept.hear = () => undefined;
  void kept.child.ended.then(() => idle.splice(0, idle.length, ...idle.filter((other) => other !== kept)));
  idle.push(kept);
  kept.child.rest(IDLE_MS);
}

/** Stops the command when its time is over, or when the batch must end. */
function within(ms: number, signal: AbortSignal, child: Subprocess): { readonly isOver: boolean; disarm(): void } {
  const limit = { isOver: false, disarm: () => undefined as void };
  const cancel = realSystem.after(ms, () => {
    limit.isOver = true;
    child.stop();
  });
  const stop = (): void => child.stop();
  signal.addEventListener("abort", stop);
  if (signal.aborted) stop();
  limit.disarm = () => {
    cancel();
    signal.removeEventListener("abort", stop);
  };
  return limit;
}

const SHOWN_OUTPUT = 6_000;

/** The failure that the end of a batch means: exit code, signal, and the last output of the command. */
function failureOf(settings: Settings, end: SubprocessEnd, why: "ended" | "late" | "broken" | "silent"): Error {
  const { code, signal, output, refused } = end;
  const name = nameOf(settings);
  const said = output.trim();
  const last = (end.complaint.trim() || said).split("\n").at(-1)?.trim().slice(0, 500) ?? "";
  const words = last === "" ? "" : ` Its last output: ${last}`;
  const stack = said === "" ? undefined : `Last output of ${name}:\n${said.slice(-SHOWN_OUTPUT)}`;
  const how = signal ?? code?.toString();
  const fail = (kind: string, message: string): Error =>
    Object.assign(new Error(message + words), { name: kind, stack, ...(how === undefined ? {} : { code: how }) });
  if (refused !== null) return fail("NotStarted", `${name} could not be started: ${refused}.`);
  if (why === "late") return fail("TimeoutError", `${name} took longer than ${settings.timeoutMs} ms and was ended.`);
  if (why === "broken")
    return fail("OutputTooLong", `A line of ${name} was longer than ${settings.outputBytes} bytes.`);
  if (why === "silent") return fail("NoOutcome", `${name} ended its batch without an outcome for this item.`);
  if (signal === null) return fail("ExitCode", `${name} ended with exit code ${code}.`);
  const guess = signal === "SIGKILL" ? " (perhaps the system was out of memory)" : "";
  return fail("ProcessDied", `${name} was ended by ${signal}${guess}.`);
}

function nameOf({ command }: Settings): string {
  return command.join(" ").slice(0, 200);
}
