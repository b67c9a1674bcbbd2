// CSV after RFC 4180, as far as one cell goes.

/** A text as a cell: in quotes where it needs them. */
export function csvCell(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
