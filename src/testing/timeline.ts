// Time that stands still until somebody lets it pass: what is to happen, earliest first, and of one instant in the order
// in which it was asked for.

/** Whose entries these are; those of a dead owner never happen. */
export interface EntryOwner {
  alive: boolean;
}

interface Entry {
  readonly at: number;
  readonly owner: EntryOwner;
  readonly act: () => void;
}

/** The fake clock and what waits for it. */
export class Timeline {
  /** Epoch milliseconds. */
  now: number;
  #entries: Entry[] = [];

  constructor(now: number) {
    this.now = now;
  }

  /** When the next thing happens; Infinity if nothing is to. */
  get nextAt(): number {
    this.#entries = this.#entries.filter(({ owner }) => owner.alive);
    return this.#entries[0]?.at ?? Number.POSITIVE_INFINITY;
  }

  /** Lets something happen after the delay; returns the way to take it back. */
  add(ms: number, owner: EntryOwner, act: () => void): () => void {
    const entry = { at: this.now + Math.max(0, Math.ceil(ms)), owner, act };
    const behind = this.#entries.findIndex(({ at }) => at > entry.at);
    this.#entries.splice(behind < 0 ? this.#entries.length : behind, 0, entry);
    return () => {
      const place = this.#entries.indexOf(entry);
      if (place >= 0) this.#entries.splice(place, 1);
    };
  }

  /** Makes the next thing happen. */
  fire(): void {
    const entry = this.#entries.shift();
    if (entry?.owner.alive) entry.act();
  }
}

/** Resolves when no promise has anything left to do at this instant. */
export function settled(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}
