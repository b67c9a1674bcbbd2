// The rules applied to the list of errors that libraries throw, for the test that holds the figures and the command
// that prints them.

import { isRetryable } from "../../src/core/classify-rules.ts";
import { classify } from "../../src/core/classify.ts";
import type { FailureClass } from "../../src/core/job.ts";
import { allowedClasses, revive, type ThrownCase } from "./thrown.ts";

const NOW = Date.parse("2025-01-15T12:00:00Z");

/** A case, the class that the rules give it, and whether class and retry decision are right. */
export interface JudgedCase {
  readonly one: ThrownCase;
  readonly found: FailureClass;
  readonly isClass: boolean;
  readonly isRetry: boolean;
}

/** The case with what the rules make of it. */
export function judgeCase(one: ThrownCase): JudgedCase {
  const found = classify(revive(one.error), {}, [], NOW).class;
  return { one, found, isClass: allowedClasses(one).includes(found), isRetry: isRetryable(found) === one.retry };
}

/** One line about a case that the rules get wrong. */
export function explain({ one, found, isRetry }: JudgedCase): string {
  const kind = isRetry ? "class" : one.retry ? "RETRY WANTED" : "NO RETRY WANTED";
  return `${kind}: ${one.from}: ${found}, should be ${allowedClasses(one).join(" or ")} (${one.why})`;
}

/** How many are right, and of a hundred. */
export function share(right: readonly boolean[]): { readonly count: number; readonly percent: number } {
  const count = right.filter(Boolean).length;
  return { count, percent: (100 * count) / right.length };
}
