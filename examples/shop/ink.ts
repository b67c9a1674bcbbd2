// Lines of coloured text that never get wider than they may: pieces with a style, cut before they are painted.
import { cutTo, widthOf } from "../kit/words.ts";

/** Styles, joined by spaces where there are several. */
export type InkStyle = "" | Ink | `bold ${Exclude<Ink, "bold">}`;
type Ink = keyof typeof CODES;

/** A piece of a line. */
export type Piece = readonly [text: string, style?: InkStyle];

const CODES = {
  bold: 1,
  red: 31,
  green: 32,
  yellow: 33,
  blue: 34,
  magenta: 35,
  cyan: 36,
  gray: 90,
} as const;

/** The pieces as one line of at most so many columns. */
export function inkLine(pieces: readonly Piece[], columns: number, colour: boolean): string {
  let left = columns;
  let line = "";
  for (const [text, style = ""] of pieces) {
    const cut = cutTo(text, left);
    left -= widthOf(cut);
    line += colour && style !== "" ? painted(cut, style) : cut;
    if (left <= 0) break;
  }
  return line;
}

/** Pieces of at most so many columns, filled up with spaces. */
export function inkCell(pieces: readonly Piece[], columns: number): Piece[] {
  const cell: Piece[] = [];
  let left = columns;
  for (const [text, style = ""] of pieces) {
    const cut = cutTo(text, left);
    left -= widthOf(cut);
    cell.push([cut, style]);
    if (left <= 0) break;
  }
  return left > 0 ? [...cell, [" ".repeat(left)]] : cell;
}

function painted(text: string, style: InkStyle): string {
  if (text.trim() === "") return text;
  const codes = style.split(" ").map((name) => CODES[name as Ink]);
  return `\u001b[${codes.join(";")}m${text}\u001b[0m`;
}
