// The `redrive` command in processes of its own: workers that run until they are stopped or killed, and single calls.
// No worker outlives this program.
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { folder } from "./object-store.ts";

const here = fileURLToPath(new URL(".", import.meta.url));
const program = join(dirname(createRequire(import.meta.url).resolve("redrive/package.json")), "bin", "redrive.js");
/** Jobs that a worker runs at the same time. */
export const CONCURRENCY = 4;
const START_MS = 60_000;
const STOP_MS = 60_000;

/** What every call gets from the environment: the retry settings, the folder, all log lines. */
export interface Settings {
  readonly store: string;
  readonly attempts: number;
  readonly delaySeconds: string;
}

/** A worker process. */
export interface Worker {
  readonly pid: number;
  /** The name under which the store knows it. */
  readonly id: string;
  /** The file with its log lines. */
  readonly log: string;
  /** SIGTERM: it finishes what it runs. */
  stop(): Promise<void>;
  /** SIGKILL: it finishes nothing. */
  kill(): Promise<void>;
}

const running = new Set<ChildProcess>();
process.once("exit", killAll);

/** Ends every worker that still runs, however the story went. */
export function killAll(): void {
  for (const child of running) child.kill("SIGKILL");
}

/** Starts `redrive worker`; resolves when it takes work. */
export async function startWorker(settings: Settings, number: number): Promise<Worker> {
  const log = join(folder, `worker-${number}.log`);
  const file = openSync(log, "w");
  const flags = ["--concurrency", String(CONCURRENCY), "--queues", "thumbnails", "--lease", "5s", "--heartbeat", "1s"];
  const args = [program, "worker", "--store", settings.store, "--jobs", "jobs.ts", ...flags];
  const child = spawn(process.execPath, args, {
    cwd: here,
    env: environment(settings),
    stdio: ["ignore", "ignore", file],
  });
  closeSync(file);
  running.add(child);
  const ended = new Promise<void>((resolve) => {
    child.once("exit", () => {
      running.delete(child);
      resolve();
    });
  });
  const end = async (signal: "SIGTERM" | "SIGKILL"): Promise<void> => {
    child.kill(signal);
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
    await ended;
    clearTimeout(timer);
  };
  const id = await startedAs(child, log);
  return { pid: child.pid ?? 0, id, log, stop: () => end("SIGTERM"), kill: () => end("SIGKILL") };
}

async function startedAs(child: ChildProcess, log: string): Promise<string> {
  for (let waitedMs = 0; waitedMs < START_MS && child.exitCode === null; waitedMs += 20) {
    const id = /worker=(\S+).*worker started|worker started.*worker=(\S+)/.exec(readFileSync(log, "utf8"));
    if (id) return id[1] ?? id[2] ?? "";
    await sleep(20);
  }
  child.kill("SIGKILL");
  throw new Error(`A worker did not start. Its last words: ${readFileSync(log, "utf8").trim().split("\n").at(-1)}`);
}

/** Runs one `redrive` command to its end and returns what it printed, log lines left out. */
export async function redriveCommand(settings: Settings, args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [program, ...args, "--store", settings.store], {
    cwd: here,
    env: { ...environment(settings), REDRIVE_LOG: "error" },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: START_MS,
    killSignal: "SIGKILL",
  });
  let [output, errors] = ["", ""];
  child.stdout.on("data", (text) => (output += text));
  child.stderr.on("data", (text) => (errors += text));
  const code = await new Promise<number | null>((resolve) => {
    child.once("close", resolve);
  });
  if (code !== 0) throw new Error(`redrive ${args.join(" ")} ended with ${code}: ${(errors || output).trim()}`);
  return output.trim();
}

function environment({ attempts, delaySeconds }: Settings): NodeJS.ProcessEnv {
  return {
    ...process.env,
    THUMBNAILS_FOLDER: folder,
    MAX_RETRY_ATTEMPTS: String(attempts),
    RETRY_DELAY_SECONDS: delaySeconds,
    REDRIVE_LOG: "debug",
    NO_COLOR: "1",
  };
}
