// All pages of dead letters, walked through by their cursors.
import type { DeadLetterQuery, Store } from "../../src/store/store.ts";

/** The job ids of all pages. */
export async function walk(store: Store, query: DeadLetterQuery): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | null = null;
  do {
    const page = await store.deadLetters({ ...query, cursor });
    ids.push(...page.items.map(({ job }) => job.id));
    cursor = page.next;
  } while (cursor !== null);
  return ids;
}
