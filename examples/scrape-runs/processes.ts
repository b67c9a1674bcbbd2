// The `redrive` command in processes of its own: workers that are started again when they die, as a process manager does
// it, and single calls. No worker outlives this program.
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { folder } from "./jobs.ts";

const here = fileURLToPath(new URL(".", import.meta.url));
const program = join(dirname(createRequire(import.meta.url).resolve("redrive/package.json")), "bin", "redrive.js");
const AGAIN_MS = 200;
const COMMAND_MS = 60_000;

/** Workers that run until they are stopped. */
export interface Crew {
  /** Processes that died of a job. */
  deaths: number;
  stop(): Promise<void>;
}

const running = new Set<ChildProcess>();
process.once("exit", killAll);

/** Ends every worker that still runs, however the story went. */
export function killAll(): void {
  for (const child of running) child.kill("SIGKILL");
}

/** Starts so many workers; whoever dies is replaced. */
export function startCrew(store: string, size: number): Crew {
  let stopping = false;
  const crew = { deaths: 0, stop };
  const keep = async (number: number): Promise<void> => {
    while (!stopping) {
      const signal = await runWorker(store, number);
      if (signal === "SIGKILL") crew.deaths += 1;
      if (!stopping) await sleep(AGAIN_MS);
    }
  };
  const kept = Promise.all(Array.from({ length: size }, (_, at) => keep(at + 1)));
  async function stop(): Promise<void> {
    stopping = true;
    for (const child of running) child.kill("SIGTERM");
    await kept;
  }
  return crew;
}

/** Runs `redrive worker` to its end; answers the signal it died of. */
async function runWorker(store: string, number: number): Promise<NodeJS.Signals | null> {
  const file = openSync(join(folder, `worker-${number}.log`), "a");
  const child = spawn(process.execPath, [program, "worker", "--store", store, "--queues", "scrape-runs"], {
    cwd: here,
    env: environment(),
    stdio: ["ignore", "ignore", file],
  });
  closeSync(file);
  running.add(child);
  const signal = await new Promise<NodeJS.Signals | null>((resolve) => {
    child.once("exit", (_code, by) => resolve(by));
  });
  running.delete(child);
  return signal;
}

/** Runs one `redrive` command to its end and returns what it printed. */
export async function redriveCommand(store: string, args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [program, ...args, "--store", store], {
    cwd: here,
    env: { ...environment(), REDRIVE_LOG: "error" },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: COMMAND_MS,
    killSignal: "SIGKILL",
  });
  let [output, errors] = ["", ""];
  child.stdout.on("data", (text) => (output += text));
  child.stderr.on("data", (text) => (errors += text));
  const code = await new Promise<number | null>((resolve) => {
    child.once("close", resolve);
  });
  if (code !== 0) throw new Error(`redrive ${args.join(" ")} ended with ${code}: ${(errors || output).trim()}`);
  return output.trimEnd();
}

function environment(): NodeJS.ProcessEnv {
  return { ...process.env, SCRAPE_FOLDER: folder, NO_COLOR: "1" };
}
