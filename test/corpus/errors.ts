// The labelled errors of test/fixtures/errors.jsonl, and each as the thrown value that a handler would have caught.

import { readFileSync } from "node:fs";

/** What a queue can read of an error. */
export interface ErrorTexts {
  readonly name: string;
  readonly message: string;
  /** Null where the thrown value was no error. */
  readonly stack: string | null;
  readonly code?: string;
  readonly status?: number;
  readonly causedBy?: ErrorTexts;
  readonly errors?: readonly ErrorTexts[];
}

/** One error with the label of its cause, and the build of the program that threw it. */
export interface LabelledError extends ErrorTexts {
  readonly cause: string;
  readonly variant: string;
  readonly language: string;
}

export const FILE = new URL("../fixtures/errors.jsonl", import.meta.url);

export function readErrors(): LabelledError[] {
  const lines = readFileSync(FILE, "utf8").trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line) as LabelledError);
}

/** The value that was thrown, made again from its texts. */
export function thrownOf({ name, message, stack, code, status, causedBy, errors }: ErrorTexts): unknown {
  if (stack === null) return message;
  const error = errors === undefined ? new Error(message) : new AggregateError(errors.map(thrownOf), message);
  return Object.assign(error, {
    name,
    stack,
    ...(code === undefined ? {} : { code }),
    ...(status === undefined ? {} : { status }),
    ...(causedBy === undefined ? {} : { cause: thrownOf(causedBy) }),
  });
}
