// Reports an error: one line on stderr, one document on stdout under `--json`, and one exit code.
import { isRedriveError } from "../core/errors.ts";
import { jsonText } from "../operate/json-form.ts";
import { put, shownAs } from "../system/output.ts";
import { complaintOf, EXIT } from "./exit.ts";
import { cliJsonLog } from "./cli-log.ts";
import type { Io } from "./io.ts";
import { paintFor } from "./paint.ts";

/** What is needed to report an error. */
export type Told = Pick<Io, "stdout" | "stderr" | "env"> & {
  /** True where log lines are JSON; the error is one of them. */
  readonly isJsonLog?: boolean;
};

/** Reports the error and returns its exit code. */
export function complain(error: unknown, io: Told, json: boolean): number {
  const { exit, code, message, stack } = complaintOf(error);
  if (exit === EXIT.ok) return exit;
  const safe = shownAs("line", message);
  const shownStack = io.env.REDRIVE_LOG === "debug" ? stack : null;
  if (io.isJsonLog === true)
    cliJsonLog(io, "error").error({ code, exit, ...(shownStack !== null && { stack: shownStack }) }, safe);
  else {
    const paint = paintFor(io.stderr, io.env);
    put(io.stderr, "line", `${paint("red", "error:")} ${safe}\n`);
    if (shownStack !== null) put(io.stderr, "text", `${shownStack}\n`);
  }
  const isAnswered = isRedriveError(error) && error.details.answered === true;
  if (json && !isAnswered) put(io.stdout, "json", `${jsonText({ error: { code, message: safe } })}\n`);
  return exit;
}
