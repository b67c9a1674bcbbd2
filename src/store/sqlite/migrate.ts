// Migrates the schema of a file in one transaction, and reads its version. A program of an older release
// reads `user_version` and the newest row of `migration`, so both stay as they are in every version.
import { RedriveError } from "../../core/errors.ts";
import {
  checkOpening,
  type MigrationPlan,
  missingSteps,
  notReadable,
  planFrom,
  type SchemaVersion,
} from "../migrations.ts";
import type { SqliteDatabase } from "./driver.ts";
import { MIGRATIONS } from "./schema.ts";

/** "Redr" in the header of every file of ours. */
const APPLICATION_ID = 0x52656472;

const MIGRATION_TABLE = `create table migration (
  version integer primary key,
  -- The oldest version whose programs may work with the file after this migration.
  readable_by integer not null,
  applied_at integer not null
) strict;
`;

const STORE = "The database";

/** Reads several facts as of one moment: another process may migrate the file between two statements. */
function asOfOneMoment<T>(db: SqliteDatabase, read: () => T): T {
  db.exec("begin");
  try {
    return read();
  } finally {
    rollback(db);
  }
}

/** Refuses a file that contains another program's tables. */
export function checkOwner(db: SqliteDatabase): void {
  const isOurs = asOfOneMoment(db, () => {
    const id = db.prepare("pragma application_id").all()[0]?.[0];
    return id === APPLICATION_ID || db.prepare("select 1 from sqlite_master limit 1").all().length === 0;
  });
  if (isOurs) return;
  throw new RedriveError(
    "store_unusable",
    "The database file belongs to another program. Use a separate file for Redrive.",
  );
}

/** The schema of a file that other processes may be migrating. */
export function lookForSchema(db: SqliteDatabase): SchemaVersion {
  return asOfOneMoment(db, () => findSchema(db));
}

/**
 * The version of the schema in a file, and by whom it is readable; refuses a file that names two versions. Its reads
 * belong together: call it inside a transaction.
 */
export function findSchema(db: SqliteDatabase): SchemaVersion {
  const version = db.prepare("pragma user_version").all()[0]?.[0] as number;
  const hasLedger = db.prepare("select 1 from sqlite_master where type = 'table' and name = 'migration'").all();
  if (hasLedger.length === 0) return { version, readableBy: version === 0 ? 0 : null };
  const [row] = db.prepare("select max(version), max(readable_by) from migration").all();
  const [recorded, readableBy] = row as [number | null, number | null];
  if (recorded === version || recorded === null) return { version, readableBy };
  const message = `${STORE} names two versions of its schema: ${version} in its header (user_version), ${recorded} in its table migration. Another program has changed one of them; restore the file from a backup, or write the right version back.`;
  throw new RedriveError("store_unusable", message);
}

/** SQL that brings a file up to date from what there is, one text for each version. */
function migrationSteps(found: SchemaVersion, migrations: typeof MIGRATIONS): string[] {
  return missingSteps(found, migrations).map(({ version, sql, readableBy }) => {
    const first = version === 1 ? `pragma application_id = ${APPLICATION_ID};\n${MIGRATION_TABLE}` : "";
    const note = `insert into migration values (${version}, ${readableBy}, unixepoch() * 1000);\npragma user_version = ${version};\n`;
    return `${first}${sql.trim()}\n${note}`;
  });
}

/** The same for people. SQLite's shell goes on after an error unless it is told not to. */
export function migrationPlan(found: SchemaVersion, migrations = MIGRATIONS): MigrationPlan {
  checkOpening(found, migrations.length, STORE);
  const steps = migrationSteps(found, migrations);
  const begin = "-- Run it with `sqlite3 -bail FILE`, which undoes all of it where a step fails.\nbegin immediate;\n";
  return planFrom(found, migrations, steps.length === 0 ? [] : [begin, ...steps, "commit;\n"]);
}

/** Brings the schema up to date; refuses one that this program must leave alone. */
export function migrate(db: SqliteDatabase, migrations = MIGRATIONS): void {
  if (checkOpening(lookForSchema(db), migrations.length, STORE) !== "migrate") return;
  db.exec("begin immediate");
  try {
    // Read again under the lock: another process may have been quicker, and newer.
    const found = findSchema(db);
    checkOpening(found, migrations.length, STORE);
    for (const text of migrationSteps(found, migrations)) db.exec(text);
    db.exec("commit");
  } catch (error) {
    rollback(db);
    throw error;
  }
}

/** A look, inside every transaction, whether another program has migrated the file beyond what this one may work with. */
export function openGuard(db: SqliteDatabase, known: number): () => void {
  const readable = db.prepare("select max(readable_by) from migration");
  return () => {
    const readableBy = readable.all()[0]?.[0] as number;
    if (readableBy > known) throw notReadable(findSchema(db), known, STORE);
  };
}

/** Ends a transaction that has failed. */
export function rollback(db: SqliteDatabase): void {
  try {
    db.exec("rollback");
  } catch {
    // SQLite had rolled back by itself (disk full, I/O error).
  }
}
