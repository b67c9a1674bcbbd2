// Reads the body of a request: whole with a limit, or line by line in flat memory.
import { isRedriveError } from "../core/errors.ts";
import { skipSpace, skipString, skipValue } from "../core/recovery/json-text.ts";
import { HttpError } from "./http-error.ts";

/** How deep a body may be nested, besides the payload in it, which the library checks. */
const DEPTH_MOST = 80;

/** The bytes of the body as text; refused where it is longer than it may be, or is not UTF-8. */
export async function bodyText(request: Request, mostBytes: number): Promise<string> {
  const said = Number(request.headers.get("content-length") ?? 0);
  if (said > mostBytes) throw tooLarge(mostBytes);
  if (request.body === null) return "";
  // The header is the length of the body: nothing longer comes.
  const bytes = said > 0 ? new Uint8Array(await request.arrayBuffer()) : await allBytes(request.body, mostBytes);
  if (bytes.byteLength > mostBytes) throw tooLarge(mostBytes);
  return decoded(bytes);
}

async function allBytes(body: ReadableStream<Uint8Array>, mostBytes: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of body as unknown as AsyncIterable<Uint8Array>) {
    length += part.byteLength;
    // Leaving the loop cancels the stream: the rest is not read.
    if (length > mostBytes) throw tooLarge(mostBytes);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

function decoded(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
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

/** The lines of a body of any length, without empty ones; a line may be as long as a whole body of another route. */
export async function* bodyLines(
  request: Request,
  mostBytes: number,
): AsyncGenerator<{ readonly line: number; readonly text: string }> {
  if (request.body === null) return;
  let parts: Uint8Array[] = [];
  let length = 0;
  let line = 0;
  const whole = (): string => {
    const text = decoded(parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts));
    parts = [];
    length = 0;
    line += 1;
    return text;
  };
  for await (const chunk of request.body as unknown as AsyncIterable<Uint8Array>) {
    let from = 0;
    for (;;) {
      const at = chunk.indexOf(10, from);
      const part = chunk.subarray(from, at < 0 ? undefined : at);
      length += part.byteLength;
      if (length > mostBytes)
        throw new HttpError(
          "payload_too_large",
          `line ${line + 1}: expected at most ${mostBytes} bytes; got more; shorten it`,
        );
      if (part.byteLength > 0) parts.push(part);
      if (at < 0) break;
      const text = whole();
      if (text.trim() !== "") yield { line, text };
      from = at + 1;
    }
  }
  if (parts.length === 0) return;
  const text = whole();
  if (text.trim() !== "") yield { line, text };
}

/** True for an error of the library or of HTTP, which the caller may see. */
export function isSayable(error: unknown): error is Error {
  return error instanceof HttpError || isRedriveError(error);
}
