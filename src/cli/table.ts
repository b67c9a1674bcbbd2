// Tables for people: aligned columns without borders, cut to the width of the terminal.
import type { Paint, Style } from "./paint.ts";
import { safeLine } from "./safe-text.ts";

/** One column. */
export interface Column {
  readonly title: string;
  readonly align?: "right";
  /** Gives way where the terminal is narrow, the last column first; never below this width. */
  readonly least?: number;
  /** Is left out where not even its least width is to be had. */
  readonly optional?: true;
}

/** A cell, with a style where it has one. */
export type Cell = string | number | { readonly text: string; readonly style: Style | undefined };

const GAP = "  ";

/** The lines of a table; `width` is that of the terminal, Infinity where nothing is to be cut. */
export function tableText(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  options: { readonly width: number; readonly paint: Paint },
): string {
  const left = columns.findIndex(({ optional }) => optional);
  if (left >= 0 && leastWidth(columns, rows) > options.width) {
    const without = <T>(list: readonly T[]): T[] => list.filter((_, at) => at !== left);
    return tableText(without(columns), rows.map(without), options);
  }
  const texts = rows.map((row) => row.map((cell) => safeLine(textOf(cell))));
  const natural = naturalWidths(columns, texts);
  const widths = fitted(columns, natural, options.width);
  const line = (cells: readonly string[], style: (at: number) => Style | undefined): string => {
    const parts = cells.map((cell, at) => {
      const cut = cutTo(cell, widths[at] as number);
      const pad = " ".repeat(Math.max(0, (widths[at] as number) - widthOf(cut)));
      const name = style(at);
      const shown = name === undefined ? cut : options.paint(name, cut);
      if (columns[at]?.align === "right") return pad + shown;
      return at === cells.length - 1 ? shown : shown + pad;
    });
    return `${parts.join(GAP).trimEnd()}\n`;
  };
  const head = line(
    columns.map(({ title }) => title),
    () => "dim",
  );
  const styleOf = (row: readonly Cell[], at: number): Style | undefined => {
    const cell = row[at];
    return typeof cell === "object" ? cell.style : undefined;
  };
  return head + texts.map((row, n) => line(row, (at) => styleOf(rows[n] as Cell[], at))).join("");
}

function naturalWidths(columns: readonly Column[], texts: readonly (readonly string[])[]): number[] {
  return columns.map(({ title }, at) => Math.max(widthOf(title), ...texts.map((row) => widthOf(row[at] ?? ""))));
}

/** What the table takes when everything has given way that may. */
function leastWidth(columns: readonly Column[], rows: readonly (readonly Cell[])[]): number {
  const natural = naturalWidths(
    columns,
    rows.map((row) => row.map((cell) => safeLine(textOf(cell)))),
  );
  const widths = natural.map((width, at) => Math.min(width, columns[at]?.least ?? width));
  return widths.reduce((sum, one) => sum + one, GAP.length * (columns.length - 1));
}

function textOf(cell: Cell): string {
  return typeof cell === "object" ? cell.text : String(cell);
}

/** Takes what is too much from the columns that may give way, the last one first. */
function fitted(columns: readonly Column[], natural: readonly number[], width: number): number[] {
  const widths = [...natural];
  let over = widths.reduce((sum, one) => sum + one, GAP.length * (columns.length - 1)) - width;
  for (let at = columns.length - 1; at >= 0 && over > 0; at--) {
    const least = columns[at]?.least;
    if (least === undefined) continue;
    const give = Math.min(over, Math.max(0, (widths[at] as number) - least));
    widths[at] = (widths[at] as number) - give;
    over -= give;
  }
  return widths;
}

/** The text within so many columns, with an ellipsis where something was cut. */
export function cutTo(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let cut = "";
  let used = 0;
  for (const char of text) {
    used += widthOf(char);
    if (used > width - 1) break;
    cut += char;
  }
  return `${cut}…`;
}

// Ideographs, Hangul, full-width forms and emoji take two columns; marks that combine take none.
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}]/u;
const NONE = /\p{Mn}|[\u200b-\u200d]/u;

/** Columns that a text takes on a terminal. */
export function widthOf(text: string): number {
  let width = 0;
  for (const char of text) width += char < "\u0300" ? 1 : NONE.test(char) ? 0 : WIDE.test(char) ? 2 : 1;
  return width;
}
