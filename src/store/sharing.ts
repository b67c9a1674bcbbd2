// Writes that share commits: one is under way, and what arrives meanwhile goes with the next. Nothing waits when
// nothing is under way, and under load the groups grow by themselves.

/** Hands items to `write` in groups of at most `most`, never two groups at once. */
export interface Sharing<T> {
  add(item: T): void;
  /** Resolves when nothing is under way or waiting. */
  idle(): Promise<void>;
  readonly size: number;
}

/** `write` must not throw; an item it could not write is its own business. */
export function sharing<T>(write: (items: T[]) => Promise<void>, most: number): Sharing<T> {
  let waiting: T[] = [];
  let underWay = 0;
  let flushing: Promise<void> | null = null;

  const flush = async (): Promise<void> => {
    // A turn of the microtask queue, so that what one event brings travels together.
    await Promise.resolve();
    while (waiting.length > 0) {
      const group = waiting.length <= most ? waiting : waiting.slice(0, most);
      waiting = waiting.length <= most ? [] : waiting.slice(most);
      underWay = group.length;
      await write(group);
      underWay = 0;
    }
    flushing = null;
  };
  return {
    add(item) {
      waiting.push(item);
      flushing ??= flush();
    },
    idle: async () => {
      while (flushing) await flushing;
    },
    get size() {
      return waiting.length + underWay;
    },
  };
}
