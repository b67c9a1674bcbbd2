// Counts for people end at a number that takes a few milliseconds to reach, however many jobs there are.

/** A count that is this high means "at least". */
export const COUNTED_TO = 10_000;

/** `17`, or `at least 10000`. */
export function countText(count: number): string {
  return count >= COUNTED_TO ? `at least ${count}` : String(count);
}
