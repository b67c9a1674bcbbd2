// The seam between Redrive and a SQLite binding: `node:sqlite` from Node 24 on, `better-sqlite3` below it. Both are
// synchronous; they differ in loading, in rows as arrays, and in how an error carries its code.
import { createRequire } from "node:module";
import { RedriveError } from "../../core/errors.ts";
import type { Value } from "../columns.ts";

/** A statement, compiled once. */
export interface SqliteStatement {
  /** Runs it and returns how many rows changed. */
  run(...values: Value[]): number;
  /** The rows, each an array of its columns. */
  all(...values: Value[]): Value[][];
}

/** An open database. */
export interface SqliteDatabase {
  exec(sql: string): void;
  prepare(sql: string): SqliteStatement;
  /**
   * The rows of a user's query, each an object by the names of its columns, read on demand. Integers are bigints: they
   * may be larger than a number can hold.
   */
  rows(sql: string): Iterable<Readonly<Record<string, unknown>>>;
  close(): void;
}

interface RawStatement {
  run(...values: Value[]): { changes: number | bigint };
  all(...values: Value[]): unknown[];
  iterate(): Iterable<unknown>;
  raw?(on: boolean): unknown;
  setReturnArrays?(on: boolean): void;
  safeIntegers?(on: boolean): unknown;
  setReadBigInts?(on: boolean): void;
  readonly reader?: boolean;
}

interface RawDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): RawStatement;
  close(): void;
}

const require = createRequire(import.meta.url);

/** Opens a database file with the binding for this version of Node. SQLite itself never waits for locks. */
export function openDatabase(path: string): SqliteDatabase {
  const raw = Number(process.versions.node.split(".")[0]) >= 24 ? openBuiltIn(path) : openBetterSqlite(path);
  return {
    exec: (sql) => void raw.exec(sql),
    prepare: (sql) => whenUsed(() => compile(raw, sql)),
    rows(sql) {
      const statement = raw.prepare(sql);
      if (statement.setReadBigInts) statement.setReadBigInts(true);
      else statement.safeIntegers?.(true);
      return statement.iterate() as Iterable<Readonly<Record<string, unknown>>>;
    },
    close() {
      raw.close();
    },
  };
}

const NO_BINDING =
  "The SQLite store needs the package better-sqlite3 on Node below 24, and it could not be loaded. " +
  "Run `npm install better-sqlite3` with this version of Node, `npm rebuild better-sqlite3` where it is installed " +
  "already, or use Node 24 or newer.";

function openBuiltIn(path: string): RawDatabase {
  const { DatabaseSync } = require("node:sqlite") as {
    DatabaseSync: new (path: string, options: object) => RawDatabase;
  };
  return new DatabaseSync(path, { timeout: 0 });
}

function openBetterSqlite(path: string): RawDatabase {
  try {
    const Binding = require("better-sqlite3") as new (path: string, options: object) => RawDatabase;
    // The first call loads the native part.
    return new Binding(path, { timeout: 0 });
  } catch (cause) {
    // An error about the file, not about the package.
    if (sqliteCode(cause) !== null || cause instanceof TypeError) throw cause;
    throw new RedriveError("store_unusable", NO_BINDING, { cause });
  }
}

/** A statement that is compiled when it is first used: a process uses few of the hundred that the store has. */
function whenUsed(compiled: () => RawStatement): SqliteStatement {
  let statement: RawStatement | null = null;
  return {
    run: (...values) => Number((statement ??= compiled()).run(...values).changes),
    all: (...values) => (statement ??= compiled()).all(...values) as Value[][],
  };
}

function compile(raw: RawDatabase, sql: string): RawStatement {
  const statement = raw.prepare(sql);
  if (statement.setReturnArrays) statement.setReturnArrays(true);
  else if (statement.reader) statement.raw?.(true);
  return statement;
}

/** The primary result code of a SQLite error (5 busy, 13 full …), or null for any other error. */
export function sqliteCode(error: unknown): number | null {
  if (!(error instanceof Error)) return null;
  if ("errcode" in error && typeof error.errcode === "number") return error.errcode & 0xff;
  const name = "code" in error ? String(error.code) : "";
  if (!name.startsWith("SQLITE_")) return null;
  return PRIMARY_CODES[name.split("_").slice(0, 2).join("_")] ?? 1;
}

const PRIMARY_CODES: Readonly<Record<string, number>> = {
  SQLITE_ERROR: 1,
  SQLITE_PERM: 3,
  SQLITE_BUSY: 5,
  SQLITE_LOCKED: 6,
  SQLITE_READONLY: 8,
  SQLITE_IOERR: 10,
  SQLITE_CORRUPT: 11,
  SQLITE_FULL: 13,
  SQLITE_CANTOPEN: 14,
  SQLITE_TOOBIG: 18,
  SQLITE_CONSTRAINT: 19,
  SQLITE_MISMATCH: 20,
  SQLITE_NOTADB: 26,
};
