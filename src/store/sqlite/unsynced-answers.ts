// Holds answers that promise durability back until what they promise is on disk. Syncs run beside the work: one that
// begins covers everything written until then, and nothing written later.
import type { System } from "../../system/system.ts";

/** Something that can be synced. */
export interface Disk {
  /** Syncs what was written until now, outside this thread, and calls back once; at most `SYNCS` at a time. */
  begin(done: (error: Error | null) => void): void;
  /** The same in this thread; throws if it fails. */
  now(): void;
  /** Calls back when all earlier background work has a thread. */
  reached(called: () => void): void;
}

/** Syncs at the same time. With a second one, writes during the first need not wait for its end. */
export const SYNCS = 2;

/**
 * There are few threads for syncs, and the handlers of the process share them: where a sync has waited this long for
 * one, we sync in our own thread instead. If it has a thread and the disk is slow, doing so would only make this
 * thread, and all callers, wait too.
 */
const LATE_MS = 20;
/** After this long we check whether it has a thread. */
const ASK_MS = 10;

/**
 * A caller that waits for each answer is back this soon. For a single such caller we sync in our own thread, which
 * saves two thread switches; a later caller is not alone, and others must not wait for a disk that is slow just then.
 */
const AT_ONCE_MS = 1;

interface Sync<T> {
  /** The answers that it makes true. */
  answers: T[];
  isLate: boolean;
}

/** Sends answers once they are true. */
export class UnsyncedAnswers<T> {
  readonly #disk: Disk;
  readonly #system: Pick<System, "after" | "monotonic">;
  /** Called with the answers that are true now, or with the error that leaves them unknown. */
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

  /** Takes answers about what has just been written; `alone` means that there was no other work. */
  hold(answers: readonly T[], alone: boolean): void {
    this.#later.push(...answers);
    const here =
      this.#underWay.size === 0 ? alone && this.#isAtOnce() : [...this.#underWay].some(({ isLate }) => isLate);
    if (here) this.finish();
    else if (this.#underWay.size < SYNCS) this.#begin();
  }

  /** Syncs in this thread, and sends all answers. */
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
      // All syncs are of the same file: where one failed, the others prove nothing.
      const answers = error ? this.#takeAll() : sync.answers;
      this.#underWay.delete(sync);
      if (this.#later.length > 0) this.#begin();
      if (error || answers.length > 0) this.#release(answers, error);
    });
  }

  /** Syncs here what finds no thread; returns a function that stops the watch. */
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
