// Compares an actual value with what a test expects: every named field must match, others may exist too.
import { isDeepStrictEqual } from "node:util";

/** True if everything that the expectation names matches; lists must have the same length. */
export function matches(actual: unknown, expected: unknown): boolean {
  if (Array.isArray(expected))
    return (
      Array.isArray(actual) &&
      actual.length === expected.length &&
      expected.every((value, at) => matches(actual[at], value))
    );
  if (isPlain(expected))
    return (
      isPlain(actual) &&
      Object.keys(expected).every((key) => matches(Object.hasOwn(actual, key) ? actual[key] : undefined, expected[key]))
    );
  return isDeepStrictEqual(actual, expected);
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}
