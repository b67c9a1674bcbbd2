// The command line as a process: real streams, real signals, and an end that waits for nobody.
import { basename, relative } from "node:path";
import type { Sink, StopSignal } from "./io.ts";
import { run } from "./main.ts";

/** Runs the command line of this process and ends it with the exit code. */
export async function main(): Promise<void> {
  const code = await run(process.argv.slice(2), {
    stdout: sinkOf(process.stdout),
    stderr: sinkOf(process.stderr),
    stdin: process.stdin,
    env: process.env,
    cwd: process.cwd(),
    program: programName(process.argv[1] ?? "redrive", process.cwd()),
    onSignal,
  });
  process.exitCode = code;
  await new Promise<void>((resolve) => process.stdout.write("", () => resolve()));
  // A handler that never returns, or a store that does not answer, must not keep us.
  process.exit(code);
}

/** How the user called us, so that examples work as typed. */
export function programName(script: string, cwd: string): string {
  if (/[\\/]node_modules[\\/]/.test(script)) return "npx redrive";
  if (basename(script) === "redrive") return "redrive";
  const fromHere = relative(cwd, script);
  return `node ${fromHere !== "" && fromHere.length < script.length ? fromHere : script}`;
}

function onSignal(listener: (signal: StopSignal) => void): () => void {
  const signals: readonly StopSignal[] = ["SIGINT", "SIGTERM"];
  for (const signal of signals) process.on(signal, listener);
  return () => {
    for (const signal of signals) process.off(signal, listener);
  };
}

/** A stream whose reader may leave at any time; then what is written goes nowhere. */
function sinkOf(stream: NodeJS.WriteStream): Sink {
  let isClosed = false;
  let wake: (() => void) | null = null;
  const rouse = (): void => wake?.();
  stream.on("error", () => {
    isClosed = true;
    rouse();
  });
  stream.on("drain", rouse);
  return {
    write: (text) => isClosed || stream.write(text),
    get isTTY() {
      return stream.isTTY;
    },
    get columns() {
      return stream.columns;
    },
    get rows() {
      return stream.rows;
    },
    get isClosed() {
      return isClosed;
    },
    async drained() {
      while (!isClosed && stream.writableNeedDrain) await new Promise<void>((resolve) => (wake = resolve));
    },
  };
}
