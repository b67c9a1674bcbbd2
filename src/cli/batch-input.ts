// The items of `redrive batch`: a file, stdin, or the variable JOB_INPUT, as the old orchestrator took them.
import { invalid } from "../core/options.ts";
import { type Flags, textual } from "./command.ts";
import type { Io } from "./io.ts";
import { formatOf, itemsOf, openInput, type PlacedRecord, recordsOf } from "./records-in.ts";

/** The items as JSON texts, in their order. */
export async function batchItems(io: Io, flags: Flags): Promise<string[]> {
  const input = textual(flags.input);
  const variable = io.env.JOB_INPUT;
  if (input === undefined && (variable === undefined || variable.trim() === ""))
    throw invalid("input", "a file, - for stdin, or a JSON array in JOB_INPUT", undefined, "pass --input FILE");
  const records = input === undefined ? itemsOf(variable as string, "JOB_INPUT") : await recordsIn(io, input, flags);
  const items: string[] = [];
  for await (const { text } of records) items.push(text);
  return items;
}

/** Where neither a flag nor the name of the file says how it is written, a bracket at the start means a JSON array. */
async function recordsIn(
  io: Io,
  input: string,
  flags: Flags,
): Promise<AsyncIterable<PlacedRecord> | Iterable<PlacedRecord>> {
  const stream = openInput(io, input);
  const said = textual(flags.format);
  if (said !== undefined || /\.(csv|json|jsonl|ndjson)$/i.test(input)) return recordsOf(stream, formatOf(said, input));
  const parts: Buffer[] = [];
  for await (const chunk of stream) parts.push(Buffer.from(chunk));
  const text = Buffer.concat(parts).toString("utf8");
  return text.trimStart().startsWith("[") ? itemsOf(text) : recordsOf(once(text), "ndjson");
}

async function* once(text: string): AsyncGenerator<string> {
  yield text;
}
