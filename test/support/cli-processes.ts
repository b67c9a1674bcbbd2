// The command line in processes of their own, with what they say and how they end.
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { builtModule } from "./built.ts";
import type { Bench } from "./cli.ts";

const SCRIPT = fileURLToPath(new URL("./cli-process.mjs", import.meta.url));
const BUILT = builtModule("cli/process.js").slice(0, -"cli/process.js".length);

/** A call of the command line in a process of its own. */
export interface Running {
  readonly child: ChildProcess;
  readonly text: { out: string; err: string };
  readonly ended: Promise<{ code: number | null; signal: string | null }>;
  /** Waits for a text on stderr. */
  says(part: string): Promise<void>;
}

/** Starts a call in the folder of the bench; it is killed with its test at the latest. `stdin` is an open file. */
export function startCli(
  bench: Bench,
  args: readonly string[],
  env: Record<string, string> = {},
  stdin?: number,
): Running {
  const child = spawn(process.execPath, [SCRIPT, ...args], {
    cwd: bench.folder,
    env: { PATH: process.env.PATH, REDRIVE_BUILT: BUILT, ...env },
    stdio: [stdin ?? "pipe", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const text = { out: "", err: "" };
  child.stdout?.on("data", (chunk: Buffer) => (text.out += chunk.toString()));
  child.stderr?.on("data", (chunk: Buffer) => (text.err += chunk.toString()));
  const ended = new Promise<{ code: number | null; signal: string | null }>((resolve) => {
    child.on("close", (code, signal) => resolve({ code, signal }));
  });
  return {
    child,
    text,
    ended,
    says: (part) =>
      until(
        () => text.err.includes(part),
        () => text.err,
      ),
  };
}

/** Waits for something that another process does. */
export async function until(fits: () => boolean, told: () => string, withinMs = 60_000): Promise<void> {
  for (const from = performance.now(); !fits(); await new Promise((resolve) => setTimeout(resolve, 10)))
    if (performance.now() - from > withinMs) throw new Error(`Waited in vain; it said:\n${told()}`);
}
