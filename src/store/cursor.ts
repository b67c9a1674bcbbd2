// Cursors of lists: the position of the last item of a page, as text that callers pass back unchanged.
import { RedriveError } from "../core/errors.ts";

/** The error for an invalid cursor. */
export function cursorError(cursor: unknown): RedriveError {
  const shown = typeof cursor === "string" ? JSON.stringify(cursor.slice(0, 60)) : typeof cursor;
  return new RedriveError(
    "invalid_argument",
    `cursor: expected the "next" of an earlier page; got ${shown}; leave it out for the first page`,
  );
}

/** The last job of a page sorted by due time: when it is due, and its number. */
export interface DuePlace {
  readonly runAt: number;
  readonly seq: number;
}

/** The cursor of a page sorted by due time. */
export function dueCursor({ runAt, seq }: DuePlace): string {
  return `${runAt}.${seq}`;
}

/** The place after which such a page begins; null for the first page. */
export function readDueCursor(cursor: string | null | undefined): DuePlace | null {
  if (cursor === null || cursor === undefined) return null;
  const [, runAt, seq] = /^([0-9]{1,16})\.([0-9]{1,15})$/.exec(cursor) ?? [];
  if (runAt === undefined || seq === undefined) throw cursorError(cursor);
  return { runAt: Number(runAt), seq: Number(seq) };
}

/** The last letter of a page in the order of enqueue, and the newest letter that belongs to the list. */
export interface EnqueuedPlace {
  /** The number of its job. */
  readonly jobSeq: number;
  readonly generation: number;
  /** The number of the newest letter when the first page was read. */
  readonly through: number;
}

/** The cursor of a page in the order of enqueue. */
export function enqueuedCursor({ jobSeq, generation, through }: EnqueuedPlace): string {
  return `${jobSeq}.${generation}.${through}`;
}

/** The place after which such a page begins; null for the first page. */
export function readEnqueuedCursor(cursor: string | null | undefined): EnqueuedPlace | null {
  if (cursor === null || cursor === undefined) return null;
  const [, ...found] = /^([0-9]{1,15})\.([0-9]{1,9})\.([0-9]{1,15})$/.exec(cursor) ?? [];
  if (found.length === 0) throw cursorError(cursor);
  const [jobSeq, generation, through] = found.map(Number) as [number, number, number];
  return { jobSeq, generation, through };
}

/** The position that a cursor names; the page begins below it or, oldest first, above it. */
export function readCursor(cursor: string | null | undefined, oldest = false): number {
  if (cursor === null || cursor === undefined) return oldest ? 0 : Number.MAX_SAFE_INTEGER;
  const position = /^[0-9]{1,15}$/.test(cursor) ? Number(cursor) : Number.NaN;
  if (Number.isNaN(position)) throw cursorError(cursor);
  return position;
}
