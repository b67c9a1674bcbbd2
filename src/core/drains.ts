// What a drain notes of itself, so that a pipeline that a scheduler starts every few minutes does not read as one without
// a worker: its types, when it began and ended, and how long usually lies between two starts.
import { fieldsFrom } from "./options.ts";

/** The kind of the cells with these notes; a cell for each set of types. */
export const DRAIN_CELLS = "drain";

/** The notes about the drains of one set of types. Times are those of the store. */
export interface DrainRecord {
  /** The types that it runs, sorted. */
  readonly types: readonly string[];
  /** When the last ones began, the oldest first. */
  readonly starts: readonly number[];
  /** When the last one ended; null while it is at work, and where it was killed. */
  readonly endedAt: number | null;
}

/** The interval is the median of so many. */
const INTERVALS = 5;
/** Fewer say too little: a drain that was started twice by hand is no pipeline. */
const INTERVALS_LEAST = 2;
/** Most types that are noted; a drain of more counts for these only. */
const TYPES_MOST = 1_000;

/** Reads notes from their stored text; null for what another version wrote in another form. */
export function drainFrom(text: string): DrainRecord | null {
  const { types, starts, endedAt = null } = fieldsFrom(text);
  const isWhole =
    Array.isArray(types) &&
    types.every((type) => typeof type === "string") &&
    Array.isArray(starts) &&
    starts.every((at) => Number.isSafeInteger(at)) &&
    (endedAt === null || Number.isSafeInteger(endedAt));
  return isWhole ? { types, starts, endedAt: endedAt as number | null } : null;
}

/** The notes after the start of a drain. */
export function drainBegun(before: DrainRecord | null, types: readonly string[], now: number): DrainRecord {
  const sorted = types.toSorted().slice(0, TYPES_MOST);
  return { types: sorted, starts: [...(before?.starts ?? []), now].slice(-INTERVALS - 1), endedAt: null };
}

/** How long usually lies between two starts: the median of the last five intervals; null before the third start. */
export function usualIntervalMs({ starts }: DrainRecord): number | null {
  const intervals = starts.slice(1).map((at, index) => Math.max(0, at - (starts[index] as number)));
  const sorted = intervals.slice(-INTERVALS).toSorted((a, b) => a - b);
  if (sorted.length < INTERVALS_LEAST) return null;
  const middle = sorted.length >> 1;
  const [low, high] = [sorted[sorted.length % 2 === 0 ? middle - 1 : middle], sorted[middle]] as [number, number];
  return Math.round((low + high) / 2);
}

/** The drains that come at intervals, by type: how long its work may have to wait for the next one. */
export function intervalsByType(
  drains: readonly DrainRecord[],
  { everyMs, lateMs, now }: { readonly everyMs: number | null; readonly lateMs: number; readonly now: number },
): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const drain of drains) {
    const intervalMs = everyMs ?? usualIntervalMs(drain);
    const last = drain.starts.at(-1);
    // One that is overdue itself is no reason to wait.
    if (intervalMs === null || last === undefined || now - last > intervalMs + lateMs) continue;
    for (const type of drain.types) found.set(type, Math.max(found.get(type) ?? 0, intervalMs));
  }
  return found;
}
