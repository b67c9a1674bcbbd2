// The end of the demo: why jobs died, the books, and what to type next. The same in a terminal and in a file.
import type { CauseCount } from "redrive";
import type { Books } from "./books.ts";
import { shortCause } from "./cause.ts";
import type { NextCommands } from "./commands.ts";
import { inkLine, type Piece } from "./ink.ts";

/** What there is to say. */
export interface Summary {
  readonly books: Books;
  readonly retries: number;
  readonly ms: number;
  readonly seed: number;
  readonly causes: readonly CauseCount[];
  readonly next: readonly NextCommands[];
  /** Time was up before everything had come to an end. */
  readonly late: boolean;
}

const MARGIN = "  ";

/** The lines of the summary; commands are never cut, so that they can be copied. */
export function summaryLines(summary: Summary, columns: number, colour: boolean): string[] {
  const { next } = summary;
  const cut = [...causeLines(summary.causes), [], ...bookLines(summary)];
  const width = Math.min(columns - 1, 132);
  const commands = next.flatMap(({ why, commands: lines }): Piece[][] => [
    [["  "], [why, "gray"]],
    ...lines.map((line): Piece[] => [["    "], [line, "cyan"]]),
  ]);
  return [
    "",
    ...cut.map((line) => inkLine([[MARGIN], ...line], width, colour).trimEnd()),
    "",
    ...[[["What to type next", "bold"] as Piece], ...commands].map((line) =>
      inkLine([[MARGIN], ...line], Number.POSITIVE_INFINITY, colour),
    ),
    "",
  ];
}

function causeLines(causes: readonly CauseCount[]): Piece[][] {
  if (causes.length === 0) return [[["No dead letters", "bold"]]];
  const widest = Math.max(...causes.map((cause) => cause.class.length));
  return [
    [["Dead letters by cause", "bold"]],
    ...causes.map(({ count, class: found, message }): Piece[] => [
      [String(count).padStart(4), "bold red"],
      [`  ${found.padEnd(widest)}  `, "red"],
      [shortCause(message)],
    ]),
  ];
}

function bookLines({ books, retries, ms, seed, late }: Summary): Piece[][] {
  const verdict: Piece = books.balanced
    ? ["The books balance", "bold green"]
    : ["THE BOOKS DO NOT BALANCE", "bold red"];
  const facts = `  ${books.enqueued} jobs, ${retries} retries, ${(ms / 1_000).toFixed(1)} s, seed ${seed}`;
  return [
    [verdict, [facts, "gray"]],
    ...(late ? [[["Time was up before every job had come to an end.", "red"] as Piece]] : []),
    ...books.checks.map(({ ok, text }): Piece[] => [
      ok ? ["  ✓ ", "green"] : ["  ✗ ", "bold red"],
      [text, ok ? "" : "red"],
    ]),
  ];
}
