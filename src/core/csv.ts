// CSV as in RFC 4180, for one cell.

/** A text as a cell, quoted where needed. */
export function csvCell(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
