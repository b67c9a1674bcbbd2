// The search for the bad one among items of which nobody knows more than that a run with all of them failed. Only one half
// is run: if it is good the bad one is in the other, which need not be run to be known; if it is not, nothing is known about
// the other any more, and it is put aside. So one bad item among n is found in log2(n) runs.

/** A search as far as it has come. */
export interface Search<Item> {
  /** What is run next; one alone at the end. */
  readonly next: readonly Item[];
  /** Holds a bad one if all of `next` are good. */
  readonly rest: readonly Item[];
  /** Was in company with a bad one, and may be good or bad. */
  readonly aside: readonly Item[];
}

/** Goes on among items of which at least one is bad. */
export function searchAmong<Item>(bad: readonly Item[], aside: readonly Item[] = []): Search<Item> {
  const half = halfOf(bad.length);
  return { next: bad.slice(0, half), rest: bad.slice(half), aside };
}

/** The larger half of so many: how many items go together after so many did not. */
export function halfOf(count: number): number {
  return Math.ceil(count / 2);
}
