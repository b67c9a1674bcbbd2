// Child processes that talk with their parent, and end with it: both ends of the line.
import { spawn } from "node:child_process";

/** How a child ended, with the last of what it printed. */
export interface ExampleChildEnd {
  readonly code: number | null;
  readonly output: string;
}

/** A child process that was started. */
export interface ExampleChild {
  /** 0 if it could not be started. */
  readonly pid: number;
  readonly ended: Promise<ExampleChildEnd>;
  /** Asks it to stop. */
  stop(): void;
  /** Kills it with `SIGKILL`. */
  kill(): void;
}

const STOP = "stop";
const OUTPUT_MOST = 4_096;

/** Starts a module in a process of its own group, so that a signal to ours is for us to pass on. */
export function startChild(
  module: string,
  options: {
    readonly args: readonly string[];
    readonly memoryMb: number;
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly onMessage: (message: unknown) => void;
  },
): ExampleChild {
  const child = spawn(process.execPath, [`--max-old-space-size=${options.memoryMb}`, module, ...options.args], {
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    detached: true,
    env: options.env,
  });
  child.on("message", options.onMessage);
  let output = "";
  const keep = (chunk: unknown): void => void (output = (output + String(chunk)).slice(-OUTPUT_MOST));
  child.stdout?.on("data", keep);
  child.stderr?.on("data", keep);
  const ended = new Promise<ExampleChildEnd>((resolve) => {
    child.on("error", (error) => resolve({ code: 1, output: output + error.message }));
    child.on("close", (code) => resolve({ code, output }));
  });
  return {
    pid: child.pid ?? 0,
    ended,
    stop: () => void (child.connected && child.send(STOP, () => undefined)),
    kill: () => void child.kill("SIGKILL"),
  };
}

/** In a child: calls back when the parent asks us to stop, or is gone. Signals to the group are the parent's to hear. */
export function onParentStop(stop: () => void): void {
  process.on("message", (message) => {
    if (message === STOP) stop();
  });
  process.on("disconnect", stop);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
  // With the parent goes the reader of what we print; that must not end the work.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
}

/** In a child: tells the parent something; resolves when it is on its way. */
export function tellParent(message: unknown): Promise<void> {
  return new Promise((resolve) => {
    if (process.send) process.send(message, () => resolve());
    else resolve();
  });
}
