// The items of `redrive batch`: from a file, from stdin, or from the variable JOB_INPUT, which the old orchestrator
// used.
import { isRedriveError, RedriveError } from "../core/errors.ts";
import { invalid } from "../core/options.ts";
import { checkPayloadText } from "../core/payload.ts";
import { type Flags, textual } from "./command.ts";
import type { Io } from "./io.ts";
import { formatOf, itemsOf, openInput, type PlacedRecord, recordsOf } from "./records-in.ts";

/** The items as JSON texts, in their order. */
export async function batchItems(io: Io, flags: Flags): Promise<string[]> {
  const input = textual(flags.input);
  const variable = io.env.JOB_INPUT;
  if (input === undefined && (variable === undefined || variable.trim() === ""))
    throw invalid("input", "a file, - for stdin, or a JSON array in JOB_INPUT", undefined, "pass --input FILE");
  if (input === undefined && !["json", undefined].includes(textual(flags.format)))
    throw invalid("format", "json or none, because JOB_INPUT is a JSON array", flags.format, "leave it out");
  const records = input === undefined ? itemsOf(variable as string, "JOB_INPUT") : await recordsIn(io, input, flags);
  const items: string[] = [];
  for await (const record of records) {
    checkItem(record);
    items.push(record.text);
  }
  return items;
}

/**
 * Refuses an item that the store would refuse; found later, it would leave a run with only its first items enqueued.
 */
function checkItem({ text, place }: PlacedRecord): void {
  try {
    checkPayloadText(text);
  } catch (error) {
    if (!isRedriveError(error)) throw error;
    throw new RedriveError(error.code, `${place}: ${error.message.replace(/^payload: /, "")}`, { cause: error });
  }
}

/** Reads a file whose format neither a flag nor its name tells: a bracket at the start means a JSON array. */
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
  const bytes = Buffer.concat(parts);
  return recordsOf(once(bytes), bytes.toString("utf8").trimStart().startsWith("[") ? "json" : "ndjson");
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
