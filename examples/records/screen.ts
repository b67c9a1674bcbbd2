// What is printed: a table that grows by a row a turn, and on a terminal a bar below it while a turn runs. Colour only on a
// terminal and not with NO_COLOR.
import { checkLine, isLively, paint, type PaintStyle } from "../kit/paint.ts";

const { stdout } = process;
const BAR = 30;
const WIDTHS = [5, 7, 6, 6, 6, 6, 6, 9, 6, 8];
let isDrawn = false;

/** A line that stays. */
export function print(line = ""): void {
  erase();
  stdout.write(`${line}\n`);
}

/** A row of the table, its cells to the right. */
export function tableRow(cells: readonly string[], style?: PaintStyle): void {
  const line = cells.map((cell, at) => cell.padStart(WIDTHS[at] ?? 8)).join(" ");
  print(style ? paint(style, line) : line);
}

/** A check of the books. */
export function check(ok: boolean, text: string): void {
  erase();
  stdout.write(checkLine(ok, text));
}

/** Draws the bar, on a terminal. */
export function bar(share: number, text: string): void {
  if (!isLively) return;
  const full = Math.round(Math.min(1, share) * BAR);
  erase();
  stdout.write(`  ${paint("cyan", "█".repeat(full))}${paint("dim", "░".repeat(BAR - full))} ${text}`);
  isDrawn = true;
}

function erase(): void {
  if (isDrawn) stdout.write("\r\u001b[K");
  isDrawn = false;
}
