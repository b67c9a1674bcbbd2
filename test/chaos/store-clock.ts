// The clock of the store in a chaos run, which can be put ahead or back. In the copy of the library that chaos runs, the
// store reads how far ahead it is beside its own clock: on Postgres from a table, so that it steps for all statements at
// once, on SQLite from a file, which every process reads anew. Every step is noted in a second file before and after it
// happens, so that every actor knows how far ahead the clock may have been when its call took effect.
import { appendFileSync, closeSync, openSync, readFileSync, readSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { told } from "./told.ts";

/** How far ahead the clock may be from one moment of this machine's clock to another. */
interface Span {
  readonly ahead: number;
  readonly from: number;
  readonly until: number;
}

/** The table that holds how far ahead the clock of a Postgres server is. */
export const CLOCK_TABLE = "public.chaos_clock";
/** Makes it. */
export const MAKE_CLOCK = `create table ${CLOCK_TABLE} (ahead bigint not null); insert into ${CLOCK_TABLE} values (0)`;

const AHEAD = "clock-ahead";
const STEPS = "clock-steps.txt";
const BYTES = 8;
/** Clocks tell whole milliseconds. */
const GRAIN_MS = 2;

let file: number | null = null;
const bytes = Buffer.alloc(BYTES);

/** The time of a store that reads this machine's clock; takes the place of its clock in the copy. */
export function storeNow(): number {
  file ??= openSync(join(told("folder"), AHEAD), "r");
  readSync(file, bytes, 0, BYTES, 0);
  return Date.now() + Number(bytes.readBigInt64LE());
}

/** Prepares the files for a clock that is right. */
export function layClock(folder: string): void {
  putAhead(folder, 0, "wx");
  appendFileSync(join(folder, STEPS), "");
}

/** Makes the clock step to so far ahead; `put` does it on the store. */
export async function stepClock(folder: string, ahead: number, put: (ahead: number) => Promise<void>): Promise<void> {
  const note = (word: string): void => appendFileSync(join(folder, STEPS), `${word} ${Date.now()} ${ahead}\n`);
  note("may");
  putAhead(folder, ahead, "r+");
  await put(ahead);
  note("is");
}

function putAhead(folder: string, ahead: number, flags: string): void {
  const open = openSync(join(folder, AHEAD), flags, 0o600);
  const value = Buffer.alloc(BYTES);
  value.writeBigInt64LE(BigInt(ahead));
  writeSync(open, value, 0, BYTES, 0);
  closeSync(open);
}

let known: readonly Span[] = [];
let size = -1;

/** How far ahead the clock may have been, at least and at most, since a moment of this machine's clock. */
export function aheadSince(since: number): { readonly least: number; readonly most: number } {
  const path = join(told("folder"), STEPS);
  const now = statSync(path).size;
  if (now !== size) [known, size] = [spansOf(readFileSync(path, "utf8")), now];
  const met = known.filter(({ until }) => until + GRAIN_MS >= since).map(({ ahead }) => ahead);
  return { least: Math.min(...met), most: Math.max(...met) };
}

/** The spans of all steps; one whose end was not noted may still last. */
export function spansOf(text: string): Span[] {
  let spans: Span[] = [{ ahead: 0, from: 0, until: Number.POSITIVE_INFINITY }];
  for (const line of text.split("\n").slice(0, -1)) {
    const [word, at, ahead] = line.split(" ").map((each, n) => (n === 0 ? each : Number(each))) as [
      string,
      number,
      number,
    ];
    const isOver = ({ until }: Span): boolean => word === "is" && until === Number.POSITIVE_INFINITY;
    if (word === "may") spans.push({ ahead, from: at, until: Number.POSITIVE_INFINITY });
    else spans = spans.map((span, n) => (isOver(span) && n < spans.length - 1 ? { ...span, until: at } : span));
  }
  return spans;
}
