// Answers that promise something, held back until what they promise is on disk. Syncs run beside the work: one that
// begins covers everything written by then, and nothing that is written later.
import type { System } from "../../system/system.ts";

/** What can be put on disk. */
export interface Disk {
  /** Syncs what was written by now, beside this thread, and calls back once; at most `SYNCS` at a time. */
  begin(done: (error: Error | null) => void): void;
  /** The same in this thread; throws if it fails. */
  now(): void;
}

/** Syncs at once. With a second one, what was written during the first need not wait for its end. */
export const SYNCS = 2;

/**
 * How long a sync may take beside us. Threads for it are few, and the handlers of the process share them: where they are
 * all busy, we sync in our own thread instead.
 */
const LATE_MS = 20;

interface Sync<T> {
  /** What becomes true with it. */
  answers: T[];
  isLate: boolean;
}

/** Sends answers once they are true. */
export class UnsyncedAnswers<T> {
  readonly #disk: Disk;
  readonly #after: System["after"];
  /** Hears which answers are true now, or why it is not known. */
  readonly #release: (answers: T[], error: Error | null) => void;
  readonly #underWay = new Set<Sync<T>>();
  /** Answers that no sync under way covers. */
  #later: T[] = [];

  constructor(disk: Disk, after: System["after"], release: (answers: T[], error: Error | null) => void) {
    this.#disk = disk;
    this.#after = after;
    this.#release = release;
  }

  /** True while something is not on disk yet. */
  get isBusy(): boolean {
    return this.#underWay.size > 0 || this.#later.length > 0;
  }

  /** Takes answers about what has just been written; alone means that nobody else has anything to do meanwhile. */
  hold(answers: readonly T[], alone: boolean): void {
    this.#later.push(...answers);
    const here = this.#underWay.size === 0 ? alone : [...this.#underWay].some(({ isLate }) => isLate);
    if (here) this.finish();
    else if (this.#underWay.size < SYNCS) this.#begin();
  }

  /** Syncs in this thread, and sends all there is. */
  finish(): void {
    const answers = this.#takeAll();
    if (answers.length === 0) return;
    try {
      this.#disk.now();
    } catch (error) {
      return this.#release(answers, error as Error);
    }
    this.#release(answers, null);
  }

  #begin(): void {
    const sync: Sync<T> = { answers: this.#later, isLate: false };
    this.#later = [];
    this.#underWay.add(sync);
    const takeBack = this.#after(LATE_MS, () => {
      sync.isLate = true;
      this.finish();
    });
    this.#disk.begin((error) => {
      takeBack();
      // Everything waits for the same file: where one sync failed, the others prove nothing.
      const answers = error ? this.#takeAll() : sync.answers;
      this.#underWay.delete(sync);
      if (this.#later.length > 0) this.#begin();
      if (error || answers.length > 0) this.#release(answers, error);
    });
  }

  #takeAll(): T[] {
    const answers: T[] = [];
    for (const sync of this.#underWay) {
      answers.push(...sync.answers);
      sync.answers = [];
    }
    answers.push(...this.#later);
    this.#later = [];
    return answers;
  }
}
