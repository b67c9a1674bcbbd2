// Changes a payload by a JSON merge patch (RFC 7396) on its text, so that every byte the patch does not name stays:
// numbers that JavaScript cannot hold, escapes, duplicate keys, white space, the order of keys. Parsing and writing the
// payload again would change them. Of two equal keys the last one counts, as in JSON.parse.
//
// The patch must be an object: any other value, which RFC 7396 allows, would replace the payload as a whole.
//
//   payload   { "id": 9007199254740993, "to": "ada", "cc": null }
//   patch     {"to":"bob","cc":null}
//   becomes   { "id": 9007199254740993, "to": "bob" }
import { RedriveError } from "../errors.ts";
import { byteLength, checkBytes, JOB_BOUNDS } from "../new-job.ts";
import { checkPayloadText } from "../payload.ts";
import { skipSpace, skipString, skipValue } from "./json-text.ts";

/**
 * The payload changed by the patch, both as JSON text. Throws `invalid_payload` for what is no JSON, or a patch that is no
 * object, and `payload_too_large` for too many bytes or levels. The work grows with the length of both.
 */
export function patchText(payload: string, patch: string, maxBytes: number = JOB_BOUNDS.payloadBytesMost): string {
  return openPatch(patch)(payload, maxBytes);
}

/** Reads a patch once, for many payloads. */
export function openPatch(patch: string): (payload: string, maxBytes?: number) => string {
  const text = checkPayloadText(patch, JOB_BOUNDS.payloadBytesMost, "patch");
  if (text[skipSpace(text, 0)] !== "{") throw noObject(text);
  const read = readPatch(text, skipSpace(text, 0));
  return (payload, maxBytes = JOB_BOUNDS.payloadBytesMost) => {
    const before = checkPayloadText(payload, JOB_BOUNDS.payloadBytesMost);
    const start = skipSpace(before, 0);
    const pieces: string[] = [];
    write(before, scan(before, start, read), read, pieces);
    const after = pieces.join("");
    // A payload that was already over the limit may stay as long as it was.
    if (byteLength(after) > byteLength(before)) checkBytes("payload", after, maxBytes);
    return after;
  };
}

/** By RFC 7396 any other value would replace the whole payload, which is hardly ever what was meant. */
function noObject(text: string): RedriveError {
  const value: unknown = JSON.parse(text);
  const came = value === null ? "null" : Array.isArray(value) ? "a list" : `a ${typeof value}`;
  const message = `patch: expected a JSON object; got ${came}; name the fields to change, or give a whole payload instead`;
  return new RedriveError("invalid_payload", message);
}

/** A patch: new fields of an object, or the text that replaces what was there. */
type Patch =
  | { readonly fields: ReadonlyMap<string, PatchField>; readonly end: number }
  | { readonly fields: null; readonly fresh: string; readonly end: number };

/** A field of a patch: its name as written, and its change; null removes the field. */
interface PatchField {
  readonly name: string;
  readonly patch: Patch | null;
}

/** Where a value stands, and the fields of an object that a patch changes. */
interface Span {
  readonly start: number;
  readonly end: number;
  readonly fields: readonly Field[] | null;
}

/** A field of an object: from behind the brace or comma before it to the brace or comma behind it. */
interface Field {
  readonly name: string;
  readonly start: number;
  readonly nameStart: number;
  readonly nameEnd: number;
  readonly value: Span;
  readonly end: number;
}

/** Both texts were parsed before, so that only legal JSON comes here. The recursion is as deep as the patch. */
function readPatch(text: string, start: number): Patch {
  if (text[start] !== "{") {
    const end = skipValue(text, start);
    return { fields: null, fresh: text.slice(start, end), end };
  }
  const fields = new Map<string, PatchField>();
  const end = eachField(text, start, (nameStart, nameEnd, valueStart) => {
    const patch = readPatch(text, valueStart);
    const raw = text.slice(nameStart, nameEnd);
    const isNull = text.startsWith("null", valueStart);
    fields.set(nameOf(raw), { name: raw, patch: isNull ? null : patch });
    return patch.end;
  });
  return { fields, end };
}

