// Reports an error: one line on stderr, one document on stdout under `--json`, and one exit code.
import { isRedriveError } from "../core/errors.ts";
import { jsonText } from "../operate/json-form.ts";
import { put, shownAs } from "../system/output.ts";
import { complaintOf, EXIT } from "./exit.ts";
import type { Io } from "./io.ts";
import { paintFor } from "./paint.ts";

/** What is needed to report an error. */
export type Told = Pick<Io, "stdout" | "stderr" | "env">;

/** Reports the error and returns its exit code. */
export function complain(error: unknown, io: Told, json: boolean): number {
  const { exit, code, message, stack } = complaintOf(error);
  if (exit === EXIT.ok) return exit;
  const safe = shownAs("line", message);
  const paint = paintFor(io.stderr, io.env);
  put(io.stderr, "line", `${paint("red", "error:")} ${safe}\n`);
  if (stack !== null && io.env.REDRIVE_LOG === "debug") put(io.stderr, "text", `${stack}\n`);
  const isAnswered = isRedriveError(error) && error.details.answered === true;
  if (json && !isAnswered) put(io.stdout, "json", `${jsonText({ error: { code, message: safe } })}\n`);
  return exit;
}
