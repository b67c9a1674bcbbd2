// Reads the body of a request: whole with a limit, or line by line in flat memory.
import { isRedriveError } from "../core/errors.ts";
import { skipSpace, skipString, skipValue } from "../core/recovery/json-text.ts";
import type { System } from "../system/system.ts";
import { HttpError } from "./http-error.ts";

/** How deep a body may be nested, besides the payload in it, which the library checks. */
const DEPTH_MOST = 80;

/** How long a body may take that is read whole. */
const BODY_MS = 30_000;

/** The bytes of the body as text; refused where it is longer than it may be, comes too slowly, or is not UTF-8. */
export async function bodyText(request: Request, mostBytes: number, system: Pick<System, "after">): Promise<string> {
  const said = Number(request.headers.get("content-length") ?? 0);
  if (said > mostBytes) throw tooLarge(mostBytes);
  // The header is the length of the body: nothing longer comes.
  const reading = said > 0 ? request.arrayBuffer() : allBytes(request.body, mostBytes);
  let cancel = (): void => undefined;
  const late = new Promise<null>((resolve) => (cancel = system.after(BODY_MS, () => resolve(null))));
  try {
    const bytes = await Promise.race([reading, late]);
    if (bytes === null) throw tooSlow();
    if (bytes.byteLength > mostBytes) throw tooLarge(mostBytes);
    return decoded(bytes);
  } finally {
    cancel();
    reading.catch(() => undefined);
  }
}

function tooSlow(): HttpError {
  return new HttpError(
    "request_timeout",
    `body: expected within ${BODY_MS / 1_000} s; it is not here; send it faster`,
    {
      headers: { connection: "close" },
    },
  );
}

async function allBytes(body: ReadableStream<Uint8Array> | null, mostBytes: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  if (body === null) return new Uint8Array();
  for await (const part of body as unknown as AsyncIterable<Uint8Array>) {
    length += part.byteLength;
    // Leaving the loop cancels the stream: the rest is not read.
    if (length > mostBytes) throw tooLarge(mostBytes);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

const UTF8 = new TextDecoder("utf-8", { fatal: true });

function decoded(bytes: Uint8Array | ArrayBuffer): string {
  try {
    return UTF8.decode(bytes);
  } catch {
    throw new HttpError("invalid_argument", "body: expected UTF-8; got other bytes; convert it");
  }
}

function tooLarge(mostBytes: number): HttpError {
  return new HttpError("payload_too_large", `body: expected at most ${mostBytes} bytes; got more; send less`);
}

/** The body as a value. */
export function parsedBody(text: string): unknown {
  checkDepth(text);
  try {
    return JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : "not JSON";
    throw new HttpError(
      "invalid_argument",
      `body: expected JSON; got a text that is not (${why.slice(0, 120)}); correct it`,
    );
  }
}

/** Refuses a text that is nested deeper than any document of the API. */
function checkDepth(text: string): void {
  if (!hasMany(text, "{") && !hasMany(text, "[")) return;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 34) at = skipString(text, at) - 1;
    else if (code === 123 || code === 91) depth += 1;
    else if (code === 125 || code === 93) depth -= 1;
    if (depth > DEPTH_MOST)
      throw new HttpError(
        "payload_too_large",
        `body: expected a nesting of at most ${DEPTH_MOST} levels; got more; flatten it`,
      );
  }
}

/** True where a text has more of a character than it may be deep; to look for them costs less than to follow the text. */
function hasMany(text: string, char: string): boolean {
  let many = 0;
  for (let at = text.indexOf(char); at >= 0; at = text.indexOf(char, at + 1)) if (++many > DEPTH_MOST / 2) return true;
  return false;
}

