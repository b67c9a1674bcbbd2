// What the families of rules look at: the parts of one error that most of them ask for, read once and bounded. A
// family is a pure function from a clue to a class, or undefined where the error is none of its own.

import { type Carried, carriedBy, messageOf, nameOf, read, readText } from "../error-shape.ts";
import type { FailureClass } from "../job.ts";

/** One error, without its causes. */
export interface Clue {
  readonly error: unknown;
  /** `error.name`, or the constructor's. */
  readonly name: string;
  /** The constructor's name, which says more than `name` in libraries that leave that at `Error`. */
  readonly type: string;
  /** `error.code` as text; empty where there is none. */
  readonly code: string;
  /** The first 512 characters of the message. */
  readonly message: string;
  /** What the error carries besides. */
  readonly carries: Carried;
}

/** The rules for the errors of one library or protocol. */
export type Family = (clue: Clue) => FailureClass | undefined;

const MAX_NAME = 64;
const MAX_MESSAGE = 512;

/** The parts of the error that families look at. */
export function clueOf(error: unknown): Clue {
  const code = read(error, "code");
  return {
    error,
    name: nameOf(error).slice(0, MAX_NAME),
    type: (readText(read(error, "constructor"), "name") ?? "").slice(0, MAX_NAME),
    code: typeof code === "string" || typeof code === "number" ? String(code).slice(0, MAX_NAME) : "",
    message: messageOf(error).slice(0, MAX_MESSAGE),
    carries: carriedBy(error),
  };
}

/** A table of words and their classes, written as lists of words by class. */
export function table(rows: Partial<Record<FailureClass, string>>): ReadonlyMap<string, FailureClass> {
  const entries = Object.entries(rows) as [FailureClass, string][];
  return new Map(
    entries.flatMap(([found, words]) =>
      words
        .trim()
        .split(/\s+/)
        .map((word) => [word, found] as const),
    ),
  );
}

/** A property that is a whole number, else undefined. */
export function readNumber(value: unknown, key: PropertyKey): number | undefined {
  const found = read(value, key);
  return typeof found === "number" && Number.isSafeInteger(found) ? found : undefined;
}
