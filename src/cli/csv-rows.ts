// Reads the rows of a CSV with a header, one at a time, each with its line number, up to the first invalid row. Memory
// use follows the longest row, which is bounded.
import { isUtf8 } from "node:buffer";
import { JOB_BOUNDS } from "../core/new-job.ts";
import { badLine } from "./ndjson.ts";

/** A row by the names of its columns; every value is text. */
export interface CsvRow {
  readonly record: Readonly<Record<string, string>>;
  readonly line: number;
}

/** What the parser reports with a row, and with an error. */
interface Info {
  readonly lines: number;
  readonly empty_lines: number;
  readonly error?: Error;
}

const LINE_FEED = 0x0a;
const MOST_BYTES = JOB_BOUNDS.payloadBytesMost;

/** The rows of a stream of bytes. */
export async function* csvRows(stream: AsyncIterable<Uint8Array | string>): AsyncGenerator<CsvRow> {
  const { parse } = await import("csv-parse");
  let last: Info = { lines: 1, empty_lines: 0 };
  let rows: (Info & Pick<CsvRow, "record">)[] = [];
  const parser = parse({
    columns: namedOnce,
    bom: true,
    skip_empty_lines: true,
    max_record_size: MOST_BYTES,
    // We report a row with the wrong number of values ourselves.
    relax_column_count: true,
    // The parser drops rows that it still holds when it fails, so we collect them here.
    on_record(record: CsvRow["record"], info) {
      last = info;
      rows.push({ ...info, record });
      return null;
    },
  });
  parser.on("error", () => undefined);
  const fed = (bytes: Uint8Array | null): Promise<unknown> =>
    new Promise((resolve) => (bytes ? parser.write(bytes, resolve) : parser.end(resolve)));
  const taken = function* (before = Number.POSITIVE_INFINITY): Generator<CsvRow> {
    const all = rows;
    rows = [];
    for (const { record, lines, error } of all) {
      if (lines >= before) return;
      if (error) throw badLine(lines, `expected as many values as the header has; ${error.message}`);
      yield { record, line: lines };
    }
  };
  const bad: Bad = { line: null };
  for await (const bytes of untilBad(stream, bad)) {
    const error = await fed(bytes);
    yield* taken();
    if (error) throw rowError(error, last);
  }
  const error = await fed(null);
  yield* taken(bad.line ?? undefined);
  if (bad.line !== null) throw badLine(bad.line, "expected UTF-8; got other bytes; convert the file");
  if (error) throw rowError(error, last);
}

/**
 * The parser's error about a record, at the line where the record begins: the lines after it may all be within its open
 * quote.
 */
function rowError(error: unknown, last: Info): unknown {
  const { code, lines, empty_lines, header, message } = error as Info & Record<"code" | "header" | "message", unknown>;
  if (typeof code !== "string" || !code.startsWith("CSV_")) return error;
  const begin = header === true ? 1 : last.lines + 1 + empty_lines - last.empty_lines;
  if (code === "CSV_QUOTE_NOT_CLOSED")
    return badLine(begin, "expected CSV; got a quote that is opened and not closed; close it", error);
  if (code === "CSV_MAX_RECORD_SIZE") {
    const said = `expected a record of at most ${MOST_BYTES} bytes; got more; close its quote, or split it`;
    return badLine(begin, said, error);
  }
  return badLine(lines ?? begin, `expected CSV; ${String(message)}`, error);
}

/** Refuses two columns of one name: the values of the first would be lost. */
function namedOnce(header: string[]): string[] {
  const twice = header.find((name, at) => header.indexOf(name) < at);
  if (twice === undefined) return header;
  throw badLine(1, `expected distinct column names; got ${JSON.stringify(twice)} twice; rename one`);
}

/** The first line that is not UTF-8, once it is found. */
interface Bad {
  line: number | null;
}

/** The same bytes, up to the first line that is not UTF-8: the parser would silently replace its characters. */
async function* untilBad(stream: AsyncIterable<Uint8Array | string>, bad: Bad): AsyncGenerator<Uint8Array> {
  let lines = 0;
  let rest: Uint8Array = new Uint8Array();
  const good = (bytes: Uint8Array): Uint8Array => {
    const isGood = isUtf8(bytes);
    for (let at = 0; at < bytes.length; ) {
      const end = bytes.indexOf(LINE_FEED, at) + 1 || bytes.length;
      if (!isGood && !isUtf8(bytes.subarray(at, end))) {
        bad.line = lines + 1;
        return bytes.subarray(0, at);
      }
      if (bytes[end - 1] === LINE_FEED) lines += 1;
      at = end;
    }
    return bytes;
  };
  for await (const chunk of stream) {
    const bytes = Buffer.concat([rest, typeof chunk === "string" ? Buffer.from(chunk) : chunk]);
    const end = lastCharacter(bytes);
    rest = bytes.subarray(end);
    yield good(bytes.subarray(0, end));
    if (bad.line !== null) return;
  }
  yield good(rest);
}

/** Where the last character begins; its remaining bytes may come with the next chunk. */
function lastCharacter(bytes: Uint8Array): number {
  let at = bytes.length - 1;
  // A character has up to three bytes after its first.
  while (at > bytes.length - 4 && ((bytes[at] ?? 0) & 0xc0) === 0x80) at -= 1;
  return Math.max(0, at);
}
