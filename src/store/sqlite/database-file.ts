// Reads a database file without opening it as a store: creates nothing, migrates nothing.
import { existsSync } from "node:fs";
import { RedriveError } from "../../core/errors.ts";
import { type SqliteDatabase, openDatabase } from "./driver.ts";
import { refuseForeign } from "./file.ts";
import type { MigrationPlan, SchemaVersion } from "../migrations.ts";
import { lookForSchema, migrationPlan } from "./migrate.ts";

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

/** What a migration of the file would do; an empty file and a missing one are of version 0. */
export function filePlan(path: string): MigrationPlan {
  return migrationPlan(existsSync(path) ? lookInto(path, lookForSchema) : EMPTY);
}

const EMPTY: SchemaVersion = { version: 0, readableBy: 0 };
