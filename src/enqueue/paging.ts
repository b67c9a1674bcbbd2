// Turns pages into a stream of items, and a stream into chunks for one store call.
import type { Page } from "../store/store.ts";

/** Jobs or letters that one call reads or changes. */
export const PAGE = 200;

/** The most jobs or letters that one page looks at where the caller does not say: a few milliseconds. */
export const LOOK_AT = 10_000;

/** Every item of every page; each page is read on demand. */
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
