// What comes and goes with every job is kept in an array in which each knows its place, not in a Set. A Set that is full
// moves to a new table, and the old one keeps what it had and a way to the new one; once V8 has one of them among its old
// objects, each keeps the next alive, and with them every job there ever was, until the next full collection.

/** Something that can be in one bag at a time. */
export interface Bagged {
  /** Where it is in its bag. */
  place: number;
}

/** Things in no order, of which any can be taken out at once. */
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

  /** The last one takes its place. */
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

  /** Those that are there now, whatever becomes of them meanwhile. */
  [Symbol.iterator](): Iterator<T> {
    return [...this.#items][Symbol.iterator]();
  }
}
