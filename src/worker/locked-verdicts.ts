// Verdicts about jobs that somebody holds in an open transaction. They are tried again beside the others and not among
// them: whoever shares a write with one that is still held waits with it.

/** How long a job that is held is left alone before its verdict is tried again. */
const AGAIN_MS = 1_000;

/** Keeps what waits for the transactions of others. */
export interface LockedVerdicts<T> {
  add(verdict: T): void;
  /** It was written, or nobody wants it any more. */
  delete(verdict: T): void;
  some(test: (verdict: T) => boolean): boolean;
  /** Resolves when nothing waits. */
  idle(): Promise<void>;
  readonly size: number;
}

/** Hands what waits to `write` again and again, which deletes what it could write; at most so many at once. */
export function openLocked<T>(
  write: (verdicts: T[]) => Promise<void>,
  most: number,
  sleep: (ms: number) => Promise<void>,
): LockedVerdicts<T> {
  const held = new Set<T>();
  let trying: Promise<void> | null = null;
  const tryAgain = async (): Promise<void> => {
    while (held.size > 0) {
      await sleep(AGAIN_MS);
      await write([...held].slice(0, most));
    }
    trying = null;
  };
  return {
    add(verdict) {
      held.add(verdict);
      trying ??= tryAgain();
    },
    delete: (verdict) => void held.delete(verdict),
    some: (test) => held.size > 0 && [...held].some(test),
    idle: async () => void (await trying),
    get size() {
      return held.size;
    },
  };
}
