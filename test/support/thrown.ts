// The list of errors that libraries throw, and what an engineer on call wants each to be taken for. It is data
// (test/fixtures/classes.jsonl, a case a line), kept apart from the rules so that the rules cannot shape it.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { FailureClass } from "../../src/core/job.ts";

/** One error of one library, and what it should be taken for. */
export interface ThrownCase {
  readonly library: string;
  /** Library, version, and where in its behaviour, sources or docs the error comes from. */
  readonly from: string;
  /** `provoked`: the library threw it; `built`: made with its own class; `written`: after its sources or docs. */
  readonly how: "provoked" | "built" | "written";
  /** As data; `revive` makes the value that was thrown. */
  readonly error: unknown;
  /** The class, or several where more than one is defensible; all of them agree about the retry. */
  readonly class: FailureClass | readonly FailureClass[];
  readonly retry: boolean;
  readonly why: string;
}

/** Data with the marks that say what to make of it. */
interface Marked extends Readonly<Record<string, unknown>> {
  readonly $class?: string;
  readonly $base?: string;
  readonly $dom?: string;
  readonly $response?: { readonly status: number; readonly headers: Record<string, string> };
  readonly $headers?: Record<string, string>;
}

const BUILT_IN: Readonly<Record<string, ErrorConstructor>> = { Error, TypeError, RangeError, SyntaxError };

/** All cases of the list. */
export function thrownCases(): ThrownCase[] {
  const text = readFileSync(new URL("../fixtures/classes.jsonl", import.meta.url), "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as ThrownCase);
}

/**
 * The half a case belongs to, by a hash of where it is from. The rules are written after the `tuned` half. Keep the
 * cases of the `unseen` half unread: only their number says how the rules do on errors that they were not written for.
 */
export function halfOf({ from }: ThrownCase): "tuned" | "unseen" {
  return (createHash("sha256").update(from).digest()[0] ?? 0) % 2 === 0 ? "tuned" : "unseen";
}

/** The classes that a case allows. */
export const allowedClasses = ({ class: allowed }: ThrownCase): readonly FailureClass[] =>
  typeof allowed === "string" ? [allowed] : allowed;

/**
 * Makes the thrown value from its data. `$class` (and `$base`, a built-in) makes an error of a class of that name,
 * `$dom` a DOMException, `$response` a fetch Response, `$headers` fetch Headers; the rest stays plain.
 */
export function revive(data: unknown): unknown {
  if (typeof data !== "object" || data === null) return data;
  if (Array.isArray(data)) return data.map(revive);
  const { $class, $base, $dom, $response, $headers, ...rest } = data as Marked;
  if ($headers !== undefined) return new Headers($headers);
  if ($dom !== undefined) return new DOMException(String(rest["message"]), $dom);
  const fields = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, revive(value)]));
  if ($response !== undefined) return Object.assign(new Response(null, $response), fields);
  return $class === undefined ? fields : makeError($class, $base ?? $class, fields);
}

/** `name` and the fields are own properties; without a name of its own, an error has that of its class. */
function makeError(className: string, base: string, fields: Record<string, unknown>): Error {
  const { message, name = className, ...others } = fields;
  const made =
    base === "AggregateError"
      ? new AggregateError((others["errors"] ?? []) as unknown[], String(message))
      : new (classNamed(className, BUILT_IN[base] ?? Error))(String(message));
  if (made.name !== name) Object.defineProperty(made, "name", { value: name, configurable: true, writable: true });
  for (const [key, value] of Object.entries(others)) {
    const enumerable = key !== "cause" && key !== "errors";
    Object.defineProperty(made, key, { value, enumerable, configurable: true, writable: true });
  }
  return made;
}

function classNamed(name: string, base: ErrorConstructor): ErrorConstructor {
  if (BUILT_IN[name] !== undefined) return BUILT_IN[name];
  const made = class extends base {};
  Object.defineProperty(made, "name", { value: name });
  return made as unknown as ErrorConstructor;
}
