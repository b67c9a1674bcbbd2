// Brings the schema up to date, once, under a lock that lasts as long as its transaction, however many processes start
// at the same time. A schema that is newer than this program is left alone and refused.
import { RedriveError } from "../../core/errors.ts";
import type { Ask, Database } from "./driver.ts";
import { MIGRATIONS } from "./schema.ts";

/** The oldest server that is tried with every release, as Postgres writes its number. */
const OLDEST = 150_000;

/** SQL that brings a schema from this version up to date, one text for each version. */
export function migrationPlan(schema: string, from: number): string[] {
  return MIGRATIONS.slice(from).map((migration, at) => {
    const version = from + at + 1;
    const before = version === 1 ? `${first(schema)}\n` : "";
    return `${before}${migration(schema).trim()}\ninsert into ${schema}.migration (version) values (${version});\n`;
  });
}

const first = (s: string): string => `create schema if not exists ${s};
create table if not exists ${s}.migration (version int primary key, applied_at timestamptz not null default now());`;

/** The version of a schema, 0 where there is none; refuses servers and schemas that this program does not know. */
export async function schemaVersion(ask: Ask, s: string, place: string): Promise<number> {
  // Not to_regclass: within a transaction it may answer from what the session knew before it waited for the lock.
  const [row] = await ask({
    text: `select current_setting('server_version_num')::int, current_setting('server_version'),
      current_setting('server_encoding'), exists (select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
        where n.nspname = '${s}' and c.relname = 'migration')`,
  });
  const [number, shown, encoding, exists] = row as [number, string, string, boolean];
  if (number < OLDEST) {
    const message = `Postgres at ${place} is version ${shown}; Redrive needs 15 or newer. Upgrade the server.`;
    throw new RedriveError("store_unusable", message);
  }
  // Bytes as they come are all right; any other encoding lacks characters that payloads have.
  if (encoding !== "UTF8" && encoding !== "SQL_ASCII") {
    const message = `The database at ${place} is encoded in ${encoding}; Redrive needs UTF8, which has all characters. Create another one (createdb -E UTF8 -T template0), and name it in the store URL.`;
    throw new RedriveError("store_unusable", message);
  }
  const [found] = exists ? await ask({ text: `select coalesce(max(version), 0) from ${s}.migration` }) : [[0]];
  const version = found?.[0] as number;
  if (version > MIGRATIONS.length) {
    const message = `The schema ${s} at ${place} is of version ${version}; this version of Redrive knows ${MIGRATIONS.length}. Update redrive, or name another schema.`;
    throw new RedriveError("store_unusable", message);
  }
  return version;
}

/** Brings the schema up to date; says what version it had. */
export async function migrate(db: Database, s: string, place: string): Promise<number> {
  const before = await schemaVersion(db.ask, s, place);
  if (before === MIGRATIONS.length) return before;
  return db.together(async (ask) => {
    await ask({ text: "select pg_advisory_xact_lock(hashtext('redrive migrate'), hashtext($1))" }, s);
    const from = await schemaVersion(ask, s, place);
    // Several statements at once; values cannot be sent with these.
    for (const text of migrationPlan(s, from)) await ask({ text });
    return from;
  });
}
