// What is printed: a table that grows by a row a turn, and on a terminal a bar below it while a turn runs. Colour only on a
// terminal and not with NO_COLOR.
import { styleText } from "node:util";

const { stdout, env } = process;
const isLively = stdout.isTTY === true && env.TERM !== "dumb";
const isColoured = isLively && !env.NO_COLOR;
const BAR = 30;
const WIDTHS = [5, 7, 6, 6, 6, 6, 6, 9, 6, 8];
let isDrawn = false;

/** How text looks. */
export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

/** The text in a style, where there are colours. */
export function paint(style: Style, text: string): string {
  return isColoured ? styleText(style, text, { validateStream: false }) : text;
}

/** A line that stays. */
export function print(line = ""): void {
  erase();
  stdout.write(`${line}\n`);
}

/** A row of the table, its cells to the right. */
export function tableRow(cells: readonly string[], style?: Style): void {
  const line = cells.map((cell, at) => cell.padStart(WIDTHS[at] ?? 8)).join(" ");
  print(style ? paint(style, line) : line);
}

/** A check of the books. */
export function check(ok: boolean, text: string): void {
  print(`  ${ok ? paint("green", "✓") : paint("red", "✗")} ${text}`);
}

/** Draws the bar, where somebody watches. */
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
