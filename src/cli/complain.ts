// How an error is told: one line on stderr, one document on stdout for those who asked for JSON, one exit code.
import { isRedriveError } from "../core/errors.ts";
import { jsonText } from "../operate/json-form.ts";
import { put, shownAs } from "../system/output.ts";
import { complaintOf, EXIT } from "./exit.ts";
import type { Io } from "./io.ts";
import { paintFor } from "./paint.ts";

/** What is needed to tell of an error. */
export type Told = Pick<Io, "stdout" | "stderr" | "env">;

/** Tells of the error and returns the exit code that goes with it. */
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
