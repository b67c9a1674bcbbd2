// A page of rows in memory, from those that it may look at.

/** The rows of a page; `seen` is the last row looked at, where it may look at no more and the page is not full. */
export function lookThrough<Row extends { readonly seq: number }>(
  rows: readonly Row[],
  { limit, lookAt }: { readonly limit: number; readonly lookAt?: number },
  matches: (row: Row) => boolean,
): { readonly items: Row[]; readonly next: string | null; readonly seen: Row | null } {
  const found = rows.slice(0, lookAt).filter(matches);
  const items = found.slice(0, limit);
  if (found.length > limit) return { items, next: String(items.at(-1)?.seq), seen: null };
  const seen = lookAt === undefined ? null : (rows[lookAt - 1] ?? null);
  return { items, next: seen && String(seen.seq), seen };
}
