// A collection in an array in which each item knows its index, for items that come and go with every job. A Set would
// leak: when full it moves to a new table, and the old table keeps its content and a link to the new one. Once V8 has
// moved one table to its old objects, each keeps the next alive, and with them every job there ever was, until the next
// full collection.

/** An item that can be in one bag at a time. */
export interface Bagged {
  /** Its index in the bag. */
  place: number;
}

/** Items in no order, any of which can be removed in constant time. */
export class Bag<T extends Bagged> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  has(item: T): boolean {
    return this.#items[item.place] === item;
  }

  add(item: T): void {
    if (!this.has(item)) item.place = this.#items.push(item) - 1;
  }

  /** Removes the item; the last one moves to its index. */
  delete(item: T): boolean {
    if (!this.has(item)) return false;
    const last = this.#items.pop() as T;
    if (last === item) return true;
    this.#items[item.place] = last;
    last.place = item.place;
    return true;
  }

  some(test: (item: T) => boolean): boolean {
    return this.#items.some(test);
  }

  /** The items that are in it now, even if some are removed during the iteration. */
  [Symbol.iterator](): Iterator<T> {
    return [...this.#items][Symbol.iterator]();
  }
}
