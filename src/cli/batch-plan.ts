// The plan of one `redrive batch` call: its flags, variables and command, all checked before anything is written.
import { accessSync, constants, statSync } from "node:fs";
import { basename, delimiter, resolve } from "node:path";
import type { BatchPlan } from "../batch-command/batch-run.ts";
import { digestOf } from "../batch-command/batch-state.ts";
import { parseDuration } from "../core/duration.ts";
import { checkInteger, checkName } from "../core/new-job.ts";
import { invalid } from "../core/options.ts";
import { BATCH_BOUNDS } from "../jobs/batch-handler.ts";
import { checkVariable, commandHandler, type Printed } from "../jobs/subprocess.ts";
import { batchItems } from "./batch-input.ts";
import { type Flags, numeric, textual } from "./command.ts";
import { wholeNumber } from "../config/environment.ts";
import type { Session } from "./session.ts";

/** Makes the plan: flags override variables, variables override defaults. */
export async function planOf(session: Session, command: readonly string[], flags: Flags): Promise<BatchPlan> {
  const { io, say } = session;
  checkProgram(command[0] ?? "", io);
  const size = count(flags.batchSize, "batch-size", wholeNumber(io.env, "BATCH_SIZE", 1, BATCH_BOUNDS.size) ?? 10);
  const again = wholeNumber(io.env, "RETRY_BATCH_SIZE", 1, BATCH_BOUNDS.size) ?? 1;
  const retrySize = count(flags.retryBatchSize, "retry-batch-size", again);
  if (retrySize > size)
    throw invalid("retry-batch-size", `at most the batch size, ${size}`, retrySize, "change it or RETRY_BATCH_SIZE");
  const maxRetries = numeric(flags.maxRetries) ?? wholeNumber(io.env, "MAX_RETRIES", 0, 9_998) ?? 3;
  checkInteger("max-retries", maxRetries, 0, 9_998);
  const parallel = numeric(flags.parallel) ?? 1;
  checkInteger("parallel", parallel, 1, 1_000);
  const { run, isExact } = handlerOf(session, command, flags);
  const items = await batchItems(io, flags);
  // A notice, not a refusal: a command that a batch runs finds JOB_INPUT set, and may itself start another batch.
  if (flags.input !== undefined && io.env.JOB_INPUT) say("JOB_INPUT is not read, because --input is given");
  const name = textual(flags.name) ?? `run-${digestOf([...command, "", ...items]).slice(0, 12)}`;
  checkName("name", name);
  if (name.length > 100) throw invalid("name", "at most 100 characters", name, "choose a shorter one");
  return { name, items, run, isExact, size, retrySize, maxRetries, parallel };
}

/** The command as a handler. Errors name the flag, not the option of the handler. */
function handlerOf(
  { io: { cwd, env: ours }, say }: Session,
  command: readonly string[],
  flags: Flags,
): Pick<BatchPlan, "run" | "isExact"> {
  const contract = textual(flags.contract) ?? "plain";
  if (contract !== "plain" && contract !== "lines")
    throw invalid("contract", '"plain" or "lines"', contract, "use one of these");
  const env = (flags.env as string[] | undefined) ?? [];
  for (const name of env) checkSet(name, ours);
  const timeout = parseDuration(textual(flags.timeout) ?? "1h", "timeout", { minMs: 1, maxMs: 7 * 86_400_000 });
  const program = basename(command[0] ?? "");
  const onPrinted: Printed = (line, pid) => say(`${program}[${pid}]: ${line}`);
  const run = commandHandler({ command, contract, env, cwd, timeout }, onPrinted);
  return { run, isExact: contract === "lines" };
}

/** Refuses a variable that is not set, or a comma-separated list: the command would silently miss it. */
function checkSet(name: string, env: Session["io"]["env"]): void {
  if (name === "*") return;
  if (name.includes(",")) {
    const flags = name.split(",").map((each) => `--env ${each.trim()}`);
    throw invalid("env", "one name", name, `write ${flags.join(" ")}`);
  }
  checkVariable("env", name);
  if (env[name] === undefined) throw invalid("env", "a variable that is set", name, "set it, or leave the flag out");
}

/** Refuses a program that cannot be run: every item would fail. */
function checkProgram(program: string, { env, cwd }: Session["io"]): void {
  const isPath = program.includes("/") || program.includes("\\");
  const places = isPath ? [cwd] : env.PATH?.split(delimiter);
  // Windows allows the file extension to be left out, so there the system itself reports a missing program.
  if (process.platform === "win32" || !places) return;
  const found = places.map((place) => resolve(place, program)).filter(isFile);
  if (found.length === 0)
    throw invalid("command", isPath ? "a program that exists" : "a program in PATH", program, "check its name");
  if (!found.some(mayRun))
    throw invalid("command", "a program that can be run", program, "chmod +x it, or name its interpreter before it");
}

/** False also for a path that may not be read. */
function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function mayRun(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function count(flag: Flags[string], name: string, fallback: number): number {
  const value = numeric(flag) ?? fallback;
  checkInteger(name, value, 1, BATCH_BOUNDS.size);
  return value;
}
