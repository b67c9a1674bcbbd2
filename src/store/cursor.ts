// Cursors of lists: the position of the last item of a page, as text that callers hand back as it is.
import { RedriveError } from "../core/errors.ts";

/** The error for a cursor that no list gave out. */
export function cursorError(cursor: unknown): RedriveError {
  const shown = typeof cursor === "string" ? JSON.stringify(cursor.slice(0, 60)) : typeof cursor;
  return new RedriveError("invalid_argument", `cursor must be the "next" of an earlier page; got ${shown}.`);
}

/** The position that a cursor names; a page goes on below it or, oldest first, above it. */
export function readCursor(cursor: string | null | undefined, oldest = false): number {
  if (cursor === null || cursor === undefined) return oldest ? 0 : Number.MAX_SAFE_INTEGER;
  const position = /^[0-9]{1,15}$/.test(cursor) ? Number(cursor) : Number.NaN;
  if (Number.isNaN(position)) throw cursorError(cursor);
  return position;
}
