// Splits a stream into numbered lines, one at a time; memory use follows the longest line, which is bounded.
import { RedriveError } from "../core/errors.ts";
import { JOB_BOUNDS } from "../core/new-job.ts";

/** A line that is not blank, counted from 1. */
export interface NumberedLine {
  readonly number: number;
  readonly text: string;
}

const MOST_BYTES = JOB_BOUNDS.payloadBytesMost;
const LINE_FEED = 0x0a;

/** Splits a stream of bytes into lines of valid UTF-8. */
export async function* linesOf(stream: AsyncIterable<Uint8Array | string>): AsyncGenerator<NumberedLine> {
  let number = 0;
  let parts: Uint8Array[] = [];
  let bytes = 0;
  const take = (): NumberedLine | null => {
    number += 1;
    const text = decoded(parts, number);
    parts = [];
    bytes = 0;
    return text.trim() === "" ? null : { number, text };
  };
  for await (const chunk of stream) {
    let rest: Uint8Array = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    for (let end = rest.indexOf(LINE_FEED); end >= 0; end = rest.indexOf(LINE_FEED)) {
      parts.push(rest.subarray(0, end));
      rest = rest.subarray(end + 1);
      const line = take();
      if (line) yield line;
    }
    if (rest.length > 0) parts.push(rest);
    bytes += rest.length;
    if (bytes > MOST_BYTES) throw badLine(number + 1, `expected at most ${MOST_BYTES} bytes; it has more; split it`);
  }
  if (bytes === 0) return;
  const line = take();
  if (line) yield line;
}

/** The error for a line, with its number. */
export function badLine(number: number, message: string, cause?: unknown): RedriveError {
  return new RedriveError("invalid_argument", `line ${number}: ${message}`, { cause });
}

/** One decoder for the first line, which may begin with a byte order mark, and one for the others. */
const FIRST = new TextDecoder("utf-8", { fatal: true });
const OTHERS = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decoded(parts: readonly Uint8Array[], number: number): string {
  try {
    const bytes = parts.length === 1 ? parts[0] : Buffer.concat(parts);
    const text = (number === 1 ? FIRST : OTHERS).decode(bytes);
    return text.endsWith("\r") ? text.slice(0, -1) : text;
  } catch (cause) {
    throw badLine(number, "expected UTF-8; got other bytes; convert the file", cause);
  }
}
