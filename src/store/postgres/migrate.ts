// Migrates the schema once, under a lock that lasts as long as its transaction, however many processes start at the
// same time. A schema that is newer than this program is left alone and refused.
import { RedriveError } from "../../core/errors.ts";
import type { Ask, PostgresDatabase } from "./driver.ts";
import { MIGRATIONS, TABLES } from "./schema.ts";

type Migrations = typeof MIGRATIONS;

/** Large tables take long, and every process that starts meanwhile waits for the one that migrates. */
const MIGRATION_MS = 600_000;

/** The oldest server that is tested with every release, as Postgres writes its number. */
const OLDEST = 150_000;

/** What exists before a migration. */
export interface Found {
  /** 0 where none of our tables exists. */
  readonly version: number;
  /** The schema exists, with or without tables. */
  readonly made: boolean;
}

/** SQL that migrates a schema from what exists, one text for each version. */
function migrationSteps(schema: string, { version: from, made }: Found, migrations: Migrations): string[] {
  return migrations.slice(from).map((migration, at) => {
    const version = from + at + 1;
    // Postgres requires the right to create schemas also where `if not exists` has nothing to create.
    const before = version === 1 ? `${made ? "" : `create schema if not exists ${schema};\n`}${ledger(schema)}\n` : "";
    return `${before}${migration(schema).trim()}\ninsert into ${schema}.migration (version) values (${version});\n`;
  });
}

/** The same for people: the statements for one transaction of theirs, or nothing. */
export function migrationPlan(s: string, found: Found, migrations = MIGRATIONS): string[] {
  const steps = migrationSteps(s, found, migrations);
  if (steps.length === 0) return [];
  return [`begin isolation level read committed;\nselect ${lock(s)};\n`, ...steps, "commit;\n"];
}

const lock = (s: string): string => `pg_advisory_xact_lock(hashtext('redrive migrate'), hashtext('${s}'))`;

const ledger = (s: string): string =>
  `create table if not exists ${s}.migration (version int primary key, applied_at timestamptz not null default now());`;

/** Finds what exists of a schema; refuses servers and schemas that this program does not know. */
export async function findSchema(ask: Ask, s: string, place: string, newest = MIGRATIONS.length): Promise<Found> {
  // Not to_regclass: within a transaction it may answer from what the session knew before it waited for the lock.
  const [row] = await ask({
    text: `select current_setting('server_version_num')::int, current_setting('server_version'),
      current_setting('server_encoding'), exists (select from pg_catalog.pg_namespace where nspname = '${s}'),
      exists (select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
        where n.nspname = '${s}' and c.relname = 'migration')`,
  });
  const [number, shown, encoding, made, exists] = row as [number, string, string, boolean, boolean];
  if (number < OLDEST) {
    const message = `Postgres at ${place} is version ${shown}; Redrive needs 15 or newer. Upgrade the server.`;
    throw new RedriveError("store_unusable", message);
  }
  // SQL_ASCII stores bytes unchanged; any other encoding lacks characters that payloads have.
  if (encoding !== "UTF8" && encoding !== "SQL_ASCII") {
    const message = `The database at ${place} is encoded in ${encoding}; Redrive needs UTF8, which has all characters. Create another one (createdb -E UTF8 -T template0), and name it in the store URL.`;
    throw new RedriveError("store_unusable", message);
  }
  const [found] = exists ? await ask({ text: versionText(s) }) : [[0, null]];
  const [version, missing] = found as [number, string | null];
  if (version > newest) {
    const message = `The schema ${s} at ${place} is of version ${version}; this version of Redrive knows ${newest}. Update redrive, or name another schema.`;
    throw new RedriveError("store_unusable", message);
  }
  if (version > 0 && missing !== null) {
    const message = `The schema ${s} at ${place} is of version ${version}, but these of its tables are missing: ${missing}. Restore them from a backup; or name another schema; or, to start again without its jobs, drop schema ${s} cascade.`;
    throw new RedriveError("store_unusable", message);
  }
  return { version, made };
}

/** The version that a schema records, and which of its tables were dropped. */
const versionText = (s: string): string => `select coalesce(max(version), 0), (
    select string_agg(t.name, ', ') from unnest('{${TABLES.join(",")}}'::text[]) as t (name)
    where not exists (select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      where n.nspname = '${s}' and c.relname = t.name)) from ${s}.migration`;

/** Migrates the schema; answers the version it had. */
export async function migrate(
  db: PostgresDatabase,
  s: string,
  place: string,
  migrations = MIGRATIONS,
): Promise<number> {
  const newest = migrations.length;
  const before = await findSchema(db.ask, s, place, newest);
  if (before.version === newest) return newest;
  return db.together(async (ask) => {
    await ask({ text: `select ${lock(s)}` });
    const found = await findSchema(ask, s, place, newest);
    // Several statements at once; these cannot take values.
    for (const text of migrationSteps(s, found, migrations)) await ask({ text });
    return found.version;
  }, MIGRATION_MS);
}
