// Verdicts about jobs that another open transaction holds. They are retried separately from the others, because a
// verdict that shares a write with a held one would wait with it.

/** How long to wait before the verdict about a held job is tried again. */
const AGAIN_MS = 1_000;

/** Keeps the verdicts that wait for other transactions. */
export interface LockedVerdicts<T> {
  add(verdict: T): void;
  /** It was written, or is no longer wanted. */
  delete(verdict: T): void;
  some(test: (verdict: T) => boolean): boolean;
  /** Resolves when no verdict waits. */
  idle(): Promise<void>;
  readonly size: number;
}

/** Passes waiting verdicts to `write` again and again, which deletes those it could write; at most so many at once. */
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
