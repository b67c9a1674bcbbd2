// The file of the demo: fresh for every run, in a folder of its own that no other user may read.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { isRedriveError, RedriveError } from "redrive";

/** Where it is unless the caller names another place, from the working directory. */
const DEFAULT_FILE = ".redrive/demo.db";

/** An empty place for the demo's jobs. */
export interface DemoFile {
  /** As it was given, or from the working directory. */
  readonly path: string;
  /** Lets the next demo have its turn. */
  release(): void;
}

/** Prepares the file; refuses one of the user's that exists, and one that another demo works on. */
export function freshFile(given: string | undefined, cwd: string): DemoFile {
  const path = given ?? DEFAULT_FILE;
  const absolute = resolve(cwd, path);
  if (given !== undefined && existsSync(absolute))
    throw refusal(`expected a file that does not exist yet; ${given} does; remove it or name another one`);
  const mark = `${absolute}.pid`;
  try {
    mkdirSync(dirname(absolute), { recursive: true, mode: 0o700 });
    if (given !== undefined) return { path, release: () => undefined };
    takeOver(absolute, mark, path);
  } catch (cause) {
    if (isRedriveError(cause)) throw cause;
    const said = cause instanceof Error ? cause.message : String(cause);
    const remedy = "go to a folder of yours, or name a file in one with --file";
    throw refusal(`expected a place that can be written; ${absolute} is none (${said}); ${remedy}`, cause);
  }
  return { path, release: () => rmSync(mark, { force: true }) };
}

/** Makes the file of the last demo ours, and removes it. */
function takeOver(absolute: string, mark: string, path: string): void {
  const owner = existsSync(mark) ? Number(readFileSync(mark, "utf8")) : 0;
  if (owner > 0 && owner !== process.pid && isAlive(owner))
    throw refusal(`process ${owner} works on ${path}; wait for its end or name another one with --file`);
  writeFileSync(mark, String(process.pid));
  for (const end of ["", "-wal", "-shm"]) rmSync(absolute + end, { force: true });
}

/** False only if a process of that pid is known to be gone. */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

function refusal(message: string, cause?: unknown): RedriveError {
  return new RedriveError("invalid_argument", `file: ${message}`, { cause });
}
