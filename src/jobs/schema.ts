// Standard Schema: the one interface that zod, valibot, arktype and others share. We call it and turn its issues into
// our own errors; nothing of those libraries is imported.
import { RedriveError } from "../core/errors.ts";
import { invalid } from "../core/options.ts";

/** A schema of any library that implements Standard Schema, version 1. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** The answer of a schema. */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

/** One problem that a schema found. */
export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The input type of a schema. */
export type SchemaInput<S extends StandardSchema> = NonNullable<S["~standard"]["types"]>["input"];
/** The output type of a schema. */
export type SchemaOutput<S extends StandardSchema> = NonNullable<S["~standard"]["types"]>["output"];

const SHOWN_ISSUES = 5;

/** Throws `invalid_argument` unless the value is a schema. */
export function checkSchema(value: unknown, name: string): void {
  const standard = (value as StandardSchema | null | undefined)?.["~standard"];
  if (typeof standard?.validate === "function") return;
  throw invalid(name, "a Standard Schema (zod, valibot, arktype …)", value, "pass a schema, or leave it out");
}

/** The output of the schema for the value; rejects with `invalid_payload`, which names each problem and its path. */
export async function validated(schema: StandardSchema, value: unknown, type: string): Promise<unknown> {
  const result = await schema["~standard"].validate(value);
  if (!result.issues) return result.value;
  const issues = result.issues.map(({ message, path = [] }) => ({ path: pathText(path), message: String(message) }));
  const shown = issues
    .slice(0, SHOWN_ISSUES)
    .map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
  const more = issues.length > SHOWN_ISSUES ? ` and ${issues.length - SHOWN_ISSUES} more` : "";
  throw new RedriveError(
    "invalid_payload",
    `The input of ${type} does not match its schema: ${shown.join("; ")}${more}.`,
    {
      details: { type, issues },
    },
  );
}

/** True for an error of `validated` about the input of this type; any other error is a failure of the schema itself. */
export function isMisfit(error: unknown, type: string): error is RedriveError {
  try {
    return error instanceof RedriveError && error.details.type === type && "issues" in error.details;
  } catch {
    // A schema may throw anything, also a value that cannot be inspected.
    return false;
  }
}

function pathText(path: readonly (PropertyKey | { readonly key: PropertyKey })[]): string {
  return path.map((part) => String(typeof part === "object" ? part.key : part)).join(".");
}
