// What the store keeps about alerts, in cells of one kind, so that one call reads all of it: the book, mutes, a record
// for each sink, the objectives of types, and how many verdicts each worker saw refused.
import { type AlertBook, bookFrom, EMPTY_BOOK, type AlertMute, mutesFrom } from "../core/alerting/book.ts";
import { type SinkRecord, sinkFrom } from "../core/alerting/telling.ts";
import { fieldsFrom } from "../core/options.ts";
import type { Cell, CellChange, Store } from "../store/store.ts";

/** The kind of the cells. */
export const ALERT_CELLS = "alert";
const MUTES = "mutes";
const STALE = "stale";
const SINK = "sink:";
const OBJECTIVE = "objective:";

/** A value with the version of its cell; 0 where there is none. */
export interface Versioned<T> {
  readonly value: T;
  readonly version: number;
  /** When it was written; 0 where it never was. */
  readonly at: number;
}

/** Everything that the cells say. */
export interface AlertNotes {
  readonly now: number;
  readonly book: Versioned<AlertBook>;
  readonly mutes: Versioned<readonly AlertMute[]>;
  /** By the id of the sink. */
  readonly sinks: ReadonlyMap<string, Versioned<SinkRecord>>;
  /** How old letters of a type may get, in milliseconds. */
  readonly objectives: ReadonlyMap<string, Versioned<number>>;
  /** Verdicts that were refused within the last minute. */
  readonly staleWrites: number;
}

const RECENT_MS = 60_000;

/** Reads them. */
export async function readNotes(store: Pick<Store, "cells">): Promise<AlertNotes> {
  return notesFrom(await store.cells([{ kind: ALERT_CELLS }]));
}

/** The notes in these cells. */
export function notesFrom({ cells: all, now }: { readonly cells: readonly Cell[]; readonly now: number }): AlertNotes {
  const cells = all.filter(({ kind }) => kind === ALERT_CELLS);
  const find = <T>(name: string, read: (text: string) => T, none: T): Versioned<T> => {
    const cell = cells.find((each) => each.name === name);
    return cell ? versioned(cell, read(cell.value)) : { value: none, version: 0, at: 0 };
  };
  const starting = <T>(start: string, read: (text: string, rest: string) => T): Map<string, Versioned<T>> =>
    new Map(
      cells.flatMap((cell) => {
        const rest = cell.name.slice(start.length);
        return cell.name.startsWith(start) ? [[rest, versioned(cell, read(cell.value, rest))] as const] : [];
      }),
    );
  const recent = cells.filter(({ name, at }) => name === STALE && now - at <= RECENT_MS);
  return {
    now,
    book: find("", bookFrom, EMPTY_BOOK),
    mutes: find(MUTES, (text) => mutesFrom(text, now), []),
    sinks: starting(SINK, sinkFrom),
    objectives: starting(OBJECTIVE, (text) => numberIn(text, "ms")),
    staleWrites: recent.reduce((sum, { value }) => sum + numberIn(value, "count"), 0),
  };
}

function versioned<T>({ version, at }: Cell, value: T): Versioned<T> {
  return { value, version, at };
}

function numberIn(text: string, field: string): number {
  const { [field]: value } = fieldsFrom(text);
  return Number.isSafeInteger(value) ? (value as number) : 0;
}

function shared(name: string, version: number | null, value: object | null): CellChange {
  return { kind: ALERT_CELLS, name, holder: "", version, value: value === null ? null : JSON.stringify(value) };
}

/** Writes the book after this version. */
export const bookChange = (book: AlertBook, version: number): CellChange => shared("", version, book);
/** Writes the mutes after this version. */
export const mutesChange = (mutes: readonly AlertMute[], version: number): CellChange =>
  shared(MUTES, version, { mutes });
/** Writes the record of a sink after this version; null deletes it. */
export const sinkChange = (id: string, sink: SinkRecord | null, version: number): CellChange =>
  shared(`${SINK}${id}`, version, sink);
/** Writes the objective of a type; null takes it back. */
export const objectiveChange = (type: string, ms: number | null): CellChange =>
  shared(`${OBJECTIVE}${type}`, null, ms === null ? null : { ms });
/** Writes how many verdicts of this worker were refused since it last wrote. */
export function staleChange(worker: string, count: number): CellChange {
  return { kind: ALERT_CELLS, name: STALE, holder: worker, version: null, value: JSON.stringify({ count }) };
}
