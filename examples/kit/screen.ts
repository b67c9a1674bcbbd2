// What is printed: lines that stay, and below them, on a terminal, a panel that is drawn again and again. Elsewhere a line
// about the state now and then. Colour only on a terminal and not with NO_COLOR.
import { checkLine, isLively, paint, type PaintStyle } from "./paint.ts";

const { stdout } = process;
const MARKS = { info: ["·", "dim"], good: ["✓", "green"], wait: ["↻", "yellow"], bad: ["✗", "red"] } as const;
const QUIET_MS = 3_000;

let drawn = 0;
let toldMs = 0;

/** A line that stays, with the second of the day. */
export function tell(seconds: number, mark: keyof typeof MARKS, text: string): void {
  const [sign, style] = MARKS[mark];
  print(`${paint("dim", `${seconds.toFixed(1).padStart(5)} s`)}  ${paint(style, sign)} ${text}`);
}

/** The start of a part. */
export function heading(text: string): void {
  print(`\n${paint("bold", text)}`);
}

/** Text as it is, indented. */
export function quote(text: string, style?: PaintStyle): void {
  for (const line of text.split("\n")) print(`  ${style ? paint(style, line) : line}`);
}

/** A check of the books. */
export function check(ok: boolean, text: string): void {
  panelDone();
  stdout.write(checkLine(ok, text));
}

/** Draws the panel again; where there is none, says the short form now and then. */
export function panel(lines: readonly string[], short: () => string): void {
  if (isLively) {
    const width = Math.max(40, stdout.columns || 80);
    const rows = Math.max(4, stdout.rows || 24);
    const shown = lines.slice(0, rows - 2).map((line) => clip(line, width - 1));
    stdout.write(`${erase()}${shown.map((line) => `${line}\n`).join("")}`);
    drawn = shown.length;
    return;
  }
  const now = performance.now();
  if (now - toldMs < QUIET_MS) return;
  toldMs = now;
  stdout.write(`${short()}\n`);
}

/** Takes the panel off the screen. */
export function panelDone(): void {
  if (drawn > 0) stdout.write(erase());
  drawn = 0;
}

function print(line: string): void {
  panelDone();
  stdout.write(`${line}\n`);
}

function erase(): string {
  return drawn > 0 ? `\u001b[${drawn}A\r\u001b[J` : "";
}

/** At most so many columns, whatever colours are in between. */
function clip(line: string, width: number): string {
  let left = width;
  // oxlint-disable-next-line no-control-regex
  const parts = line.split(/(\u001b\[[\d;]*m)/);
  return parts
    .map((part) => {
      if (part.startsWith("\u001b")) return part;
      const cut = Array.from(part).slice(0, left).join("");
      left -= Array.from(cut).length;
      return cut;
    })
    .join("");
}
