// How an error is told: one line on stderr, one document on stdout for those who asked for JSON, one exit code.
import { isRedriveError } from "../core/errors.ts";
import { jsonText } from "../queue/json-form.ts";
import { complaintOf, EXIT } from "./exit.ts";
import type { Io } from "./io.ts";
import { paintFor } from "./paint.ts";
import { masked, safeText } from "./safe-text.ts";

/** What is needed to tell of an error. */
export type Told = Pick<Io, "stdout" | "stderr" | "env">;

/** Tells of the error and returns the exit code that goes with it. */
export function complain(error: unknown, io: Told, json: boolean): number {
  const { exit, code, message, stack } = complaintOf(error);
  if (exit === EXIT.ok) return exit;
  const safe = masked(safeText(message));
  const paint = paintFor(io.stderr, io.env);
  io.stderr.write(`${paint("red", "error:")} ${safe}\n`);
  if (stack !== null && io.env.REDRIVE_LOG === "debug") io.stderr.write(`${masked(safeText(stack))}\n`);
  const isAnswered = isRedriveError(error) && error.details.answered === true;
  if (json && !isAnswered) io.stdout.write(`${jsonText({ error: { code, message: safe } })}\n`);
  return exit;
}
