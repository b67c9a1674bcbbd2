// Searches for the bad item among items of which only one thing is known: a run with all of them failed. Each step runs
// one half. If it succeeds, the bad item is in the other half. If it fails, nothing is known about the other half,
// which is put aside. So one bad item among n is found in log2(n) runs.

/** The state of a search. */
export interface Search<Item> {
  /** The items to run next; a single one at the end. */
  readonly next: readonly Item[];
  /** Holds a bad item if all of `next` are good. */
  readonly rest: readonly Item[];
  /** Items that ran together with a bad one; each may be good or bad. */
  readonly aside: readonly Item[];
}

/** Continues among items of which at least one is bad. */
export function searchAmong<Item>(bad: readonly Item[], aside: readonly Item[] = []): Search<Item> {
  const half = halfOf(bad.length);
  return { next: bad.slice(0, half), rest: bad.slice(half), aside };
}

/** The larger half: the batch size after a batch of so many items failed. */
export function halfOf(count: number): number {
  return Math.ceil(count / 2);
}
