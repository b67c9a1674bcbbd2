// Reads a database file without opening it as a store: creates nothing, migrates nothing.
import { existsSync } from "node:fs";
import { RedriveError } from "../core/errors.ts";
import { type SqliteDatabase, openDatabase } from "../store/sqlite/driver.ts";
import { refuseForeign } from "../store/sqlite/file.ts";
import { MIGRATIONS } from "../store/sqlite/schema.ts";

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

/** The version of the schema in the file; 0 for an empty file or none. */
export function schemaVersion(path: string): number {
  if (!existsSync(path)) return 0;
  return lookInto(path, (db) => db.prepare("pragma user_version").all()[0]?.[0] as number);
}

/** The statements that lead from a version to the present one. */
export function statementsFrom(version: number): string[] {
  return MIGRATIONS.slice(version).map((sql) => `${sql.trim()}\n`);
}
