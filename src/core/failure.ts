// The stored form of any thrown value: name, message and stack as bounded text, and the fingerprint of its cause. It
// must never throw and never be slow: a failure that cannot be written would be a lost job.

import type { Judged } from "./classify-rules.ts";
import { linksOf, messageOf, nameOf, readText } from "./error-shape.ts";
import { fingerprint } from "./fingerprint.ts";
import { isFailed } from "./item-outcome.ts";
import type { Failure } from "./job.ts";

/** Message and stack are each cut to this many bytes of UTF-8. */
export const MAX_TEXT_BYTES = 8192;
const MAX_NAME_BYTES = 128;
/** The most that a long message takes of the stack text, so that the frames after it are kept. */
const MAX_HEAD = 1024;

/** The failure to store for a thrown or reported error, with the class and severity that `classify` found. */
export function failureFrom(given: unknown, judged: Judged): Failure {
  const thrown = isFailed(given) ? given.error : given;
  const links = linksOf(thrown);
  const name = cutText(nameOf(thrown), MAX_NAME_BYTES);
  const message = cutText(messageOf(thrown), MAX_TEXT_BYTES);
  const own = stackOf(thrown);
  const stack = own === null && links.length === 1 ? null : cutText(wholeStack(own, links), MAX_TEXT_BYTES);
  return {
    class: judged.class,
    severity: judged.severity,
    name,
    message,
    stack,
    fingerprint: fingerprint({ name, message, stack, class: judged.class, code: judged.code }),
    ...(judged.retryAfterMs === undefined ? {} : { retryAfterMs: judged.retryAfterMs }),
    ...(judged.delayMs === undefined ? {} : { delayMs: judged.delayMs }),
    ...(judged.code === undefined ? {} : { code: judged.code }),
  };
}

/** Any half of a surrogate pair, or U+0000; in nearly all texts there is none, which is found out fast. */
const UNUSUAL = new RegExp("[\\0\\uD800-\\uDFFF]");

/** The text for a column that people read: U+0000 shown as ␀, lone surrogates as U+FFFD. */
export function plainText(text: string): string {
  if (!UNUSUAL.test(text)) return text;
  return text.replaceAll("\u0000", "␀").replace(/[\uD800-\uDFFF]/gu, "\uFFFD");
}

/** The longest start of the text within so many bytes of UTF-8; characters are kept whole, lone surrogates kept. */
export function cutText(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text;
  let bytes = 0;
  let end = 0;
  while (end < text.length) {
    const point = text.codePointAt(end) ?? 0;
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    if (bytes > maxBytes) break;
    end += point < 0x10000 ? 1 : 2;
  }
  // In V8 a slice keeps the whole text in memory; the round trip through JSON copies the part.
  return end === text.length ? text : (JSON.parse(JSON.stringify(text.slice(0, end))) as string);
}

function wholeStack(own: string | null, links: readonly unknown[]): string {
  const head = own ?? `${nameOf(links[0])}: ${messageOf(links[0]).slice(0, MAX_HEAD)}`;
  const causes = links
    .slice(1)
    .map((cause) => stackOf(cause) ?? `${nameOf(cause)}: ${messageOf(cause).slice(0, MAX_HEAD)}`);
  return [head, ...causes].join("\nCaused by: ");
}

/** The stack text, a long message at its head shortened. */
function stackOf(thrown: unknown): string | null {
  const stack = readText(thrown, "stack");
  if (stack === undefined || stack === "") return null;
  const message = stack.length > MAX_TEXT_BYTES ? messageOf(thrown) : "";
  if (message.length <= MAX_HEAD) return stack.slice(0, MAX_TEXT_BYTES);
  const start = stack.slice(0, 2 * MAX_HEAD).indexOf(message.slice(0, MAX_HEAD));
  if (start < 0) return stack.slice(0, MAX_TEXT_BYTES);
  const frames = stack.slice(start + message.length, start + message.length + MAX_TEXT_BYTES);
  return `${stack.slice(0, start)}${cutText(message, MAX_HEAD)}…${frames}`;
}

/** A short text of anything thrown, for logs; never throws itself. */
export function textOf(thrown: unknown): string {
  return cutText(`${nameOf(thrown)}: ${messageOf(thrown)}`, MAX_TEXT_BYTES);
}
