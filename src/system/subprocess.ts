// Runs commands of any language without a shell, each in its own process group, which is ended as a whole. Keeps a
// bounded tail of the output and passes lines on one by one.
import { type ChildProcess, spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { childEnvironment } from "./child-environment.ts";
import { guardGroup } from "./guard.ts";

/** How a command ended. */
export interface SubprocessEnd {
  readonly code: number | null;
  readonly signal: string | null;
  /** The last of its output. */
  readonly output: string;
  /** The last of its output on stderr. */
  readonly complaint: string;
  /** Why it could not be started; null if it was. */
  readonly refused: string | null;
}

/** What to run. */
export interface SubprocessRequest {
  readonly command: readonly string[];
  readonly cwd: string | undefined;
  /** Names of variables of our environment that it may see, besides those of every program. */
  readonly env: readonly string[];
  readonly added: Readonly<Record<string, string>>;
  /** How much of its output is kept, and how long a line may be. */
  readonly outputBytes: number;
  /** How long it may take to end after it was asked to. */
  readonly killAfterMs: number;
  /** Receives each line on stdout and on descriptor 3; null for one that is too long. Absent, no lines are read. */
  readonly onLine?: (line: string | null) => void;
  /** Receives each line on stderr, and on stdout where no lines are read there, with the process id. */
  readonly onPrinted?: (line: string, pid: number) => void;
}

/** A started command. */
export interface Subprocess {
  /** 0 if it could not be started. */
  readonly pid: number;
  readonly ended: Promise<SubprocessEnd>;
  /** True once it was asked to stop or has exited, however long its end takes. */
  readonly isEnding: boolean;
  /** Its output so far, for a command that still runs. */
  said(): SubprocessEnd;
  write(text: string): void;
  /** Closes its stdin. */
  close(): void;
  /** Asks its group to stop, and kills what is left of it after a while. */
  stop(): void;
  /** Marks it as idle: it does not keep this process alive, and is ended after so long. */
  rest(ms: number): void;
  /** Marks it as in use again. */
  wake(): void;
}

/** How long to wait for the last output of a command whose process is gone but whose pipes are still open. */
const LAST_WORDS_MS = 500;

/** Stands for a line that is longer than what is kept. */
const TOO_LONG = "(a line that is too long)";

/** How much of stderr is kept for its last line. */
const COMPLAINT_BYTES = 4_096;

/** Starts a command. */
export function startSubprocess(request: SubprocessRequest): Subprocess {
  const { command, cwd, env, added, killAfterMs } = request;
  const [program = "", ...args] = command;
  const child = spawn(program, args, {
    cwd,
    env: childEnvironment(env, added),
    stdio: ["pipe", "pipe", "pipe", "pipe"],
    // Its own group, because we pass on a signal to ours ourselves, and because it is ended with everything it started.
    detached: true,
    windowsHide: true,
  });
  const group = child.pid ?? 0;
  const unguard = group === 0 ? () => undefined : guardGroup(group, killAfterMs);
  const { tail, complaint } = hear(child, request, group);
  // A command that does not read its stdin to the end reports that by its exit code, if it matters.
  for (const stream of child.stdio) stream?.on("error", () => undefined);
  let killing: NodeJS.Timeout | null = null;
  let resting: NodeJS.Timeout | undefined;
  const stop = (): void => {
    if (killing) return;
    signalGroup(group, "SIGTERM");
    // If this process ends before that, the guard kills the group.
    killing = setTimeout(() => signalGroup(group, "SIGKILL"), killAfterMs).unref();
  };
  const said = (code: number | null = null, signal: string | null = null): SubprocessEnd => {
    return { code, signal, output: tail.text(), complaint: complaint.text(), refused: null };
  };
  const ended = endOf(child, said, () => {
    if (killing) clearTimeout(killing);
    clearTimeout(resting);
    // Processes that it left in its group end with it.
    signalGroup(group, "SIGKILL");
    unguard();
  });
  return {
    pid: group,
    ended,
    get isEnding() {
      return killing !== null || child.exitCode !== null || child.signalCode !== null;
    },
    said: () => said(),
    write: (text) => void child.stdin?.write(text),
    close: () => void child.stdin?.end(),
    stop,
    rest(ms) {
      for (const each of handlesOf(child)) each.unref?.();
      resting = setTimeout(() => {
        child.stdin?.end();
        stop();
      }, ms).unref();
    },
    wake() {
      for (const each of handlesOf(child)) each.ref?.();
      clearTimeout(resting);
    },
  };
}

/** Reads the output of a command: keeps the end of it, and passes its lines on. */
function hear(
  child: ChildProcess,
  { outputBytes, onLine, onPrinted }: SubprocessRequest,
  group: number,
): Record<"tail" | "complaint", ReturnType<typeof openTail>> {
  const tail = openTail(outputBytes);
  // Kept separately: buffered stdout arrives after the error that ended the command, and would hide it.
  const complaint = openTail(COMPLAINT_BYTES);
  const [, stdout, stderr, outcomes] = child.stdio as unknown as [unknown, Readable, Readable, Readable];
  for (const stream of [stdout, stderr]) stream.on("data", (chunk: Buffer) => tail.add(chunk));
  stderr.on("data", (chunk: Buffer) => complaint.add(chunk));
  const print = onPrinted && ((line: string | null): void => onPrinted(line ?? TOO_LONG, group));
  for (const [stream, listener] of [
    [stdout, onLine ?? print],
    [stderr, print],
    [outcomes, onLine],
  ] as const)
    readLines(stream, outputBytes, listener);
  return { tail, complaint };
}

function handlesOf(child: ChildProcess): { ref?: () => void; unref?: () => void }[] {
  return [child, ...child.stdio] as object[];
}

function signalGroup(group: number, signal: "SIGTERM" | "SIGKILL"): void {
  if (group === 0) return;
  try {
    process.kill(-group, signal);
  } catch {
    // The group has no process left.
  }
}

function endOf(
  child: ChildProcess,
  said: (code: number | null, signal: string | null) => SubprocessEnd,
  onExit: () => void,
): Promise<SubprocessEnd> {
  return new Promise((resolve) => {
    child.on("error", (error) => {
      if (child.pid !== undefined) return;
      onExit();
      resolve({ code: null, signal: null, output: "", complaint: "", refused: error.message });
    });
    child.on("exit", (code, signal) => {
      onExit();
      const finish = (): void => {
        clearTimeout(late);
        for (const stream of child.stdio) stream?.destroy();
        resolve(said(code, signal));
      };
      const late = setTimeout(finish, LAST_WORDS_MS);
      child.on("close", finish);
    });
  });
}

interface Tail {
  add(chunk: Buffer): void;
  text(): string;
}

/** The last so many bytes of what is added. */
function openTail(most: number): Tail {
  let chunks: Buffer[] = [];
  let bytes = 0;
  const cut = (): void => {
    const whole = Buffer.concat(chunks);
    chunks = [Buffer.from(whole.subarray(Math.max(0, whole.length - most)))];
    bytes = chunks[0]?.length ?? 0;
  };
  return {
    add(chunk) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > most * 2) cut();
    },
    text() {
      cut();
      return chunks[0]?.toString("utf8") ?? "";
    },
  };
}

/** Cuts a stream into lines; for a line that is too long only its existence is reported. */
function readLines(stream: Readable, most: number, onLine: ((line: string | null) => void) | undefined): void {
  if (!onLine) return void stream.resume();
  let rest: Buffer[] = [];
  let bytes = 0;
  let isSkipping = false;
  const keep = (part: Buffer): void => {
    if (isSkipping) return;
    rest.push(part);
    bytes += part.length;
    if (bytes <= most) return;
    [rest, bytes, isSkipping] = [[], 0, true];
    onLine(null);
  };
  const finish = (): void => {
    if (!isSkipping && bytes > 0) onLine(Buffer.concat(rest).toString("utf8"));
    [rest, bytes, isSkipping] = [[], 0, false];
  };
  stream.on("data", (chunk: Buffer) => {
    let from = 0;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      keep(chunk.subarray(from, at));
      finish();
      from = at + 1;
    }
    if (from < chunk.length) keep(chunk.subarray(from));
  });
  stream.on("end", finish);
}
