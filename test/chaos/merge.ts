// Brings the history files of all processes into one order, reading each once and from front to back. Stamps come from
// one clock, so an answer that stands before an invoke really came before it was sent. What a process asked for and died
// before hearing is unknown, at the place of its last line.
import { closeSync, openSync, readdirSync, readSync } from "node:fs";
import { join } from "node:path";
import { type HistoryEvent, makeEvent, type Op } from "../support/history/event.ts";
import { type FileLine, readFileName } from "./file-scribe.ts";

/** An event and its stamp. */
export interface Stamped {
  readonly at: number;
  readonly event: HistoryEvent;
}

interface Reader {
  readonly actor: string;
  readonly lines: Iterator<FileLine, undefined>;
  head: FileLine;
}

/** Calls of which it matters that their answer never came. */
const ANSWERED: ReadonlySet<Op> = new Set(["enqueue", "claim", "settle", "cancel", "reschedule", "redrive", "recall"]);
const CHUNK = 256 * 1024;

/** All events of a folder of history files, in their order. */
export function* merge(folder: string): Generator<Stamped> {
  const files = readdirSync(folder).flatMap((name) => {
    const read = readFileName(name);
    return read === null ? [] : [{ ...read, path: join(folder, name) }];
  });
  files.sort((a, b) => b.from - a.from);
  const open: Reader[] = [];
  const numbered = new Numbering();
  for (;;) {
    let first = earliest(open);
    // A file is opened when the story reaches its beginning, so that few are open at a time.
    for (let next = files.at(-1); next && (!first || next.from <= first.head.at); next = files.at(-1)) {
      files.pop();
      const reader = openReader(next.path, next.actor);
      if (reader !== null) open.push(reader);
      first = earliest(open);
    }
    if (!first) return;
    yield* numbered.number(first.head, first.actor);
    const { value } = first.lines.next();
    if (value === undefined) open.splice(open.indexOf(first), 1);
    else first.head = value;
  }
}

function earliest(open: readonly Reader[]): Reader | undefined {
  let first = open[0];
  for (const reader of open) if (first && reader.head.at < first.head.at) first = reader;
  return first;
}

function openReader(path: string, actor: string): Reader | null {
  const lines = withUnknowns(readLines(path));
  const { value } = lines.next();
  return value === undefined ? null : { actor, lines, head: value };
}

/** The lines of a file; one that a kill cut short is none. */
function* readLines(path: string): Generator<FileLine, undefined> {
  const file = openSync(path, "r");
  const chunk = Buffer.alloc(CHUNK);
  let rest: Buffer = Buffer.alloc(0);
  try {
    for (let size = readSync(file, chunk); size > 0; size = readSync(file, chunk)) {
      const bytes = Buffer.concat([rest, chunk.subarray(0, size)]);
      const end = bytes.lastIndexOf(10) + 1;
      rest = bytes.subarray(end);
      for (const text of bytes.toString("utf8", 0, end).split("\n"))
        if (text !== "") yield JSON.parse(text) as FileLine;
    }
  } finally {
    closeSync(file);
  }
  return undefined;
}

function* withUnknowns(lines: Iterable<FileLine>): Generator<FileLine, undefined> {
  const open = new Map<number, FileLine>();
  let at = 0;
  for (const line of lines) {
    at = line.at;
    if (line.phase !== "invoke") open.delete(line.since);
    else if (ANSWERED.has(line.op)) open.set(line.at, line);
    yield line;
  }
  for (const line of open.values()) yield { ...line, at: ++at, since: line.at, phase: "unknown" };
  return undefined;
}

/** Gives events their places, and the killed their names: the conductor knows processes, the store knows workers. */
class Numbering {
  readonly #stamps: number[] = [];
  readonly #workersOf = new Map<string, string[]>();
  readonly #killed = new Set<string>();

  *number(line: FileLine, actor: string): Generator<Stamped> {
    const { at, since, op, phase, ...rest } = line;
    if (op === "gone" && rest.worker === undefined && rest.answer) {
      this.#killed.add(rest.answer);
      for (const worker of this.#workersOf.get(rest.answer) ?? []) yield this.#gone(at, worker);
      return;
    }
    this.#stamps.push(at);
    const seq = this.#stamps.length;
    yield { at, event: makeEvent(seq, since === at ? seq : this.#placeOf(since), actor, op, phase, rest) };
    if (op !== "register" || phase !== "invoke" || !rest.worker) return;
    this.#workersOf.set(actor, [...(this.#workersOf.get(actor) ?? []), rest.worker]);
    if (this.#killed.has(actor)) yield this.#gone(at, rest.worker);
  }

  #gone(at: number, worker: string): Stamped {
    this.#stamps.push(at);
    const seq = this.#stamps.length;
    return { at, event: makeEvent(seq, seq, "conductor", "gone", "ok", { worker }) };
  }

  /** The place of the first event that is not before this stamp. */
  #placeOf(stamp: number): number {
    let low = 0;
    let high = this.#stamps.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#stamps[middle] as number) < stamp) low = middle + 1;
      else high = middle;
    }
    return low + 1;
  }
}
