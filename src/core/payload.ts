// Turns a value into the JSON text that stores keep, without losing anything. A value that JSON would silently drop or
// change (`undefined`, functions, dates, cycles, big integers) is refused with its path.
import { isRedriveError, RedriveError } from "./errors.ts";
import { jsonFault } from "./json-fault.ts";
import { byteLength, checkBytes, JOB_BOUNDS } from "./new-job.ts";

/** The JSON text of a payload; throws `invalid_payload` or `payload_too_large`. */
export function encodePayload(value: unknown, maxBytes: number = JOB_BOUNDS.payloadBytes): string {
  try {
    if (!isPlain(value, 1, { left: maxBytes })) check(value, "payload", 1, { above: new Set(), left: maxBytes });
  } catch (error) {
    if (isRedriveError(error)) throw error;
    throw refuse("payload", "a property that throws when it is read", "send plain data");
  }
  const text = JSON.stringify(value);
  checkBytes("payload", text, maxBytes);
  return text;
}

/** The JSON text of a handler's result; one that is too large or not JSON is replaced by a marker that says so. */
export function encodeResult(value: unknown): string | null {
  if (value === undefined) return null;
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    text = undefined;
  }
  if (text === undefined) return JSON.stringify({ $unserializable: typeof value });
  const bytes = byteLength(text);
  return bytes <= JOB_BOUNDS.resultBytes ? text : JSON.stringify({ $truncated: true, bytes });
}

/**
 * Checks a payload given as JSON text; `field` names it in errors. The text stays unchanged, except that lone surrogates
 * are escaped.
 */
export function checkPayloadText(
  text: string,
  maxBytes: number = JOB_BOUNDS.payloadBytes,
  field: string = "payload",
): string {
  if (typeof text !== "string") throw refuse(field, `a ${typeof text}`, "send JSON as text");
  checkBytes(field, text, maxBytes);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The words of JSON.parse quote the text, which may hold a secret.
    const came = text.trim() === "" ? "nothing" : `something else at ${jsonFault(text) ?? "some place"}`;
    throw new RedriveError("invalid_payload", `${field}: expected JSON; got ${came}; quote strings and keys`);
  }
  depthOf(value, field, 1);
  return text.isWellFormed() ? text : escapeLone(text);
}

function escapeLone(text: string): string {
  return text.replace(/[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]/g, (found) =>
    found.length === 2 ? found : `\\u${found.charCodeAt(0).toString(16)}`,
  );
}

/**
 * True for a value that JSON carries unchanged. For any other, `check` finds where it stands, because it tracks the
 * path.
 */
function isPlain(value: unknown, depth: number, walk: { left: number }): boolean {
  if (--walk.left < 0) return false;
  if (value === null || typeof value === "string" || typeof value === "boolean") return true;
  if (typeof value === "number") return Number.isFinite(value);
  // A cycle exceeds the depth limit.
  if (typeof value !== "object" || depth > JOB_BOUNDS.payloadDepth) return false;
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) if (!isPlain(value[at], depth + 1, walk)) return false;
    return true;
  }
  if (Object.getPrototypeOf(value) !== Object.prototype || "toJSON" in value) return false;
  for (const key in value) if (!isPlain((value as Record<string, unknown>)[key], depth + 1, walk)) return false;
  return Object.getOwnPropertySymbols(value).length === 0;
}

/** The objects above the present one, and how many values may still follow: each is at least a byte of JSON. */
interface Walk {
  readonly above: Set<object>;
  left: number;
}

function check(value: unknown, path: string, depth: number, walk: Walk): void {
  if (--walk.left < 0) throw tooMany();
  if (value === null || typeof value === "string" || typeof value === "boolean") return;
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw refuse(path, String(value), "send it as text, or leave it out");
    return;
  }
  if (typeof value === "bigint") throw refuse(path, "a bigint", "send it as text");
  if (typeof value !== "object")
    throw refuse(path, typeof value === "undefined" ? "undefined" : `a ${typeof value}`, "leave it out");
  if (depth > JOB_BOUNDS.payloadDepth) throw tooDeep(path);
  if (walk.above.has(value)) throw refuse(path, "a cycle", "send plain data");
  walk.above.add(value);
  // By index, because an iteration would skip a hole in an array.
  if (Array.isArray(value))
    for (let at = 0; at < value.length; at++) check(value[at], `${path}[${at}]`, depth + 1, walk);
  else {
    refuseClass(value, path);
    for (const key of Object.keys(value))
      check((value as Record<string, unknown>)[key], `${path}.${key}`, depth + 1, walk);
  }
  walk.above.delete(value);
}

/** Refuses dates, maps and other classes, which JSON would change. */
function refuseClass(value: object, path: string): void {
  if ("toJSON" in value && typeof value.toJSON === "function") {
    throw refuse(path, `a ${value.constructor?.name ?? "class"}`, "send its text, e.g. toISOString()");
  }
  if (Object.getOwnPropertySymbols(value).length > 0) throw refuse(path, "a symbol as a key", "use text keys");
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === null || prototype === Object.prototype) return;
  // Plain objects of another realm have a prototype whose own prototype is null.
  if (Object.getPrototypeOf(prototype) === null) return;
  throw refuse(path, `a ${value.constructor?.name ?? "class"}`, "send plain data");
}

function depthOf(value: unknown, path: string, depth: number): void {
  if (typeof value !== "object" || value === null) return;
  if (depth > JOB_BOUNDS.payloadDepth) throw tooDeep(path);
  for (const item of Object.values(value)) depthOf(item, path, depth + 1);
}

function refuse(path: string, came: string, remedy: string): RedriveError {
  return new RedriveError("invalid_payload", `${path}: expected something JSON can carry; got ${came}; ${remedy}`, {
    details: { path },
  });
}

function tooMany(): RedriveError {
  return new RedriveError(
    "payload_too_large",
    "payload: expected fewer values than its limit has bytes; got more; send a reference instead",
  );
}

function tooDeep(path: string): RedriveError {
  const message = `${path}: expected at most ${JOB_BOUNDS.payloadDepth} levels; got more; flatten the data`;
  return new RedriveError("payload_too_large", message, { details: { path } });
}
