// A SQLite file of a test's own, and ways to it besides the store: a connection for reading as people do, one for
// damage by hand, and a count of the commits in its write-ahead log.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type SqliteDatabase, openDatabase } from "../../src/store/sqlite/driver.ts";
import type { Value } from "../../src/store/columns.ts";
import { createInlineSqliteStore } from "../../src/store/sqlite/inline.ts";
import type { Store } from "../../src/store/store.ts";

/** A new folder that is removed with its test. */
export function testFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "redrive-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The path of a database file that does not exist yet. */
export function testPath(): string {
  return join(testFolder(), "jobs.db");
}

/** A further connection to a file; it waits where a worker writes at that moment, which a connection of the store does not. */
export function openBeside(path: string): SqliteDatabase {
  const db = openDatabase(path);
  db.exec("pragma busy_timeout = 10000");
  return db;
}

/** The same, closed with the test. */
export function connect(path: string): SqliteDatabase {
  const db = openBeside(path);
  onTestFinished(() => db.close());
  return db;
}

/** Runs a query as a person does, on a connection that may only read. */
export type Ask = (sql: string, ...values: Value[]) => Value[][];

/** A connection that may only read. */
export function reader(path: string): Ask {
  const db = connect(path);
  db.exec("pragma query_only = on");
  return (sql, ...values) => db.prepare(sql).all(...values);
}

/** A store on a file of its own in this thread, with its clock in the test's hands, beginning at real time. */
export async function inlineStore(): Promise<{ path: string; store: Store; clock: { now: number } }> {
  const path = testPath();
  const clock = { now: Date.now() };
  const store = createInlineSqliteStore({ path, clock: () => clock.now });
  onTestFinished(() => store.close());
  await store.migrate();
  return { path, store, clock };
}

/** How many transactions the write-ahead log of a file holds; each ends with a frame that names the database's size. */
export function commitsInLog(path: string): number {
  const log = readFileSync(`${path}-wal`);
  const pageSize = log.readUInt32BE(8);
  const salts = log.subarray(16, 24);
  let commits = 0;
  for (let at = 32; at + 24 + pageSize <= log.length; at += 24 + pageSize) {
    // Frames of an earlier round of the log carry other salts.
    if (!log.subarray(at + 8, at + 16).equals(salts)) break;
    if (log.readUInt32BE(at + 4) > 0) commits += 1;
  }
  return commits;
}
