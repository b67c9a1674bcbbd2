// What is to happen in the world, earliest first, and of one moment in the order in which it was asked for.
// A binary heap; nothing here knows about actors beyond carrying them.

/** Something that will happen. */
export interface Entry<Owner> {
  at: number;
  readonly order: number;
  readonly owner: Owner | null;
  readonly act: () => void;
  dropped: boolean;
}

/** Entries by time, then by order. */
export class Agenda<Owner> {
  #heap: Entry<Owner>[] = [];

  peek(): Entry<Owner> | undefined {
    return this.#heap[0];
  }

  push(entry: Entry<Owner>): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(entry);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent] as Entry<Owner>;
      if (!isBefore(entry, above)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = entry;
  }

  pop(): Entry<Owner> | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      const right = heap[child + 1];
      if (right !== undefined && isBefore(right, heap[child] as Entry<Owner>)) child++;
      const below = heap[child] as Entry<Owner>;
      if (!isBefore(below, last)) break;
      heap[at] = below;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

function isBefore<Owner>(a: Entry<Owner>, b: Entry<Owner>): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
