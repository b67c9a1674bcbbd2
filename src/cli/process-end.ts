// Ends this process, in one place. If user code ends it before the command is done (process.exit, an uncaught error, a
// promise that never settles), the caller gets one line and exit code 5. Otherwise a `process.exit(0)` in a handler
// would make a half-done call look successful.
import { complain, type Told } from "./complain.ts";
import { UserCodeEnd } from "./exit.ts";

/** The way to end the process. */
export interface ProcessEnd {
  /** Decides the exit code: the call is done, whatever user code does from here on. */
  decide(code: number): void;
}

/**
 * Watches for the end of this process until it is decided. `json` tells whether an error also needs a document on
 * stdout.
 */
export function watchEnd(io: Told, json: () => boolean): ProcessEnd {
  let decided: number | null = null;
  let isIdle = false;
  const endWith = (end: UserCodeEnd): void => {
    decided = complain(end, io, json());
    process.exitCode = decided;
  };
  const exit = process.exit.bind(process);
  // Not only by a listener: user code may remove all listeners.
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
    // User code that listens itself has decided to continue.
    if (process.listenerCount("uncaughtException") > 1) return;
    if (decided === null) endWith(uncaught(error, origin === "unhandledRejection"));
    process.exit();
  });
  return { decide: (code) => void (decided = code) };
}

function exited(code: number): UserCodeEnd {
  const message = `user code ended the process with process.exit(${code}) before the command was done; return or throw instead`;
  // Created inside that call, so that the stack shows the caller.
  return new UserCodeEnd(message, new Error("process.exit was called here").stack ?? null);
}

function neverSettled(): UserCodeEnd {
  const message =
    "the process had nothing left to do before the command was done; an `await` in a job file or the config file, " +
    "outside any function, never settles; remove it";
  return new UserCodeEnd(message);
}

/** Node's message for a rejection with a value that is not an error. */
const NO_ERROR = /The promise rejected with the reason "(.*)"\.$/s;

function uncaught(error: unknown, isRejection: boolean): UserCodeEnd {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
  const bare = NO_ERROR.exec(message)?.[1];
  const said = bare ?? `${name}: ${message}`;
  const what = isRejection
    ? "user code ended the process: a promise was rejected and not handled"
    : "user code ended the process: an error was not caught";
  return new UserCodeEnd(`${what} (${said}); await the promise, or catch the error`, stack ?? null);
}
