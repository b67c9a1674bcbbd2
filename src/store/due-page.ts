// Pages of waiting jobs in order of due time.
import { type DuePlace, dueCursor } from "./cursor.ts";
import type { JobQuery } from "./job-queries.ts";

/** Up to so many lanes are searched one by one; of more, all their waiting jobs are read, which is quicker then. */
export const LANES_MOST = 2_000;

/** The fields of a query that a lane answers for all of its jobs. */
export function laneFields(query: JobQuery): (readonly [name: string, value: string])[] {
  return (["type", "queue", "service", "tenant"] as const).flatMap((name) => {
    const value = query[name];
    return value === undefined ? [] : [[name, value] as const];
  });
}

/** Cuts a page of rows, of which one more than wanted was read. `bound` is the last place that it was allowed to look at. */
export function duePage<Row>(
  found: readonly Row[],
  limit: number,
  placeOf: (row: Row) => DuePlace,
  bound: DuePlace | null,
): { readonly rows: Row[]; readonly next: string | null; readonly seenTo?: number } {
  const rows = found.slice(0, limit);
  const last = rows.at(-1);
  if (last && found.length > limit) return { rows, next: dueCursor(placeOf(last)) };
  return bound ? { rows, next: dueCursor(bound), seenTo: bound.runAt } : { rows, next: null };
}
