// Counts, spans and cut text as people read them.

/** `1,234 jobs`, `1 job`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en-US")} ${count === 1 ? one : many}`;
}

/** `400 ms` as `400ms`, more as `1.5s`. */
export function span(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)}ms` : `${Math.round(ms / 100) / 10}s`;
}

/** Columns that a text takes; what the examples print is one wide. */
export function widthOf(text: string): number {
  return Array.from(text).length;
}

/** The text within so many columns, with an ellipsis where something was cut. */
export function cutTo(text: string, width: number): string {
  const signs = Array.from(text);
  return signs.length <= width ? text : `${signs.slice(0, Math.max(0, width - 1)).join("")}…`;
}

/** A word for a shell, in quotes where it needs them. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
