// What is printed: headings, lines, tables that fit the terminal, and one line of progress. Colour only on a terminal
// and not with NO_COLOR.
import { checkLine, isLively, paint } from "../kit/paint.ts";

const { stdout } = process;
const MOST_CELL = 40;
let columns = Math.max(40, (stdout.isTTY && stdout.columns) || 80);
const CLEAR = "\r\u001b[2K";
const QUIET_MS = 3_000;

type Cell = string | number;

const cut = (text: string, width: number): string => (text.length > width ? `${text.slice(0, width - 1)}…` : text);

/** From here on nothing is cut. */
export function showInFull(): void {
  columns = Number.POSITIVE_INFINITY;
}

/** The start of a part. */
export function heading(text: string): void {
  stdout.write(`\n${paint("bold", text)}\n`);
}

/** A line, with a word before it that says what it is about. */
export function line(about: string, text: string): void {
  stdout.write(`  ${paint("cyan", about.padEnd(9))} ${text}\n`);
}

/** Text as it is, indented; what is too long for the screen is cut. */
export function quote(text: string, style?: "dim"): void {
  for (const each of text.split("\n")) {
    const shown = cut(each.trimEnd(), columns - 4);
    stdout.write(`    ${style ? paint(style, shown) : shown}`.trimEnd() + "\n");
  }
}

/** A line of a log, indented; what is too long goes on below. */
export function wrapped(text: string): void {
  let row = "";
  for (const word of text.split(" ")) {
    if (row.length + word.length + 5 > columns) {
      stdout.write(`    ${row}\n`);
      row = " ".repeat(12);
    }
    row = row === "" ? word : `${row} ${word}`;
  }
  stdout.write(`    ${row}\n`);
}

/** A command as a person would type it. */
export function command(text: string): void {
  stdout.write(`  ${paint("yellow", `$ ${text}`)}\n`);
}

/** A check of the books. */
export function check(ok: boolean, text: string): void {
  stdout.write(checkLine(ok, text));
}

/** Rows under their names; long cells and the last column are cut where the screen is narrow. */
export function table(rows: readonly Readonly<Record<string, unknown>>[]): void {
  const names = Object.keys(rows[0] ?? {});
  if (names.length === 0) return quote("(no rows)", "dim");
  const most = Number.isFinite(columns) ? MOST_CELL : columns;
  const cells = rows.map((row) => names.map((name) => shown(row[name], name === names.at(-1) ? columns : most)));
  const widths = names.map((name, at) => Math.max(name.length, ...cells.map((row) => String(row[at]).length)));
  const text = (row: readonly Cell[]): string =>
    row
      .map((cell, at) =>
        typeof cell === "number"
          ? String(cell).padStart(widths[at] ?? 0)
          : cell.padEnd(at === row.length - 1 ? 0 : (widths[at] ?? 0)),
      )
      .join("  ");
  quote(text(names), "dim");
  for (const row of cells) quote(text(row));
}

/** A value of a database as one line of text; both stores give times and numbers in their own ways. */
function shown(value: unknown, most: number): Cell {
  if (typeof value === "number") return value;
  if (typeof value === "bigint") return Number(value);
  if (value instanceof Date) return value.toISOString().replace("T", " ").slice(0, 23);
  const text = typeof value === "string" ? value : JSON.stringify(value ?? "");
  return /^\d{1,9}$/.test(text) ? Number(text) : cut(text.replaceAll("\n", " "), most);
}

let drawn = "";
let toldMs = 0;

/** How far it is: drawn again and again on a terminal, a line now and then elsewhere. */
export function progress(done: number, all: number, text: string): void {
  if (isLively) {
    const width = 20;
    const full = Math.round((done / Math.max(1, all)) * width);
    const bar = paint("green", "█".repeat(full)) + paint("dim", "░".repeat(width - full));
    drawn = `  ${bar} ${cut(`${done} of ${all} ${text}`, columns - width - 5)}`;
    stdout.write(CLEAR + drawn);
    return;
  }
  const now = performance.now();
  if (now - toldMs < QUIET_MS) return;
  toldMs = now;
  line("…", `${done} of ${all} ${text}`);
}

/** Takes the line of progress off the screen. */
export function progressDone(): void {
  if (drawn !== "") stdout.write(CLEAR);
  drawn = "";
}
