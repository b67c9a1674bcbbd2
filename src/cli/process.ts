// The command line as a process: real streams, real signals, and an end that waits for nobody.
import { basename, relative } from "node:path";
import { EXIT } from "./exit.ts";
import type { Sink, StopSignal } from "./io.ts";
import { run } from "./main.ts";

/** Runs the command line of this process and ends it with the exit code. */
export async function main(): Promise<void> {
  const stdout = sinkOf(process.stdout);
  const done = await run(process.argv.slice(2), {
    stdout,
    stderr: sinkOf(process.stderr),
    stdin: process.stdin,
    env: process.env,
    cwd: process.cwd(),
    program: programName(process.argv[1] ?? "redrive", process.cwd()),
    onSignal,
  });
  await stdout.flushed();
  const { failure } = stdout;
  if (failure !== null) process.stderr.write(`error: ${lostAnswer(failure)}\n`);
  const code = failure !== null && done === EXIT.ok ? EXIT.store : done;
  process.exitCode = code;
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

function lostAnswer(failure: Error): string {
  const said = `stdout: expected a place that takes the answer; it does not (${failure.message})`;
  return `${said}; make room there or write elsewhere, and look at the store before you repeat a change`;
}

/** What a stream says that nobody reads any more: the reader left, and everything after that. */
const GONE: ReadonlySet<string> = new Set(["EPIPE", "ERR_STREAM_DESTROYED"]);

interface ProcessSink extends Sink {
  /** Why what was written is lost; null for a reader that left, who has seen what they wanted. */
  readonly failure: Error | null;
  /** Resolves when all is written, or cannot be. */
  flushed(): Promise<void>;
}

/** A stream whose reader may leave at any time; then what is written goes nowhere. */
function sinkOf(stream: NodeJS.WriteStream): ProcessSink {
  let isClosed = false;
  let failure: Error | null = null;
  let wake: (() => void) | null = null;
  const rouse = (): void => wake?.();
  const note = (error: NodeJS.ErrnoException): void => {
    isClosed = true;
    if (!GONE.has(error.code ?? "")) failure ??= error;
    rouse();
  };
  stream.on("error", note);
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
    get failure() {
      return failure;
    },
    async flushed() {
      const error = await new Promise<Error | null | undefined>((resolve) => stream.write("", resolve));
      if (error) note(error);
    },
    async drained() {
      while (!isClosed && stream.writableNeedDrain) await new Promise<void>((resolve) => (wake = resolve));
    },
  };
}
