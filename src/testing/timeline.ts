// Time that stands still until the test advances it: events, earliest first, and those of one instant in the order of
// their requests.

/** The owner of entries; those of a dead owner never happen. */
export interface EntryOwner {
  alive: boolean;
}

interface Entry {
  readonly at: number;
  readonly owner: EntryOwner;
  readonly act: () => void;
}

/** The fake clock and its pending events. */
export class Timeline {
  /** Epoch milliseconds. */
  now: number;
  #entries: Entry[] = [];

  constructor(now: number) {
    this.now = now;
  }

  /** When the next event happens; Infinity if there is none. */
  get nextAt(): number {
    this.#entries = this.#entries.filter(({ owner }) => owner.alive);
    return this.#entries[0]?.at ?? Number.POSITIVE_INFINITY;
  }

  /** Schedules an action after the delay; returns a function that cancels it. */
  add(ms: number, owner: EntryOwner, act: () => void): () => void {
    const entry = { at: this.now + Math.max(0, Math.ceil(ms)), owner, act };
    const behind = this.#entries.findIndex(({ at }) => at > entry.at);
    this.#entries.splice(behind < 0 ? this.#entries.length : behind, 0, entry);
    return () => {
      const place = this.#entries.indexOf(entry);
      if (place >= 0) this.#entries.splice(place, 1);
    };
  }

  /** Makes the next event happen. */
  fire(): void {
    const entry = this.#entries.shift();
    if (entry?.owner.alive) entry.act();
  }
}

/** Resolves when no promise has anything left to do at this instant. */
export function settled(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}
