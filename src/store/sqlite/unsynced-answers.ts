// Answers that promise something, held back until what they promise is on disk. Syncs run beside the work: one that
// begins covers everything written by then, and nothing that is written later.
import type { System } from "../../system/system.ts";

/** What can be put on disk. */
export interface Disk {
  /** Syncs what was written by now, beside this thread, and calls back once; at most `SYNCS` at a time. */
  begin(done: (error: Error | null) => void): void;
  /** The same in this thread; throws if it fails. */
  now(): void;
  /** Calls back when whatever was to be done beside before has a thread of its own. */
  reached(called: () => void): void;
}

/** Syncs at once. With a second one, what was written during the first need not wait for its end. */
export const SYNCS = 2;

/**
 * Threads for syncs are few, and the handlers of the process share them: where a sync has waited this long for one, we sync
 * in our own thread instead. Where it has one and the disk is slow, we would only wait with it, and everybody with us.
 */
const LATE_MS = 20;
/** After this long we ask whether it has one. */
const ASK_MS = 10;

/**
 * A caller that waits for each answer is back this soon. It alone is synced for in our own thread, which spares it two
 * changes of thread; whoever comes later is not alone, and others must not wait for a disk that is slow just then.
 */
const AT_ONCE_MS = 1;

interface Sync<T> {
  /** What becomes true with it. */
  answers: T[];
  isLate: boolean;
}

/** Sends answers once they are true. */
export class UnsyncedAnswers<T> {
  readonly #disk: Disk;
  readonly #system: Pick<System, "after" | "monotonic">;
  /** Hears which answers are true now, or why it is not known. */
  readonly #release: (answers: T[], error: Error | null) => void;
  readonly #underWay = new Set<Sync<T>>();
  /** Answers that no sync under way covers. */
  #later: T[] = [];
  #releasedAt = Number.NEGATIVE_INFINITY;

  constructor(
    disk: Disk,
    system: Pick<System, "after" | "monotonic">,
    release: (answers: T[], error: Error | null) => void,
  ) {
    this.#disk = disk;
    this.#system = system;
    this.#release = (answers, error) => {
      this.#releasedAt = system.monotonic();
      release(answers, error);
    };
  }

  /** True while something is not on disk yet. */
  get isBusy(): boolean {
    return this.#underWay.size > 0 || this.#later.length > 0;
  }

  /** Takes answers about what has just been written; alone means that nothing else was there to be done. */
  hold(answers: readonly T[], alone: boolean): void {
    this.#later.push(...answers);
    const here =
      this.#underWay.size === 0 ? alone && this.#isAtOnce() : [...this.#underWay].some(({ isLate }) => isLate);
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

  #isAtOnce(): boolean {
    return this.#system.monotonic() - this.#releasedAt < AT_ONCE_MS;
  }

  #begin(): void {
    const sync: Sync<T> = { answers: this.#later, isLate: false };
    this.#later = [];
    this.#underWay.add(sync);
    const waited = this.#watch(sync);
    this.#disk.begin((error) => {
      waited();
      // Everything waits for the same file: where one sync failed, the others prove nothing.
      const answers = error ? this.#takeAll() : sync.answers;
      this.#underWay.delete(sync);
      if (this.#later.length > 0) this.#begin();
      if (error || answers.length > 0) this.#release(answers, error);
    });
  }

  /** Does here what finds no thread beside; returns the way to stop. */
  #watch(sync: Sync<T>): () => void {
    const { after } = this.#system;
    let hasThread = false;
    let takeBack = after(ASK_MS, () => {
      this.#disk.reached(() => {
        hasThread = true;
      });
      takeBack = after(LATE_MS - ASK_MS, () => {
        if (hasThread) return;
        sync.isLate = true;
        this.finish();
      });
    });
    return () => takeBack();
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