/** The text of a field of an object, byte for byte; undefined where it has none. The text was parsed before. */
export function fieldText(text: string, field: string): string | undefined {
  let from = skipSpace(text, 0) + 1;
  let found: string | undefined;
  for (;;) {
    const nameStart = skipSpace(text, from);
    if (text[nameStart] !== '"') return found;
    const nameEnd = skipString(text, nameStart);
    const start = skipSpace(text, skipSpace(text, nameEnd) + 1);
    const end = skipValue(text, start);
    // The last one counts, as in JSON.parse.
    if (JSON.parse(text.slice(nameStart, nameEnd)) === field) found = text.slice(start, end);
    const behind = skipSpace(text, end);
    if (text[behind] !== ",") return found;
    from = behind + 1;
  }
}

/** A line of a body; an error where it is no text or too long. */
export interface BodyLine {
  readonly line: number;
  readonly text: string;
  readonly error: HttpError | null;
}

/** The lines of a body of any length, as many at a time as have come; memory holds one line and one piece of the body. */
export async function* bodyLines(request: Request, mostBytes: number): AsyncGenerator<readonly BodyLine[]> {
  if (request.body === null) return;
  const lines = lineCutter(mostBytes);
  for await (const chunk of request.body as unknown as AsyncIterable<Uint8Array>) yield lines.take(chunk);
  yield lines.take(NEWLINE);
}

const NEWLINE = new Uint8Array([10]);

/** Cuts pieces of a body into lines. */
function lineCutter(mostBytes: number): { take(chunk: Uint8Array): BodyLine[] } {
  let rest: Uint8Array[] = [];
  let length = 0;
  let isTooLong = false;
  let line = 0;
  const keep = (part: Uint8Array): void => {
    length += part.byteLength;
    // What is too long is not kept, only its end is looked for.
    if (length > mostBytes) [rest, isTooLong] = [[], true];
    else if (part.byteLength > 0) rest.push(part);
  };
  const one = (bytes: Uint8Array): BodyLine[] => {
    line += 1;
    if (bytes.byteLength > mostBytes) return [{ line, text: "", error: tooLongLine(line, mostBytes) }];
    try {
      const text = decoded(bytes);
      return text.trim() === "" ? [] : [{ line, text, error: null }];
    } catch (error) {
      return [{ line, text: "", error: error as HttpError }];
    }
  };
  return {
    take(chunk) {
      const last = chunk.lastIndexOf(10);
      if (last < 0) return (keep(chunk), []);
      const found: BodyLine[] = [];
      let from = 0;
      if (length > 0) {
        const end = chunk.indexOf(10);
        keep(chunk.subarray(0, end));
        if (isTooLong) found.push({ line: (line += 1), text: "", error: tooLongLine(line, mostBytes) });
        else found.push(...one(rest.length === 1 ? (rest[0] as Uint8Array) : Buffer.concat(rest)));
        from = end + 1;
      }
      if (from <= last) found.push(...between(chunk.subarray(from, last), one, () => (line += 1)));
      [rest, length, isTooLong] = [[], 0, false];
      keep(chunk.subarray(last + 1));
      return found;
    },
  };
}

/** Whole lines at once: a line alone is decoded only where one of them is no text. */
function between(bytes: Uint8Array, one: (bytes: Uint8Array) => BodyLine[], next: () => number): BodyLine[] {
  try {
    const texts = UTF8.decode(bytes).split("\n");
    return texts.flatMap((text) => {
      const line = next();
      return text === "" || text.trim() === "" ? [] : [{ line, text, error: null }];
    });
  } catch {
    const found: BodyLine[] = [];
    for (let from = 0; from <= bytes.byteLength; ) {
      const at = bytes.indexOf(10, from);
      const end = at < 0 ? bytes.byteLength : at;
      found.push(...one(bytes.subarray(from, end)));
      from = end + 1;
    }
    return found;
  }
}

function tooLongLine(line: number, mostBytes: number): HttpError {
  return new HttpError("payload_too_large", `line ${line}: expected at most ${mostBytes} bytes; got more; shorten it`);
}

/** True for an error of the library or of HTTP, which the caller may see. */
export function isSayable(error: unknown): error is Error {
  return error instanceof HttpError || isRedriveError(error);
}
