// The command line as a process: real streams, real signals, and an end that does not wait for user code.
import { basename, relative } from "node:path";
import { printToStderr, put } from "../system/output.ts";
import { EXIT } from "./exit.ts";
import { type Sink, STOP_SIGNALS, type StopSignal } from "./io.ts";
import { asksForJson, asksForJsonLog, ownArguments, run } from "./main.ts";
import { watchEnd } from "./process-end.ts";

/** Runs the command line of this process and ends it with the exit code. */
export async function main(): Promise<void> {
  const argv = process.argv.slice(2);
  const stdout = sinkOf(process.stdout);
  const stderr = sinkOf(process.stderr);
  if (isOurStdout(argv)) printToStderr();
  const { env } = process;
  // A document on stdout that has begun cannot become an error document.
  const end = watchEnd(
    { stdout, stderr, env, isJsonLog: asksForJsonLog(argv, env) },
    () => asksForJson(argv) && !stdout.hasWritten,
  );
  const done = await run(argv, {
    stdout,
    stderr,
    stdin: process.stdin,
    env,
    cwd: process.cwd(),
    program: programName(process.argv[1] ?? "redrive", process.cwd()),
    onSignal,
  });
  end.decide(done);
  await stdout.flushed();
  const { failure } = stdout;
  if (failure !== null) put(process.stderr, "line", `error: ${lostAnswer(failure)}\n`);
  const code = failure !== null && done === EXIT.ok ? EXIT.store : done;
  end.decide(code);
  // A handler that never returns, or a store that does not answer, must not keep the process alive.
  process.exit(code);
}

/** True where another program reads our stdout: JSON, results, or an export. */
function isOurStdout(argv: readonly string[]): boolean {
  const ours = ownArguments(argv);
  const isOutput = ours.some((word, at) => word === "--output=-" || (word === "--output" && ours[at + 1] === "-"));
  return asksForJson(argv) || isOutput || ours.includes("export");
}

/** How the user called the program, so that examples work as typed. */
export function programName(script: string, cwd: string): string {
  if (/[\\/]node_modules[\\/]/.test(script)) return "npx redrive";
  if (basename(script) === "redrive") return "redrive";
  const fromHere = relative(cwd, script);
  return `node ${fromHere !== "" && fromHere.length < script.length ? fromHere : script}`;
}

function onSignal(listener: (signal: StopSignal) => void): () => void {
  for (const signal of STOP_SIGNALS) process.on(signal, listener);
  return () => {
    for (const signal of STOP_SIGNALS) process.off(signal, listener);
  };
}

function lostAnswer(failure: Error): string {
  const said = `stdout: expected to write the answer; got ${failure.message}`;
  return `${said}; make room or write elsewhere, and check the store before you repeat a change`;
}

/** The errors of a stream after its reader has left. */
const GONE: ReadonlySet<string> = new Set(["EPIPE", "ERR_STREAM_DESTROYED"]);

interface ProcessSink extends Sink {
  /** Why written text was lost; null where the reader left on purpose. */
  readonly failure: Error | null;
  readonly hasWritten: boolean;
  /** Resolves when everything is written, or cannot be. */
  flushed(): Promise<void>;
}

/** A stream whose reader may leave at any time; after that, writes go nowhere. */
function sinkOf(stream: NodeJS.WriteStream): ProcessSink {
  let isClosed = false;
  let hasWritten = false;
  // Bound now, because the process later replaces this function for user code.
  const write = stream.write.bind(stream);
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
    write(text) {
      hasWritten = true;
      return isClosed || write(text);
    },
    get hasWritten() {
      return hasWritten;
    },
    get isTTY() {
      return stream.isTTY;
    },
    fd: (stream as { readonly fd?: number }).fd,
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
      const error = await new Promise<Error | null | undefined>((resolve) => write("", resolve));
      if (error) note(error);
    },
    async drained() {
      while (!isClosed && stream.writableNeedDrain) await new Promise<void>((resolve) => (wake = resolve));
    },
  };
}
