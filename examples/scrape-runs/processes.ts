// Workers that are started again when they die, as a process manager does it, and single calls of `redrive`.
import type { ChildProcess } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { endOf, redriveOutput, startRedrive } from "../kit/redrive-command.ts";
import { folder } from "./jobs.ts";

const from = import.meta.url;
const AGAIN_MS = 200;
const COMMAND_MS = 60_000;

/** Workers that run until they are stopped. */
export interface Crew {
  /** Processes that died of a job. */
  deaths: number;
  stop(): Promise<void>;
}

/** Starts so many workers; one that dies is replaced. */
export function startCrew(store: string, size: number): Crew {
  let stopping = false;
  const workers = new Set<ChildProcess>();
  const crew = { deaths: 0, stop };
  const keep = async (number: number): Promise<void> => {
    while (!stopping) {
      const signal = await runWorker(store, number, workers);
      if (signal === "SIGKILL") crew.deaths += 1;
      if (!stopping) await sleep(AGAIN_MS);
    }
  };
  const kept = Promise.all(Array.from({ length: size }, (_, at) => keep(at + 1)));
  async function stop(): Promise<void> {
    stopping = true;
    for (const worker of workers) worker.kill("SIGTERM");
    await kept;
  }
  return crew;
}

/** Runs `redrive worker` to its end; answers the signal it died of. */
async function runWorker(store: string, number: number, workers: Set<ChildProcess>): Promise<NodeJS.Signals | null> {
  const file = openSync(join(folder, `worker-${number}.log`), "a");
  const args = ["worker", "--store", store, "--queues", "scrape-runs"];
  const child = startRedrive(args, { from, env: environment(), stderr: file });
  closeSync(file);
  workers.add(child);
  const { signal } = await endOf(child);
  workers.delete(child);
  return signal;
}

/** Runs one `redrive` command to its end and returns what it printed. */
export function redriveCommand(store: string, args: readonly string[]): Promise<string> {
  const env = { ...environment(), REDRIVE_LOG: "error" };
  return redriveOutput([...args, "--store", store], { from, env, timeoutMs: COMMAND_MS });
}

function environment(): NodeJS.ProcessEnv {
  return { ...process.env, SCRAPE_FOLDER: folder, NO_COLOR: "1" };
}