/** What a patch makes of nothing: its own text, without the fields that it removes. */
function freshText(patch: Patch, pieces: string[]): void {
  if (patch.fields === null) pieces.push(patch.fresh);
  else writeObject("", [], patch.fields, pieces);
}

/** Where the value ends, and its fields as far as the patch goes. */
function scan(text: string, start: number, patch: Patch | null): Span {
  if (!patch?.fields || text[start] !== "{") return { start, end: skipValue(text, start), fields: null };
  const { fields: wanted } = patch;
  const fields: Field[] = [];
  const end = eachField(text, start, (nameStart, nameEnd, valueStart, from) => {
    const name = nameOf(text.slice(nameStart, nameEnd));
    const value = scan(text, valueStart, wanted.get(name)?.patch ?? null);
    fields.push({ name, start: from, nameStart, nameEnd, value, end: skipSpace(text, value.end) });
    return value.end;
  });
  return { start, end, fields };
}

type OnField = (nameStart: number, nameEnd: number, valueStart: number, from: number) => number;

/** Calls back for each field, which answers where its value ends; returns where the object ends. */
function eachField(text: string, start: number, onField: OnField): number {
  let from = start + 1;
  for (;;) {
    const nameStart = skipSpace(text, from);
    if (text[nameStart] === "}") return nameStart + 1;
    const nameEnd = skipString(text, nameStart);
    const valueStart = skipSpace(text, skipSpace(text, nameEnd) + 1);
    const behind = skipSpace(text, onField(nameStart, nameEnd, valueStart, from));
    if (text[behind] === "}") return behind + 1;
    from = behind + 1;
  }
}

/** Writes a value with the patch applied, without the text around it unless it is the outermost. */
function write(text: string, value: Span, patch: Patch, pieces: string[]): void {
  const isWhole = pieces.length === 0;
  if (isWhole) pieces.push(text.slice(0, value.start));
  if (patch.fields === null || value.fields === null) freshText(patch, pieces);
  // An empty object keeps the space in it where nothing is added.
  else if (value.fields.length === 0 && [...patch.fields.values()].every((field) => field.patch === null))
    pieces.push(text.slice(value.start, value.end));
  else writeObject(text, value.fields, patch.fields, pieces);
  if (isWhole) pieces.push(text.slice(value.end));
}

function writeObject(
  text: string,
  fields: readonly Field[],
  patch: ReadonlyMap<string, PatchField>,
  pieces: string[],
): void {
  const kept = fields.filter(({ name }) => patch.get(name)?.patch !== null);
  // A reader sees the last of equal keys, so that one is changed.
  const last = new Map(kept.map((field) => [field.name, field]));
  pieces.push("{");
  kept.forEach((field, at) => {
    const change = last.get(field.name) === field ? patch.get(field.name)?.patch : undefined;
    if (at > 0) pieces.push(",");
    pieces.push(text.slice(field.start, field.value.start));
    if (change) write(text, field.value, change, pieces);
    else pieces.push(text.slice(field.value.start, field.value.end));
    if (at < kept.length - 1) pieces.push(text.slice(field.value.end, field.end));
  });
  // New fields are written in the manner of the field before them.
  const model = kept.at(-1);
  const before = model ? text.slice(model.start, model.nameStart) : "";
  const between = model ? text.slice(model.nameEnd, model.value.start) : ":";
  let isFirst = kept.length === 0;
  for (const [name, { name: raw, patch: added }] of patch) {
    if (added === null || last.has(name)) continue;
    pieces.push(isFirst ? "" : ",", before, raw, between);
    freshText(added, pieces);
    isFirst = false;
  }
  const end = fields.at(-1);
  if (model && end) pieces.push(text.slice(end.value.end, end.end));
  pieces.push("}");
}

function nameOf(token: string): string {
  return token.includes("\\") ? String(JSON.parse(token)) : token.slice(1, -1);
}
