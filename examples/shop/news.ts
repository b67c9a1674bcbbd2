// What just happened and why, in one line each. Things of one kind that come close together become one sentence, so that
// people can read along; what matters is never held back.

/** How a line is meant. */
export type Tone = "info" | "good" | "wait" | "bad" | "kill";

/** One line of news. */
export interface NewsItem {
  readonly atMs: number;
  readonly tone: Tone;
  readonly text: string;
}

/** What came together under one key. */
interface Gathering<T> {
  readonly tone: Tone;
  readonly items: T[];
  readonly sentence: (items: readonly T[]) => string;
  readonly dueMs: number;
}

/** Things of one kind are collected this long before they are told. */
const GATHER_MS = 450;
/** Collects and tells. */
export class News {
  readonly items: NewsItem[] = [];
  /** Things of one kind are told again no sooner than this. */
  quietMs = 2_500;
  readonly #elapsed: () => number;
  readonly #gathering = new Map<string, Gathering<unknown>>();
  readonly #toldAt = new Map<string, number>();
  #listener: ((item: NewsItem) => void) | null = null;

  constructor(elapsed: () => number) {
    this.#elapsed = elapsed;
  }

  /** Hears every line from now on. */
  listen(listener: (item: NewsItem) => void): void {
    this.#listener = listener;
  }

  /** Says it now. */
  tell(tone: Tone, text: string): void {
    const item: NewsItem = { atMs: this.#elapsed(), tone, text };
    this.items.push(item);
    this.#listener?.(item);
  }

  /** Says it soon, together with others of the key. */
  gather<T>(key: string, tone: Tone, item: T, sentence: (items: readonly T[]) => string): void {
    const known = this.#gathering.get(key);
    if (known) return void known.items.push(item);
    const now = this.#elapsed();
    const quietUntil = (this.#toldAt.get(key) ?? Number.NEGATIVE_INFINITY) + this.quietMs;
    const dueMs = Math.max(now + GATHER_MS, quietUntil);
    this.#gathering.set(key, {
      tone,
      items: [item],
      sentence: sentence as (items: readonly unknown[]) => string,
      dueMs,
    });
  }

  /** Tells what was collected long enough, and what is in a hurry. */
  tick(hurries: (key: string) => boolean = () => false): void {
    const now = this.#elapsed();
    for (const [key, { tone, items, sentence, dueMs }] of this.#gathering) {
      if (now < dueMs && !hurries(key)) continue;
      this.#gathering.delete(key);
      if (now >= dueMs) this.#toldAt.set(key, now);
      this.tell(tone, sentence(items));
    }
  }
}
