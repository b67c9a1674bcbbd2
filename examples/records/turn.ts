// One turn of the scheduler: `redrive drain` in a process of its own, as cron starts it. No turn outlives this program.
import { endOf, startRedrive } from "../kit/redrive-command.ts";

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

/** Starts a turn. */
export function startTurn({ store, input, output, api }: Place): Turn {
  const call = ["drain", "--store", store, "--input", input, "--output", output, "--grace", "0s", "--json"];
  const child = startRedrive(call, {
    from: import.meta.url,
    env: { ...process.env, ENRICHMENT_URL: api, REDRIVE_LOG: "error", NO_COLOR: "1" },
    stderr: "pipe",
    timeoutMs: LONGEST_MS,
  });
  let killed = false;
  const ended = endOf(child).then(({ code, stdout, stderr }): Figures | null => {
    // 1 is a turn in which something died: some records do.
    if (code === 0 || code === 1) return JSON.parse(stdout) as Figures;
    if (killed) return null;
    throw new Error(`A drain ended with ${code}: ${(stderr || stdout).trim().split("\n").at(-1)}`);
  });
  return {
    kill() {
      killed = true;
      child.kill("SIGKILL");
    },
    ended,
  };
}
