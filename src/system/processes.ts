// Processes: our host and pid, whether another process lives, and running a child that may die.
import { spawn } from "node:child_process";
import { readFileSync, readlinkSync } from "node:fs";
import { constants, hostname } from "node:os";
import { guardGroup } from "./guard.ts";

/** How a child ended, with its messages to the parent and the last of its output. */
export interface ChildEnd {
  readonly code: number | null;
  readonly signal: string | null;
  readonly output: string;
  readonly told?: readonly unknown[];
}

const STOP = "stop";

/**
 * Calls back when the parent asks us to stop or is gone. Signals to the group are ignored, because they are meant for
 * the parent.
 */
export function onParentStop(stop: () => void): void {
  process.on("message", (message) => {
    if (message === STOP) stop();
  });
  process.on("disconnect", stop);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
  // When the parent ends, its end of our output closes; that must not end the job.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
}

/** The first message of the parent process; never resolves without a parent. */
export function firstWord(): Promise<unknown> {
  return new Promise((resolve) => {
    process.once("message", resolve);
  });
}

/** Sends a message to the parent process; resolves when it is sent. */
export function tellParent(message: unknown): Promise<void> {
  return new Promise((resolve) => {
    if (process.send) process.send(message, () => resolve());
    else resolve();
  });
}

const OUTPUT_BYTES = 4_096;

/** A name for the space in which our pids are valid: host, boot and pid namespace. */
export function hostId(): string {
  const parts = [hostname(), readOr("/proc/sys/kernel/random/boot_id").trim().slice(0, 8), pidNamespace()];
  return parts.filter((part) => part !== "").join("/");
}

/** False only if a process of that pid on this host is known to be gone. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !(error instanceof Error && "code" in error && error.code === "ESRCH");
  }
}

/** A child process that was started. */
interface Child {
  readonly ended: Promise<ChildEnd>;
  tell(message: unknown): void;
  /** Asks it to stop, in the way a worker is asked. */
  stop(): void;
  /** Kills it with `SIGKILL`. */
  kill(): void;
}

/** Starts a Node module in a child process with its own group and a cap on its memory, and receives its messages. */
function startChild(
  module: string,
  options: {
    readonly memoryMb: number;
    /** If this process is killed, how long the child may take to stop before it is killed too. */
    readonly killAfterMs: number;
    readonly onMessage: (message: unknown) => void;
  },
): Child {
  const child = spawn(process.execPath, [`--max-old-space-size=${options.memoryMb}`, module], {
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    // Its own group, because we pass on a signal to ours ourselves.
    detached: true,
  });
  child.on("message", options.onMessage);
  const { pid: group } = child;
  const unguard = group === undefined ? null : guardGroup(group, options.killAfterMs);
  child.on("exit", () => unguard?.());
  let output = "";
  const keep = (chunk: Buffer): void => {
    output = (output + chunk.toString("utf8")).slice(-OUTPUT_BYTES);
  };
  child.stdout?.on("data", keep);
  child.stderr?.on("data", keep);
  const ended = new Promise<ChildEnd>((resolve) => {
    child.on("error", (error) => {
      output += error.message;
      resolve({ code: 1, signal: null, output });
    });
    child.on("close", (code, signal) => resolve({ code, signal, output }));
  });
  return {
    ended,
    tell: (message) => void (child.connected && child.send(message as object, () => undefined)),
    stop: () => void (child.connected && child.send(STOP)),
    kill: () => void child.kill("SIGKILL"),
  };
}

/** The destination of an attached program's output: a descriptor of ours, or a function. */
export interface Attached {
  readonly stdout: number | ((text: string) => void);
  readonly stderr: number | ((text: string) => void);
}

/** Runs a Node module on our terminal or pipes. When this process ends, its channel closes, which tells the module. */
export function runAttached(
  module: string,
  args: readonly string[],
  cwd: string,
  to: Attached,
): { readonly ended: Promise<number>; signal(name: NodeJS.Signals): void } {
  const [out, err] = [to.stdout, to.stderr].map((each) => (typeof each === "number" ? each : "pipe"));
  const child = spawn(process.execPath, [module, ...args], { cwd, stdio: ["inherit", out, err, "ipc"] });
  for (const name of ["stdout", "stderr"] as const) {
    const tell = to[name];
    if (typeof tell === "function") child[name]?.setEncoding("utf8").on("data", tell);
  }
  const ended = new Promise<number>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => resolve(code ?? 128 + constants.signals[signal ?? "SIGKILL"]));
  });
  return { ended, signal: (name) => void child.kill(name) };
}

/** Runs a Node module in a child process and waits for its end. */
export async function runChild(
  module: string,
  options: {
    readonly memoryMb: number;
    readonly killAfterMs: number;
    /** Its first message; arguments would be readable by every user of the machine. */
    readonly task: unknown;
    /** Kills the child. */
    readonly signal?: AbortSignal;
    /** Asks it to stop, in the way a worker is asked. */
    readonly stop?: AbortSignal;
  },
): Promise<ChildEnd> {
  const told: unknown[] = [];
  const { memoryMb, killAfterMs, signal, stop } = options;
  const child = startChild(module, { memoryMb, killAfterMs, onMessage: (message) => told.push(message) });
  child.tell(options.task);
  signal?.addEventListener("abort", child.kill);
  stop?.addEventListener("abort", child.stop);
  const end = await child.ended;
  signal?.removeEventListener("abort", child.kill);
  stop?.removeEventListener("abort", child.stop);
  return { ...end, told };
}

function pidNamespace(): string {
  try {
    return readlinkSync("/proc/self/ns/pid").replace(/\D/g, "");
  } catch {
    return "";
  }
}

function readOr(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
