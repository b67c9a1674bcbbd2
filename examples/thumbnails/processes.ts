// Workers that run until they are stopped or killed, and single calls of `redrive`.
import type { ChildProcess } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { endOf, redriveOutput, startRedrive } from "../kit/redrive-command.ts";
import { folder } from "./object-store.ts";

const from = import.meta.url;
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

/** Starts `redrive worker`; resolves when it takes work. */
export async function startWorker(settings: Settings, number: number): Promise<Worker> {
  const log = join(folder, `worker-${number}.log`);
  const file = openSync(log, "w");
  const flags = ["--concurrency", String(CONCURRENCY), "--queues", "thumbnails", "--lease", "5s", "--heartbeat", "1s"];
  const args = ["worker", "--store", settings.store, "--jobs", "jobs.ts", ...flags];
  const child = startRedrive(args, { from, env: environment(settings), stderr: file });
  closeSync(file);
  const ended = endOf(child);
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
  throw new Error(`A worker did not start. Its last output: ${readFileSync(log, "utf8").trim().split("\n").at(-1)}`);
}

/** Runs one `redrive` command to its end and returns what it printed, log lines left out. */
export async function redriveCommand(settings: Settings, args: readonly string[]): Promise<string> {
  const env = { ...environment(settings), REDRIVE_LOG: "error" };
  const output = await redriveOutput([...args, "--store", settings.store], { from, env, timeoutMs: START_MS });
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
