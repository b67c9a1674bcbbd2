// Checks what comes in against the schemas of a route. The schemas check forms; what a value may be is checked by the
// library, with the texts that programs know from it.
import * as v from "valibot";
import { parseDuration } from "../core/duration.ts";
import { parseOptions } from "../core/options.ts";
import { instantOf } from "../enqueue/new-jobs.ts";
import { HttpError } from "./http-error.ts";
import type { Entries } from "./route.ts";

const NUMBER = /^-?\d{1,15}(?:\.\d{1,15})?$/;

/** The query of a request, checked: unknown names are refused with the nearest known one. */
export function queryFrom(entries: Entries, search: URLSearchParams): Record<string, unknown> {
  const raw: Record<string, unknown> = Object.create(null);
  for (const [name, value] of search) {
    if (name in raw) throw refused(`query.${name}`, "it once", "it twice", "leave one out");
    raw[name] = value;
  }
  const known = parseOptions(raw, Object.keys(entries), "query");
  const typed: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(known))
    typed[name] = typedAs(entries[name] as v.GenericSchema, value as string);
  return checked(v.strictObject({ ...entries }), typed, "query");
}

/** The text of a query as its schema means it; a text that is none of these stays, and the schema refuses it. */
function typedAs(schema: v.GenericSchema, text: string): unknown {
  const kinds = kindsOf(schema);
  if (kinds.has("number") && NUMBER.test(text)) return Number(text);
  if (kinds.has("boolean") && (text === "true" || text === "false")) return text === "true";
  return text;
}

function kindsOf(schema: v.GenericSchema): ReadonlySet<string> {
  const inner = schema as { readonly wrapped?: v.GenericSchema; readonly options?: readonly v.GenericSchema[] };
  if (inner.wrapped) return kindsOf(inner.wrapped);
  if (schema.type === "union") return new Set((inner.options ?? []).flatMap((each) => [...kindsOf(each)]));
  return new Set([schema.type]);
}

/** The value, checked against the schema. */
export function checked<S extends v.GenericSchema>(schema: S, value: unknown, name: string): v.InferOutput<S> {
  const result = v.safeParse(schema, value, { abortEarly: true });
  if (result.success) return result.output;
  throw issueError(result.issues[0], name);
}

function issueError(issue: v.BaseIssue<unknown>, name: string): HttpError {
  const path = (issue.path ?? []).map(({ key }) => String(key).slice(0, 60));
  const where = [name, ...path].join(".");
  if (issue.type === "strict_object" && issue.expected === "never")
    return refused(where, "no such field", "one", "leave it out");
  return refused(where, expectedBy(issue), String(issue.received).slice(0, 80), "correct it");
}

/** `a length of <=255`, `string`. */
function expectedBy({ kind, type, expected, message }: v.BaseIssue<unknown>): string {
  if (expected === null) return message;
  if (kind === "schema") return expected;
  return `a ${type.includes("length") ? "length" : "value"} of ${expected}`;
}

function refused(where: string, expected: string, came: string, remedy: string): HttpError {
  return new HttpError("invalid_argument", `${where}: expected ${expected}; got ${came}; ${remedy}`);
}

/** The body, checked: an unknown field is refused with the nearest known one. */
export function bodyFrom(schema: v.GenericSchema, value: unknown): Record<string, unknown> {
  const { entries } = schema as { readonly entries?: Entries };
  if (entries) parseOptions(value, Object.keys(entries), "body");
  return checked(schema, value, "body") as Record<string, unknown>;
}

/** The instant that a caller means: `-2h` counts back from the time of the store. */
export function instantFrom(value: string | number, name: string, now: number): number {
  if (typeof value === "string" && value.startsWith("-")) return Math.max(0, now - parseDuration(value.slice(1), name));
  return instantOf(value, name);
}
