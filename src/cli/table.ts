// Tables for people: aligned columns without borders, cut to the width of the terminal. A note names the columns left
// out.
import type { Paint, Style } from "./paint.ts";
import { safeLine } from "../core/safe-text.ts";

/** One column. */
export interface Column {
  readonly title: string;
  readonly align?: "right";
  /**
   * Least width to which the column may shrink on a narrow terminal, the widest column first; absent, it does not
   * shrink.
   */
  readonly least?: number;
  /** Left out where not even its least width fits; of several, the first one that makes enough room. */
  readonly optional?: true;
  /** Left out, without a note, where no row has a value in it. */
  readonly onlyFilled?: true;
}

/** The keys of jobs, in a table of jobs that have any. */
export const KEY_COLUMN: Column = { title: "KEY", least: 8, optional: true, onlyFilled: true };

/** A cell, with an optional style. */
export type TableCell = string | number | { readonly text: string; readonly style: Style | undefined };

const GAP = "  ";

/** The space of a table. */
export interface TablePlace {
  /** Columns of the terminal; Infinity where nothing may be cut. */
  readonly width: number;
  readonly paint: Paint;
  /** Columns taken by an indent on the left. */
  readonly indent?: number;
}

/** A table of things: each column says how to read its cell. */
export function tableOf<T>(
  things: readonly T[],
  { width, paint }: TablePlace,
  columns: readonly (Column & { readonly of: (thing: T) => TableCell })[],
): string {
  const rows = things.map((thing) => columns.map(({ of }) => of(thing)));
  return tableText(columns, rows, { width, paint });
}

/** The lines of a table, and a note where columns had to be left out. */
export function tableText(all: readonly Column[], given: readonly (readonly TableCell[])[], place: TablePlace): string {
  const isShown = all.map(({ onlyFilled }, at) => !onlyFilled || given.some((row) => textOf(row[at] ?? "") !== ""));
  const columns = all.filter((_, at) => isShown[at]);
  const rows = given.map((row) => row.filter((_, at) => isShown[at]));
  const { width, paint, indent = 0 } = place;
  const room = width - indent;
  const left = leftOut(columns, rows, room);
  const kept = <T>(list: readonly T[]): T[] => list.filter((_, at) => !left.includes(at));
  const lines = linesOf(kept(columns), rows.map(kept), { width: room, paint });
  // An empty column needs no note.
  const missed = left.filter((at) => rows.some((row) => textOf(row[at] ?? "") !== ""));
  if (missed.length === 0) return lines;
  const names = missed.map((at) => columns[at]?.title).join(", ");
  const note = `${names} not shown at ${width} columns; widen the terminal or use --json`;
  return `${lines}${paint("dim", cutTo(note, room))}\n`;
}

/** The columns that do not fit, even if the others shrink to their least width. */
function leftOut(columns: readonly Column[], rows: readonly (readonly TableCell[])[], width: number): number[] {
  const texts = rows.map((row) => row.map((cell) => safeLine(textOf(cell))));
  const natural = naturalWidths(columns, texts);
  const optional = columns.flatMap((column, at) => (column.optional ? [at] : []));
  const empty = optional.filter((at) => texts.every((row) => row[at] === ""));
  if (totalOf(natural) <= width) return [];
  const least = natural.map((one, at) => Math.min(one, columns[at]?.least ?? one));
  const fits = (left: readonly number[]): boolean => totalOf(least.filter((_, at) => !left.includes(at))) <= width;
  return [empty, ...optional.map((at) => [...empty, at])].find(fits) ?? optional;
}

/** The total width of columns of these widths. */
function totalOf(widths: readonly number[]): number {
  return widths.reduce((sum, one) => sum + one, GAP.length * (widths.length - 1));
}

function linesOf(columns: readonly Column[], rows: readonly (readonly TableCell[])[], place: TablePlace): string {
  const texts = rows.map((row) => row.map((cell) => safeLine(textOf(cell))));
  const natural = naturalWidths(columns, texts);
  const widths = fitted(columns, natural, place.width);
  const line = (cells: readonly string[], style: (at: number) => Style | undefined): string => {
    const parts = cells.map((cell, at) => {
      const cut = cutTo(cell, widths[at] as number);
      const pad = " ".repeat(Math.max(0, (widths[at] as number) - widthOf(cut)));
      const name = style(at);
      const shown = name === undefined ? cut : place.paint(name, cut);
      if (columns[at]?.align === "right") return pad + shown;
      return at === cells.length - 1 ? shown : shown + pad;
    });
    return `${parts.join(GAP).trimEnd()}\n`;
  };
  const head = line(
    columns.map(({ title }) => title),
    () => "dim",
  );
  const styleOf = (row: readonly TableCell[], at: number): Style | undefined => {
    const cell = row[at];
    return typeof cell === "object" ? cell.style : undefined;
  };
  return head + texts.map((row, n) => line(row, (at) => styleOf(rows[n] as TableCell[], at))).join("");
}

function naturalWidths(columns: readonly Column[], texts: readonly (readonly string[])[]): number[] {
  return columns.map(({ title }, at) => Math.max(widthOf(title), ...texts.map((row) => widthOf(row[at] ?? ""))));
}

function textOf(cell: TableCell): string {
  return typeof cell === "object" ? cell.text : String(cell);
}

/** Shrinks the columns that may shrink until the table fits, always the widest first. */
function fitted(columns: readonly Column[], natural: readonly number[], width: number): number[] {
  const widths = natural.map((one, at) => (columns[at]?.least === undefined ? one : Math.min(one, width)));
  for (let over = totalOf(widths) - width; over > 0; over--) {
    const giving = columns
      .map(({ least }, at) => ({ at, own: widths[at] as number, least: least ?? Number.POSITIVE_INFINITY }))
      .filter(({ own, least }) => own > least)
      .toSorted((a, b) => b.own - a.own)[0];
    if (!giving) break;
    widths[giving.at] = giving.own - 1;
  }
  return widths;
}

/** The text cut to so many columns, with an ellipsis where something was cut. */
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
