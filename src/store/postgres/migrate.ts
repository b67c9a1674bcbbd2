// Migrates the schema once, under a lock that lasts as long as its transaction, however many processes start at the
// same time. A program of an older release reads the table `migration`, so its columns stay in every version.
import { RedriveError } from "../../core/errors.ts";
import { checkOpening, type MigrationPlan, missingSteps, planFrom, type SchemaVersion } from "../migrations.ts";
import type { Ask, PostgresDatabase } from "./driver.ts";
import { isLocked } from "./errors.ts";
import { MIGRATIONS, TABLES } from "./schema.ts";

/** A list of migrations; tests bring their own. */
export type Migrations = typeof MIGRATIONS;

/** Large tables take long, and every process that starts meanwhile waits for the one that migrates. */
const MIGRATION_MS = 600_000;

/** The oldest server that is tested with every release, as Postgres writes its number. */
const OLDEST = 150_000;

/** What exists before a migration. */
export interface Found extends SchemaVersion {
  /** The schema exists, with or without tables. */
  readonly made: boolean;
}

/** SQL that migrates a schema from what exists, one text for each version. */
function migrationSteps(s: string, found: Found, migrations: Migrations): string[] {
  return missingSteps(found, migrations).map(({ version, sql, readableBy }) => {
    // Postgres requires the right to create schemas also where `if not exists` has nothing to create.
    const schema = found.made ? "" : `create schema if not exists ${s};\n`;
    const before = version === 1 ? `${schema}${migrationTable(s)}\n` : "";
    // Claims name a version of `control`: those of workers that run now are refused until they have looked here.
    const fence = found.version === 0 ? "" : `update ${s}.control set version = version + 1;\n`;
    const note = `insert into ${s}.migration (version, readable_by) values (${version}, ${readableBy});\n`;
    return `${before}${sql(s).trim()}\n${note}${fence}`;
  });
}

/** The same for people: the statements for one transaction of theirs, or none. */
export function migrationPlan(s: string, found: Found, migrations = MIGRATIONS): MigrationPlan {
  const steps = migrationSteps(s, found, migrations);
  const begin = `begin isolation level read committed;\nselect ${lock(s)};\n`;
  return planFrom(found, migrations, steps.length === 0 ? [] : [begin, ...steps, "commit;\n"]);
}

const lock = (s: string): string => `pg_advisory_xact_lock(hashtext('redrive migrate'), hashtext('${s}'))`;

const migrationTable = (s: string): string =>
  `create table if not exists ${s}.migration (
  version int primary key,
  -- The oldest version whose programs may work with the schema after this migration.
  readable_by int not null,
  applied_at timestamptz not null default now()
);`;

/** How people know a schema. */
export const nameOf = (s: string, place: string): string => `The schema ${s} at ${place}`;

/** Finds what exists of a schema; refuses servers and schemas that this program does not know. */
export async function findSchema(ask: Ask, s: string, place: string, newest = MIGRATIONS.length): Promise<Found> {
  // Not to_regclass: within a transaction it may answer from what the session knew before it waited for the lock.
  const [row] = await ask({
    text: `select current_setting('server_version_num')::int, current_setting('server_version'),
      current_setting('server_encoding'), exists (select from pg_catalog.pg_namespace where nspname = '${s}'),
      exists (${relation(s, "'migration'")}),
      (select string_agg(t.name, ', ') from unnest('{${TABLES.join(",")}}'::text[]) as t (name)
        where not exists (${relation(s, "t.name")}))`,
  });
  const [number, shown, encoding, made, exists, missing] = row as [
    number,
    string,
    string,
    boolean,
    boolean,
    string | null,
  ];
  if (number < OLDEST) {
    const message = `Postgres at ${place} is version ${shown}; Redrive needs 15 or newer. Upgrade the server.`;
    throw new RedriveError("store_unusable", message);
  }
  // SQL_ASCII stores bytes unchanged; any other encoding lacks characters that payloads have.
  if (encoding !== "UTF8" && encoding !== "SQL_ASCII") {
    const message = `The database at ${place} is encoded in ${encoding}; Redrive needs UTF8, which has all characters. Create another one (createdb -E UTF8 -T template0), and name it in the store URL.`;
    throw new RedriveError("store_unusable", message);
  }
  const [found] = exists ? await ask({ text: versionText(s) }) : [[0, 0]];
  const [version, by] = found as [number, number | null];
  if (version < 1 && missing?.split(", ").length !== TABLES.length) {
    const message = `${nameOf(s, place)} has tables of Redrive, but its table migration names no version of them. Restore that table from a backup; or name another schema; or, to start again without its jobs, drop schema ${s} cascade.`;
    throw new RedriveError("store_unusable", message);
  }
  checkOpening({ version, readableBy: by }, newest, nameOf(s, place));
  // An older schema lacks the tables that later steps create; a newer one may have dropped some that nothing here uses.
  if (version === newest && missing !== null) {
    const message = `The schema ${s} at ${place} is of version ${version}, but these of its tables are missing: ${missing}. Restore them from a backup; or name another schema; or, to start again without its jobs, drop schema ${s} cascade.`;
    throw new RedriveError("store_unusable", message);
  }
  return { version, readableBy: by, made };
}

/** Finds a relation of the schema by SQL for its name. */
const relation = (s: string, name: string): string =>
  `select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      where n.nspname = '${s}' and c.relname = ${name}`;

/**
 * The version that a schema records, and the oldest version that may read it. Through JSON, because schemas from before
 * the first release do not have the column.
 */
const versionText = (s: string): string =>
  `select coalesce(max(version), 0), case when count(*) = 0 then 0 else max((to_jsonb(m) ->> 'readable_by')::int) end
    from ${s}.migration m`;

/**
 * How long a step waits for a table that another transaction uses. All statements that come after it on that table wait
 * as long, so it gives up soon, with everything that it holds, and tries again after a pause.
 */
const PATIENCE = "set local lock_timeout = '1s'";
const PAUSE = "select pg_catalog.pg_sleep(1)";
/** So a reader, such as a backup, may take minutes. */
const TRIES = 300;

/** Migrates the schema, unless it is newer; answers the version it had. */
export async function migrate(
  db: PostgresDatabase,
  s: string,
  place: string,
  migrations = MIGRATIONS,
): Promise<number> {
  const newest = migrations.length;
  const before = await findSchema(db.ask, s, place, newest);
  if (before.version >= newest) return before.version;
  for (let tries = 1; ; tries++) {
    try {
      return await migrateNow(db, s, place, migrations);
    } catch (error) {
      if (!isLocked(error) || tries >= TRIES) throw error;
      await db.ask({ text: PAUSE });
    }
  }
}

async function migrateNow(db: PostgresDatabase, s: string, place: string, migrations: Migrations): Promise<number> {
  return db.together(async (ask) => {
    await ask({ text: `select ${lock(s)}` });
    await ask({ text: PATIENCE });
    const found = await findSchema(ask, s, place, migrations.length);
    // Several statements at once; these cannot take values.
    for (const text of migrationSteps(s, found, migrations)) await ask({ text });
    return found.version;
  }, MIGRATION_MS);
}
