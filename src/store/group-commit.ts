// Writes that share commits: while one is under way, items that arrive go with the next. Without a write under way
// nothing waits; under load the groups grow.

/** Passes items to `write` in groups. */
export interface GroupCommit<T> {
  add(item: T): void;
  /** Resolves when nothing is under way or waiting. */
  idle(): Promise<void>;
  readonly size: number;
}

/**
 * About how many characters of payloads one write has: a store sends a write as one, and its server reads it while
 * others wait.
 */
export const WRITE_LENGTH = 8 * 1024 * 1024;

/** The most that a group may weigh; a heavier item goes alone. */
export interface Weight<T> {
  readonly of: (item: T) => number;
  readonly most: number;
}

/** A smaller number of items goes as one group. */
const SMALL = 16;

/**
 * Writes groups of at most `most` items within their weight, at most `inFlight` at once. With two in flight, callers
 * that ask again as soon as they are answered do so while the other half is being written. `write` must not throw; it
 * handles items that it could not write itself.
 */
export function groupCommit<T>(
  write: (items: T[]) => Promise<void>,
  most: number,
  inFlight = 1,
  weight: Weight<T> | null = null,
): GroupCommit<T> {
  const waiting: T[] = [];
  let underWay = 0;
  let writes = 0;
  let due = false;
  let onIdle: (() => void)[] = [];

  const send = (): void => {
    due = false;
    while (waiting.length > 0 && writes < inFlight) {
      const share = Math.ceil(waiting.length / (inFlight - writes));
      const group = waiting.splice(0, fitting(waiting, Math.min(most, Math.max(SMALL, share)), weight));
      writes += 1;
      underWay += group.length;
      void write(group).then(() => {
        writes -= 1;
        underWay -= group.length;
        later();
      });
    }
    if (writes > 0) return;
    for (const tell of onIdle) tell();
    onIdle = [];
  };
  /** A turn of the microtask queue later, so that the items of one event go together. */
  const later = (): void => {
    if (due) return;
    due = true;
    queueMicrotask(send);
  };
  return {
    add(item) {
      waiting.push(item);
      later();
    },
    idle: () =>
      new Promise((resolve) => {
        onIdle.push(resolve);
        later();
      }),
    get size() {
      return waiting.length + underWay;
    },
  };
}

/** How many of the first items, at most so many, fit together by weight; at least one. */
function fitting<T>(items: readonly T[], most: number, weight: Weight<T> | null): number {
  if (!weight) return most;
  let [count, sum] = [0, 0];
  for (const item of items.slice(0, most)) {
    sum += weight.of(item);
    if (count > 0 && sum > weight.most) break;
    count += 1;
  }
  return count;
}
