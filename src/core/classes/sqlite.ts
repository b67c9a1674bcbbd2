// SQLite result codes: as names (better-sqlite3, sqlite3, libsql: `SQLITE_BUSY_SNAPSHOT`) and as numbers (node:sqlite:
// `errcode`). An extended code is its primary code and more; only a few extended codes mean something else.

import type { FailureClass } from "../job.ts";
import { type Family, readNumber } from "./clue.ts";

/** Primary codes by number. */
const PRIMARY: readonly (readonly [name: string, found: FailureClass])[] = [
  ["OK", "transient"],
  ["ERROR", "permanent"],
  ["INTERNAL", "transient"],
  ["PERM", "permanent"],
  ["ABORT", "transient"],
  ["BUSY", "transient"],
  ["LOCKED", "transient"],
  ["NOMEM", "system"],
  ["READONLY", "permanent"],
  ["INTERRUPT", "transient"],
  ["IOERR", "system"],
  ["CORRUPT", "permanent"],
  ["NOTFOUND", "permanent"],
  ["FULL", "system"],
  ["CANTOPEN", "permanent"],
  ["PROTOCOL", "transient"],
  ["EMPTY", "transient"],
  ["SCHEMA", "transient"],
  ["TOOBIG", "validation"],
  ["CONSTRAINT", "permanent"],
  ["MISMATCH", "validation"],
  ["MISUSE", "permanent"],
  ["NOLFS", "permanent"],
  ["AUTH", "authentication"],
  ["FORMAT", "permanent"],
  ["RANGE", "validation"],
  ["NOTADB", "permanent"],
];
const BY_NAME: ReadonlyMap<string, FailureClass> = new Map(PRIMARY);
/** CONSTRAINT_CHECK, CONSTRAINT_NOTNULL and CONSTRAINT_DATATYPE: the value is wrong, not the row. */
const WRONG_VALUES = [275, 1299, 3091];
const WRONG_VALUE = /^CONSTRAINT_(?:CHECK|NOTNULL|DATATYPE)$/;

/** SQLite in every driver. */
export const sqlite: Family = ({ error, code }) => {
  if (code.startsWith("SQLITE_")) {
    const result = code.slice("SQLITE_".length);
    return WRONG_VALUE.test(result) ? "validation" : BY_NAME.get(result.split("_")[0] ?? "");
  }
  const result = code === "ERR_SQLITE_ERROR" ? readNumber(error, "errcode") : undefined;
  if (result === undefined) return undefined;
  return WRONG_VALUES.includes(result) ? "validation" : PRIMARY[result & 0xff]?.[1];
};
