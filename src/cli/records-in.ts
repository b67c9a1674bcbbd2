// Reads records from a file, from stdin, or from a query, one at a time, each with its place. Memory use follows the
// longest record.
import { createReadStream, existsSync, openSync, statSync } from "node:fs";
import { extname, resolve } from "node:path";
import { messageOf } from "../core/error-shape.ts";
import { RedriveError } from "../core/errors.ts";
import { invalid } from "../core/options.ts";
import { csvRows } from "./csv-rows.ts";
import type { Io } from "./io.ts";
import { linesOf } from "./ndjson.ts";
import { keyIn } from "./record-key.ts";

/** The formats of records. */
export const RECORD_FORMATS = ["ndjson", "csv", "json"] as const;
/** One of `RECORD_FORMATS`. */
export type RecordFormat = (typeof RECORD_FORMATS)[number];

/** A record as JSON text, and its place in the input: `line 3`, `item 3`. */
export interface PlacedRecord {
  readonly text: string;
  readonly place: string;
}

const ENDINGS: Readonly<Record<string, RecordFormat>> = {
  ".ndjson": "ndjson",
  ".jsonl": "ndjson",
  ".csv": "csv",
  ".json": "json",
};
/** A JSON array is read as a whole, up to this size; longer input must be NDJSON. */
const ARRAY_BYTES = 64 * 1_048_576;

/** The format of an input: as given, else by the file extension, else NDJSON. */
export function formatOf(said: string | undefined, input: string, flag = "format"): RecordFormat {
  const known = RECORD_FORMATS.find((format) => format === said);
  if (said !== undefined && known === undefined)
    throw invalid(flag, RECORD_FORMATS.join(", "), said, "use one of these");
  return known ?? ENDINGS[extname(input).toLowerCase()] ?? "ndjson";
}

/**
 * The bytes of a file, or of stdin for `-`. Opens the file at once, so that no work starts for a file that cannot be
 * read.
 */
export function openInput(
  { stdin, cwd }: Pick<Io, "stdin" | "cwd">,
  input: string,
): AsyncIterable<Uint8Array | string> {
  if (input === "-") return stdin;
  const path = resolve(cwd, input);
  const remedy = remedyFor(path);
  if (remedy !== null) throw invalid("input", "a file, or - for stdin", input, remedy);
  try {
    return bytesOf(path, openSync(path, "r"));
  } catch (cause) {
    const message = `input: expected a readable file; got ${JSON.stringify(input)} (${messageOf(cause)}); check its rights`;
    throw new RedriveError("invalid_argument", message, { cause });
  }
}

/** What to do about an input that is not a regular file; null for a regular file. */
function remedyFor(path: string): string | null {
  if (!existsSync(path)) return "there is no such file; check the path";
  const file = statSync(path);
  if (file.isFile()) return null;
  if (file.isDirectory()) return "it is a folder; name a file in it";
  return `it is ${file.isFIFO() ? "a named pipe" : "a device"}; send its content to stdin and pass -`;
}

async function* bytesOf(path: string, fd: number): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(path, { fd }) as AsyncIterable<Uint8Array>;
  } catch (cause) {
    const message = `input: expected to read ${path} to its end; got ${messageOf(cause)}; check the disk and run the command again`;
    throw new RedriveError("aborted", message, { cause });
  }
}

/** The records of a stream. */
export async function* recordsOf(
  stream: AsyncIterable<Uint8Array | string>,
  format: RecordFormat,
): AsyncGenerator<PlacedRecord> {
  if (format === "csv")
    for await (const { record, line } of csvRows(stream)) yield { text: JSON.stringify(record), place: `line ${line}` };
  else if (format === "json") yield* itemsOf(await wholeOf(stream));
  else for await (const { number, text } of linesOf(stream)) yield { text, place: `line ${number}` };
}

/** The items of a JSON array. */
export function* itemsOf(text: string, name = "input"): Generator<PlacedRecord> {
  let items: unknown;
  try {
    items = JSON.parse(text);
  } catch (cause) {
    const message = `${name}: expected a JSON array; got something else (${messageOf(cause)}); check its brackets, quotes and commas`;
    throw new RedriveError("invalid_argument", message, { cause });
  }
  if (!Array.isArray(items)) throw invalid(name, "a JSON array", items, "put brackets around what it holds");
  let number = 0;
  for (const item of itemTexts(text)) yield { text: item, place: `item ${++number}` };
}

async function wholeOf(stream: AsyncIterable<Uint8Array | string>): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    const part = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    parts.push(part);
    bytes += part.length;
    if (bytes > ARRAY_BYTES)
      throw invalid(
        "input",
        `a JSON array of at most ${ARRAY_BYTES} bytes`,
        "more",
        "write one record per line (NDJSON)",
      );
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(parts));
  } catch (cause) {
    throw new RedriveError("invalid_argument", "input: expected UTF-8; got other bytes; convert the file", { cause });
  }
}

/** The parsed record; throws with its place where it is not JSON. */
export function parsedRecord({ text, place }: PlacedRecord): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const message = `${place}: expected JSON; got something else (${messageOf(cause)})`;
    throw new RedriveError("invalid_argument", message, { cause });
  }
}

/** The id in a field of a record; throws with its place where there is none. */
export function idIn(record: PlacedRecord, field: string): string {
  if (record.text.trimStart().startsWith("["))
    throw invalid(record.place, "a JSON object", [], "if the whole input is one, pass --format json");
  const remedy = "add it, or name the field of the id with --id-field";
  return keyIn(parsedRecord(record), field, { place: record.place, remedy });
}

/** Splits the text of a valid JSON array into the texts of its items, byte for byte: printing them again would round long numbers. */
function* itemTexts(array: string): Generator<string> {
  let depth = 0;
  let from = 0;
  for (let at = 0; at < array.length; at++) {
    const sign = array[at];
    if (sign === '"') at = endOfText(array, at);
    else if (sign === "[" || sign === "{") {
      depth += 1;
      if (depth === 1) from = at + 1;
    } else if (sign === "]" || sign === "}" || (sign === "," && depth === 1)) {
      if (sign !== ",") depth -= 1;
      if (depth > 1 || (depth === 1 && sign !== ",")) continue;
      const text = array.slice(from, at).trim();
      if (text !== "") yield text;
      from = at + 1;
    }
  }
}

/** The position at which the string that begins here ends. */
function endOfText(array: string, begin: number): number {
  let at = begin + 1;
  while (array[at] !== '"' && at < array.length) at += array[at] === "\\" ? 2 : 1;
  return at;
}
