// A scribe that writes to a file of its process, each line before anything else happens, so that a kill loses nothing
// but what was not asked yet. A line is stamped with the monotonic clock of the machine, which all processes share: an
// invoke before its call is sent, an answer after it came, so the true effect lies in between.
import { openSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Line, Op, Phase } from "../support/history/event.ts";
import { Scribe } from "../support/history/scribe.ts";
import { ownName, told } from "./told.ts";

/** One line of a history file; `since` is the stamp of the invoke, or an earlier moment if that is not known. */
export interface FileLine extends Line {
  readonly at: number;
  readonly since: number;
  readonly op: Op;
  readonly phase: Phase;
}

/** Clocks tell whole milliseconds; one for each of two readings. */
const CLOCK_GRAIN_MS = 2;

/** Nanoseconds since the run began. */
export function stamp(): number {
  return Number(process.hrtime.bigint() - BigInt(told("epoch")));
}

/** Keeps the history of one process. Places are stamps; whoever merges the files numbers them. */
export class FileScribe extends Scribe {
  readonly actor: string;
  readonly #file: number;
  #last = 0;

  constructor(folder: string, actor: string) {
    super();
    this.actor = actor;
    this.#file = openSync(join(folder, fileName(stamp(), actor)), "ax", 0o600);
  }

  override write(_actor: string, op: Op, phase: Phase, line: Line, since = -1): number {
    const at = Math.max(stamp(), this.#last + 1);
    this.#last = at;
    const whole: FileLine = { at, since: since === -1 ? at : since, op, phase, ...line };
    writeSync(this.#file, `${JSON.stringify(whole)}\n`);
    return at;
  }

  /** A stamp from just before this time of the machine's clock. */
  stampOf(time: number): number {
    const now = stamp();
    return now - (Date.now() - time + CLOCK_GRAIN_MS) * 1e6;
  }
}

/** The name of a history file says who wrote it, and a moment before its first line. */
export function fileName(at: number, actor: string): string {
  return `${String(at).padStart(16, "0")}.${actor}.jsonl`;
}

/** Moment and actor of a history file; null for any other file. */
export function readFileName(name: string): { readonly from: number; readonly actor: string } | null {
  const found = /^([0-9]{16})\.(.+)\.jsonl$/.exec(name);
  return found === null ? null : { from: Number(found[1]), actor: found[2] as string };
}

let own: FileScribe | null = null;

/** The scribe of this process. */
export function ownScribe(): FileScribe {
  own ??= new FileScribe(told("folder"), ownName());
  return own;
}
