// Reads the wait that a service asked for from headers and fields. An unreadable value is ignored; a readable one is
// bounded by the backoff, not here.

import { parseDuration } from "./duration.ts";
import { RetryAfterError } from "./errors.ts";
import { isA, nameOf, read, readPath } from "./error-shape.ts";

const HEADER_HOLDERS = [
  ["headers"],
  ["response", "headers"],
  ["$response", "headers"],
  ["responseHeaders"],
  ["metadata"],
];
/** Seconds from here on are a point in time (since 2001), not a wait of thirty years. */
const EPOCH_SECONDS = 1e9;
const EPOCH_MS = 1e12;
const WEEKDAY_FIRST = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? /;
const ISO_DATE = /^\d{4}-\d\d-\d\dT/;

/** A header of an error or response, from `Headers`, a `Map`, `AxiosHeaders`, gRPC metadata or a plain object. */
export function headerOf(error: unknown, name: string): string | undefined {
  for (const path of HEADER_HOLDERS) {
    const headers = readPath(error, ...path);
    if (headers === undefined || headers === null) continue;
    const found = firstText(read(headers, name)) ?? firstText(callGet(headers, name)) ?? anyCase(headers, name);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Milliseconds the error asks to wait, counted from `now`; undefined where it asks for none. */
export function retryAfterOf(error: unknown, now: number): number | undefined {
  const isMarker = nameOf(error) === "RetryAfterError" || isA(error, RetryAfterError);
  const asked = isMarker ? durationOrDate(read(error, "retryAfter"), now) : undefined;
  if (asked !== undefined) return asked;
  const ms = headerOf(error, "retry-after-ms");
  if (ms !== undefined && /^\d{1,13}(?:\.\d{1,9})?$/.test(ms)) return Math.ceil(Number(ms));
  return parseRetryAfter(headerOf(error, "retry-after"), now) ?? rateLimitReset(error, now);
}

/** Milliseconds of a `Retry-After` header: seconds, or an HTTP or ISO date relative to `now`; a past date is 0. */
export function parseRetryAfter(value: string | undefined, now: number): number | undefined {
  const text = value?.trim() ?? "";
  if (/^\d{1,10}(?:\.\d{1,9})?$/.test(text)) return secondsFrom(Number(text), now);
  if (text.length > 64) return undefined;
  let at = Number.NaN;
  if (ISO_DATE.test(text)) at = Date.parse(text);
  // The asctime form names no zone and means GMT; the parser would take it for local time.
  else if (WEEKDAY_FIRST.test(text)) at = Date.parse(/GMT|UTC|[+-]\d{4}$/.test(text) ? text : `${text} GMT`);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}

/** Whether the headers of a rate limit say that it is used up. */
export function rateLimitSpent(error: unknown): boolean {
  return headerOf(error, "x-ratelimit-remaining") === "0" || headerOf(error, "ratelimit-remaining") === "0";
}

function rateLimitReset(error: unknown, now: number): number | undefined {
  if (!rateLimitSpent(error)) return undefined;
  const reset = headerOf(error, "x-ratelimit-reset") ?? headerOf(error, "ratelimit-reset") ?? "";
  if (!/^\d{1,13}(?:\.\d{1,9})?$/.test(reset)) return undefined;
  return Number(reset) >= EPOCH_MS ? Math.max(0, Number(reset) - now) : secondsFrom(Number(reset), now);
}

function secondsFrom(seconds: number, now: number): number {
  return Math.max(0, Math.ceil(seconds >= EPOCH_SECONDS ? seconds * 1000 - now : seconds * 1000));
}

/** Our `RetryAfterError` carries a duration; an error of that name from another library carries a header's text. */
function durationOrDate(value: unknown, now: number): number | undefined {
  try {
    return parseDuration(value, "retryAfter");
  } catch {
    return parseRetryAfter(typeof value === "string" ? value : undefined, now);
  }
}

function firstText(value: unknown): string | undefined {
  const first = typeof value === "object" ? read(value, 0) : value;
  if (typeof first === "number") return String(first);
  return typeof first === "string" ? first.slice(0, 256) : undefined;
}

function callGet(headers: unknown, name: string): unknown {
  const get = read(headers, "get");
  try {
    return typeof get === "function" ? Reflect.apply(get, headers, [name]) : undefined;
  } catch {
    return undefined;
  }
}

function anyCase(headers: unknown, name: string): string | undefined {
  try {
    const key = Object.keys(headers ?? {}).find((candidate) => candidate.toLowerCase() === name);
    return key === undefined ? undefined : firstText(read(headers, key));
  } catch {
    return undefined;
  }
}
