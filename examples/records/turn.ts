// One turn of the scheduler: `redrive drain` in a process of its own, as cron starts it. No turn outlives this program.
import { type ChildProcess, spawn } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const program = join(dirname(createRequire(import.meta.url).resolve("redrive/package.json")), "bin", "redrive.js");
const LONGEST_MS = 60_000;

/** What a drain says with `--json`. */
export interface Figures {
  readonly records: number;
  readonly enqueued: number;
  readonly known: number;
  readonly conflicts: number;
  readonly completed: number;
  readonly retried: number;
  readonly dead: number;
  readonly successRate: number | null;
  readonly averageRetries: number | null;
  readonly retryQueue: number;
  readonly deadLetters: number;
  readonly ms: number;
}

/** A turn that runs. */
export interface Turn {
  /** SIGKILL: it ends in the middle of everything. */
  kill(): void;
  /** What it said; null if it was killed. */
  readonly ended: Promise<Figures | null>;
}

/** Where a turn works. */
export interface Place {
  readonly store: string;
  readonly input: string;
  readonly output: string;
  readonly api: string;
}

const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Starts a turn. */
export function startTurn({ store, input, output, api }: Place): Turn {
  const call = ["drain", "--store", store, "--input", input, "--output", output, "--grace", "0s", "--json"];
  const child = spawn(process.execPath, [program, ...call], {
    cwd: here,
    env: { ...process.env, ENRICHMENT_URL: api, REDRIVE_LOG: "error", NO_COLOR: "1" },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: LONGEST_MS,
    killSignal: "SIGKILL",
  });
  running.add(child);
  let [said, errors, killed] = ["", "", false];
  child.stdout.on("data", (text) => (said += text));
  child.stderr.on("data", (text) => (errors += text));
  const ended = new Promise<Figures | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      running.delete(child);
      // 1 is a turn in which something died: some records do.
      if (code === 0 || code === 1) resolve(JSON.parse(said) as Figures);
      else if (killed) resolve(null);
      else reject(new Error(`A drain ended with ${code}: ${(errors || said).trim().split("\n").at(-1)}`));
    });
  });
  return {
    kill() {
      killed = true;
      child.kill("SIGKILL");
    },
    ended,
  };
}
