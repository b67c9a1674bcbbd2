// From pages to a stream of items, and from a stream to chunks that one call to the store can take.
import type { Page } from "../store/store.ts";

/** Jobs or letters that are read, or changed, with one call. */
export const PAGE = 200;

/** Every item of every page, each page read when it is needed. */
export async function* everyItem<T>(page: (cursor: string | null) => Promise<Page<T>>): AsyncGenerator<T> {
  for (let cursor: string | null = null; ; ) {
    const { items, next }: Page<T> = await page(cursor);
    yield* items;
    if (next === null) return;
    cursor = next;
  }
}

/** The items in chunks of a page. */
export async function* inChunks<T>(items: AsyncIterable<T> | Iterable<T>): AsyncGenerator<T[]> {
  let chunk: T[] = [];
  for await (const item of items) {
    if (chunk.push(item) < PAGE) continue;
    yield chunk;
    chunk = [];
  }
  if (chunk.length > 0) yield chunk;
}
