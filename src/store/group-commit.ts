// Writes that share commits: one is under way, and what arrives meanwhile goes with the next. Nothing waits when
// nothing is under way, and under load the groups grow by themselves.

/** Hands items to `write` in groups. */
export interface GroupCommit<T> {
  add(item: T): void;
  /** Resolves when nothing is under way or waiting. */
  idle(): Promise<void>;
  readonly size: number;
}

/** Characters of payloads per write, about: a store sends a write as one, and its server reads it while others wait. */
export const WRITE_LENGTH = 8 * 1024 * 1024;

/** What a group may weigh; an item that weighs more goes alone. */
export interface Weight<T> {
  readonly of: (item: T) => number;
  readonly most: number;
}

/** A crowd smaller than this goes as a whole. */
const SMALL = 16;

/**
 * Writes groups of at most `most`, and no heavier than they may be, at most `inFlight` at once. With two in flight, callers
 * who ask again as soon as they are answered do so while the other half is being written. `write` must not throw; an item it
 * could not write is its own business.
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
  /** A turn of the microtask queue later, so that what one event brings travels together. */
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

/** How many of the first items, this many at most, go together by their weight; one at least. */
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
