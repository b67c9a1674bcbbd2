// The `redrive` command in processes of its own. None of them outlives the example.
import { type ChildProcess, spawn } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const running = new Set<ChildProcess>();
process.once("exit", killAll);

/** Ends every process that still runs, however the story went. */
export function killAll(): void {
  for (const child of running) child.kill("SIGKILL");
}

/** How the command is to run. */
export interface CommandOptions {
  /** `import.meta.url` of the example: its own redrive is used, and its folder is where the command runs. */
  readonly from: string;
  readonly env: NodeJS.ProcessEnv;
  /** Where stderr goes: a file descriptor, a pipe, or where ours goes. */
  readonly stderr: number | "pipe" | "inherit";
  readonly timeoutMs?: number;
}

/** Starts a command of Redrive; stdout is a pipe, which the caller may read. */
export function startRedrive(args: readonly string[], options: CommandOptions): ChildProcess {
  const require = createRequire(options.from);
  const program = join(dirname(require.resolve("redrive/package.json")), "bin", "redrive.js");
  const child = spawn(process.execPath, [program, ...args], {
    cwd: new URL(".", options.from),
    env: options.env,
    stdio: ["ignore", "pipe", options.stderr],
    ...(options.timeoutMs !== undefined && { timeout: options.timeoutMs, killSignal: "SIGKILL" }),
  });
  running.add(child);
  child.once("exit", () => running.delete(child));
  return child;
}

/** Waits for the end of a command; what it printed, and how it ended. */
export async function endOf(child: ChildProcess): Promise<{
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}> {
  let [stdout, stderr] = ["", ""];
  child.stdout?.on("data", (text) => (stdout += text));
  child.stderr?.on("data", (text) => (stderr += text));
  return new Promise((resolve) => {
    child.once("close", (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
}

/** Runs a command to its end and returns what it printed; throws where it failed. */
export async function redriveOutput(args: readonly string[], options: Omit<CommandOptions, "stderr">): Promise<string> {
  const { code, stdout, stderr } = await endOf(startRedrive(args, { ...options, stderr: "pipe" }));
  if (code !== 0) throw new Error(`redrive ${args.join(" ")} ended with ${code}: ${(stderr || stdout).trim()}`);
  return stdout.trimEnd();
}
