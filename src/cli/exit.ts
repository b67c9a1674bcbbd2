// How a command ends: the exit codes that scripts rely on, and the one line that goes with each error.
import { CommanderError } from "commander";
import { type ErrorCode, isRedriveError } from "../core/errors.ts";
import { oneLine } from "../core/safe-text.ts";

/** The exit codes of design.md, with 70 for a bug of ours and 75 for a worker that asks to be replaced. */
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

/** What people see about the codes at the end of `--help`. */
export const EXIT_HELP = `
Exit codes:
  0    all well
  1    finished, and something failed for good
  2    wrong arguments
  3    store not reachable or not usable, or the input or the output broke
       off in the middle
  4    refused, e.g. the key is taken by another payload
  5    user code ended the process: process.exit, an error that no code
       catches, a promise that never settles
  75   worker: replace me, half of the slots are lost to handlers that ignore
       their abort
  78   refused configuration
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
  // A source of records that broke off, or results that could not be written.
  aborted: EXIT.store,
  config_refused: EXIT.config,
};

/** An error as the outside hears of it. */
export interface Complaint {
  readonly exit: number;
  readonly code: string;
  readonly message: string;
  /** Only where code is wrong, ours or the user's, and only shown on request. */
  readonly stack: string | null;
}

/** User code has ended the process before the command was done. */
export class UserCodeEnd extends Error {
  /** Where in the user's code, if that is known. */
  readonly at: string | null;

  constructor(message: string, at: string | null = null) {
    super(message);
    this.at = at;
  }
}

/** What an error means for the caller. */
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
