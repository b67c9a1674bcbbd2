// The checks of filters, ids and cursors before a store is asked, for jobs and dead letters alike.
import { subjectOf } from "../core/event-log.ts";
import { invalid, parseOptions } from "../core/options.ts";

/** The id itself; throws for an invalid one. */
export function checkId(id: unknown): string {
  if (typeof id === "string" && id !== "" && id.length <= 64) return id;
  throw invalid("id", "the id of a job", id, "copy it from a list");
}

/** Throws for an invalid cursor. */
export function checkCursor(cursor: unknown): void {
  if (cursor !== null && typeof cursor !== "string")
    throw invalid("cursor", 'the "next" of an earlier page', cursor, "leave it out for the first page");
}

/** Throws for a field of a filter that has the wrong type, or is a text that no store can hold. */
export function checkKinds(
  filter: Readonly<Record<string, unknown>>,
  { text, yesOrNo }: { readonly text: readonly string[]; readonly yesOrNo: readonly string[] },
): void {
  const isText = (value: unknown): boolean =>
    typeof value === "string" && value.isWellFormed() && !value.includes("\0");
  for (const [fields, isRight, expected] of [
    [text, isText, "well-formed text without U+0000"],
    [yesOrNo, (value: unknown): boolean => typeof value === "boolean", "true or false"],
  ] as const)
    for (const field of fields)
      if (filter[field] !== undefined && !isRight(filter[field]))
        throw invalid(`filter.${field}`, expected, filter[field], "change it");
}

/** Throws for an empty filter: a call affects everything only where the caller says so. */
export function checkNarrow(filter: unknown, fields: readonly string[]): void {
  if (Object.keys(parseOptions(filter, fields, "filter")).length === 0)
    throw invalid("filter", "at least one field", "{}", "narrow it, or pass { all: true }");
}

/**
 * What the event log says of a target: one job by its id, several by their number, or the filter. Throws for a bad one,
 * so that it changes nothing.
 */
export function aboutTarget<F extends object>(
  target: string | readonly string[] | F,
  checkFilter: (filter: F) => void,
): { readonly subject: string | null; readonly details: object; readonly isEmpty?: boolean } {
  if (typeof target === "string" || Array.isArray(target)) {
    const ids = [target].flat().map(checkId);
    if (ids.length === 1) return { subject: subjectOf("job", ids[0]), details: {} };
    return { subject: null, details: { ids, count: ids.length }, isEmpty: ids.length === 0 };
  }
  checkFilter(target as F);
  return { subject: null, details: { filter: target } };
}
