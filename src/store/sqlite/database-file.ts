// Reads a database file without opening it as a store: creates nothing, migrates nothing.
import { existsSync } from "node:fs";
import { RedriveError } from "../../core/errors.ts";
import { type SqliteDatabase, openDatabase } from "./driver.ts";
import { refuseForeign } from "./file.ts";
import type { SchemaLook } from "../inspection.ts";
import { MIGRATIONS } from "./schema.ts";

/** The version of the schema that this Redrive writes. */
export const SCHEMA_VERSION = MIGRATIONS.length;

/** Reads from the file; throws `store_unavailable` where that is not possible. */
export function lookInto<T>(path: string, look: (db: SqliteDatabase) => T): T {
  let db: SqliteDatabase | null = null;
  try {
    if (path !== ":memory:") refuseForeign(path);
    db = openDatabase(path);
    return look(db);
  } catch (cause) {
    if (cause instanceof RedriveError) throw cause;
    const said = cause instanceof Error ? cause.message : String(cause);
    throw new RedriveError("store_unavailable", `The database file ${path} cannot be read: ${said}.`, { cause });
  } finally {
    db?.close();
  }
}

/** The version of the schema in the file, 0 for an empty file or none, and what a migration would do. */
export function schemaLook(path: string): SchemaLook {
  const from = schemaVersion(path);
  return { from, to: SCHEMA_VERSION, statements: statementsFrom(from) };
}

function schemaVersion(path: string): number {
  if (!existsSync(path)) return 0;
  return lookInto(path, (db) => db.prepare("pragma user_version").all()[0]?.[0] as number);
}

/** The statements that upgrade a version to the current one. */
function statementsFrom(version: number): string[] {
  return MIGRATIONS.slice(version).map((sql) => `${sql.trim()}\n`);
}
