// Colour where there is a terminal, and not with NO_COLOR.
import { styleText } from "node:util";

const { stdout, env } = process;

/** True where lines can be drawn again. */
export const isLively = stdout.isTTY === true && env["TERM"] !== "dumb";
const isColoured = isLively && !env["NO_COLOR"];

/** How text looks. */
export type PaintStyle = "bold" | "dim" | "red" | "green" | "yellow" | "cyan" | "magenta";

/** The text in a style, where there are colours. */
export function paint(style: PaintStyle, text: string): string {
  return isColoured ? styleText(style, text, { validateStream: false }) : text;
}

/** A line about a check of the books. */
export function checkLine(ok: boolean, text: string): string {
  return `  ${ok ? paint("green", "✓") : paint("red", "✗")} ${text}\n`;
}
