// The end of this process, in one place. A command ends it once it is done. If user code ends it before (process.exit, an
// error that no code catches, a promise that never settles), the caller hears so: one line and exit code 5. Otherwise a
// `process.exit(0)` in a handler would make a call succeed that did half of its work.
import { complain, type Told } from "./complain.ts";
import { UserCodeEnd } from "./exit.ts";

/** The way to end the process. */
export interface ProcessEnd {
  /** From here on the call is done, and this is its exit code, whatever user code does meanwhile. */
  decide(code: number): void;
}

/** Watches over the end of this process until it is decided. `json` says whether an error is also due as a document. */
export function watchEnd(io: Told, json: () => boolean): ProcessEnd {
  let decided: number | null = null;
  let isIdle = false;
  const endWith = (end: UserCodeEnd): void => {
    decided = complain(end, io, json());
    process.exitCode = decided;
  };
  const exit = process.exit.bind(process);
  // Not only by a listener: user code may remove all of them.
  process.exit = ((code) => {
    if (decided === null) endWith(exited(Number(code ?? process.exitCode ?? 0)));
    return exit(decided);
  }) satisfies typeof process.exit;
  process.once("beforeExit", () => (isIdle = true));
  process.on("exit", (code) => {
    if (decided === null) endWith(isIdle ? neverSettled() : exited(code));
    else process.exitCode = decided;
  });
  process.on("uncaughtException", (error, origin) => {
    // Code that listens itself has decided to go on.
    if (process.listenerCount("uncaughtException") > 1) return;
    if (decided === null) endWith(uncaught(error, origin === "unhandledRejection"));
    process.exit();
  });
  return { decide: (code) => void (decided = code) };
}

function exited(code: number): UserCodeEnd {
  const message = `user code ended the process with process.exit(${code}) before the command was done; return or throw instead`;
  // Made inside of that call: the stack says who made it.
  return new UserCodeEnd(message, new Error("process.exit was called here").stack ?? null);
}

function neverSettled(): UserCodeEnd {
  const message =
    "the process had nothing left to do before the command was done; an `await` in a job file or the config file, " +
    "outside of any function, never settles; remove it";
  return new UserCodeEnd(message);
}

/** What Node calls a rejection with something that is no error. */
const NO_ERROR = /The promise rejected with the reason "(.*)"\.$/s;

function uncaught(error: unknown, isRejection: boolean): UserCodeEnd {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
  const bare = NO_ERROR.exec(message)?.[1];
  const said = bare ?? `${name}: ${message}`;
  const what = isRejection
    ? "user code ended the process: no code handles the rejection of a promise"
    : "user code ended the process: no code catches an error";
  return new UserCodeEnd(`${what} (${said}); await the promise, or catch the error`, stack ?? null);
}
