// The exit codes that scripts rely on, and the one line that goes with each error.
import { CommanderError } from "commander";
import { type ErrorCode, isRedriveError } from "../core/errors.ts";
import { oneLine } from "../core/safe-text.ts";

/** The exit codes that scripts rely on; the public list also stands in the CLI reference. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  store: 3,
  refused: 4,
  userCode: 5,
  bug: 70,
  replace: 75,
  config: 78,
  SIGINT: 130,
  SIGTERM: 143,
  SIGHUP: 143,
} as const;

/** The list of exit codes at the end of `--help`. */
export const EXIT_HELP = `
Exit codes:
  0    success
  1    finished, but something failed permanently
  2    wrong arguments
  3    store not reachable or not usable, or input or output failed before
       its end
  4    refused, e.g. the key is taken by another payload
  5    user code ended the process: process.exit, an uncaught error, or a
       promise that never settles
  75   worker: replace this process, half of its slots are lost to handlers
       that ignore their abort signal
  78   configuration refused
  130  interrupted (143 by SIGTERM or SIGHUP)`;

const BY_CODE: Readonly<Partial<Record<ErrorCode, number>>> = {
  invalid_argument: EXIT.usage,
  invalid_payload: EXIT.usage,
  payload_too_large: EXIT.usage,
  not_found: EXIT.failed,
  conflict: EXIT.refused,
  illegal_transition: EXIT.refused,
  store_unavailable: EXIT.store,
  store_unusable: EXIT.store,
  // A source of records that failed before its end, or results that could not be written.
  aborted: EXIT.store,
  config_refused: EXIT.config,
};

/** An error as the caller sees it. */
export interface Complaint {
  readonly exit: number;
  readonly code: string;
  readonly message: string;
  /** Set only for a bug in Redrive or in user code, and shown only on request. */
  readonly stack: string | null;
}

/** User code ended the process before the command was done. */
export class UserCodeEnd extends Error {
  /** The place in the user's code, if known. */
  readonly at: string | null;

  constructor(message: string, at: string | null = null) {
    super(message);
    this.at = at;
  }
}

/** The exit code and message of an error. */
export function complaintOf(error: unknown): Complaint {
  if (error instanceof CommanderError) {
    const message = error.message.replace(/^error: /, "");
    return { exit: error.exitCode === 0 ? EXIT.ok : EXIT.usage, code: "invalid_argument", message, stack: null };
  }
  if (error instanceof UserCodeEnd) {
    const where = error.at === null ? "" : " (REDRIVE_LOG=debug shows where)";
    return { exit: EXIT.userCode, code: "user_code", message: oneLine(error.message) + where, stack: error.at };
  }
  const exit = isRedriveError(error) ? BY_CODE[error.code] : undefined;
  if (isRedriveError(error) && exit !== undefined)
    return { exit, code: error.code, message: oneLine(error.message), stack: null };
  const { said, stack } =
    error instanceof Error ? { said: error.message, stack: error.stack ?? null } : { said: String(error), stack: null };
  const message = `this is a bug of Redrive: ${oneLine(said)} (REDRIVE_LOG=debug shows where)`;
  return { exit: EXIT.bug, code: "bug", message, stack };
}
