// Reads the answers of a command that answers in lines. Any other line is treated as a log line.
import { fieldsFrom } from "../core/options.ts";
import type { BatchContext } from "./batch-handler.ts";

/** Reads a line of a command about items that have no outcome yet; returns what it was. */
export function hearLine(line: string, open: Set<string>, context: BatchContext): "outcome" | "end" | "other" {
  const message = objectFrom(line);
  if (message.end === true) return "end";
  const { id, status, result } = message;
  if (typeof id !== "string" || !open.has(id)) return "other";
  if (status === "started") context.started(id);
  else if (status === "done") context.done(id, result);
  else if (status === "transient") context.transient(id, errorFrom(message.error));
  else if (status === "permanent") context.permanent(id, errorFrom(message.error));
  else return "other";
  if (status !== "started") open.delete(id);
  return "outcome";
}

/** The error that a command reported: a text, or an object with name, message, stack and code. */
function errorFrom(told: unknown): Error {
  const fields = typeof told === "object" && told !== null ? (told as Record<string, unknown>) : { message: told };
  const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
  const message = text(fields.message) ?? (told === undefined ? "The command gave no reason." : JSON.stringify(told));
  const { code } = fields;
  return Object.assign(new Error(message), {
    name: text(fields.name) ?? "Error",
    stack: text(fields.stack),
    ...(typeof code === "string" || typeof code === "number" ? { code } : {}),
  });
}

function objectFrom(line: string): Readonly<Record<string, unknown>> {
  return line.trimStart().startsWith("{") ? fieldsFrom(line) : {};
}
