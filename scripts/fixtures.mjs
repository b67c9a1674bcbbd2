// Makes the stored fixtures of the newest version of the schema: test/fixtures/version-N.sqlite, and version-N.sql, a dump
// for Postgres that any driver can restore. They are made once, at the end of the work on that version, and then stay: they
// are what programs of that version have left behind.

import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ready, root } from "./ready.mjs";

const SCHEMA = "redrive";

ready();
const { default: pg } = await import("pg");
const { fill, startClock } = await import("./fixture-scene.mjs");
const { startPostgres } = await import("../bench/postgres/server.mjs");
const { createPostgresStore } = await import("../dist/store/postgres/index.js");
const { MIGRATIONS } = await import("../dist/store/postgres/schema.js");
const { openDatabase } = await import("../dist/store/sqlite/driver.js");
const { createInlineSqliteStore } = await import("../dist/store/sqlite/inline.js");
const { MIGRATIONS: ON_SQLITE } = await import("../dist/store/sqlite/schema.js");

const literal = (value) => (value === null ? "null" : `'${value.replaceAll("'", "''")}'`);

/** The rows of a table as inserts, by its first columns. */
async function rowsOf(client, table) {
  const { rows: columns } = await client.query(
    "select attname as name from pg_attribute where attrelid = $1::regclass and attnum > 0 and attgenerated = '' and not attisdropped order by attnum",
    [`${SCHEMA}.${table}`],
  );
  const names = columns.map(({ name }) => name);
  const shown = names.map((name) => `${name}::text`).join(", ");
  const text = `select ${shown} from ${SCHEMA}.${table} order by 1, 2`;
  const { rows } = await client.query({ text, rowMode: "array" });
  if (rows.length === 0) return "";
  const values = rows.map((row) => `  (${row.map(literal).join(", ")})`).join(",\n");
  return `insert into ${SCHEMA}.${table} (${names.join(", ")}) overriding system value values\n${values};\n`;
}

/** The schema and all that is in it, as one transaction. */
async function dump(url, statements) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const names = async (text) => (await client.query({ text, values: [SCHEMA], rowMode: "array" })).rows.flat();
  const tables = await names("select tablename::text from pg_tables where schemaname = $1 order by 1");
  const parts = [...statements.slice(0, -1), `delete from ${SCHEMA}.control;\ndelete from ${SCHEMA}.migration;\n`];
  for (const table of tables) parts.push(await rowsOf(client, table));
  for (const name of await names("select sequencename::text from pg_sequences where schemaname = $1 order by 1")) {
    const { rows } = await client.query(`select last_value, is_called from ${SCHEMA}.${name}`);
    parts.push(`select setval('${SCHEMA}.${name}', ${rows[0].last_value}, ${rows[0].is_called});\n`);
  }
  await client.end();
  return [...parts, "commit;\n"].filter((part) => part !== "").join("\n");
}

async function onPostgres(folder) {
  const server = await startPostgres(folder);
  try {
    const clock = startClock();
    const url = server.url("postgres");
    const store = createPostgresStore({ url, schema: SCHEMA }, { clock: () => clock.now });
    const { statements } = await store.schema();
    await fill(store, clock);
    return await dump(url, statements);
  } finally {
    await server.stop();
  }
}

async function onSqlite(folder, target) {
  const path = join(folder, "jobs.db");
  const clock = startClock();
  await fill(createInlineSqliteStore({ path, clock: () => clock.now }), clock);
  rmSync(target, { force: true });
  const db = openDatabase(path);
  db.exec(`vacuum into '${target.replaceAll("'", "''")}'`);
  db.close();
}

const target = join(root, "test", "fixtures");
const name = join(target, `version-${MIGRATIONS.length}`);
if (MIGRATIONS.length !== ON_SQLITE.length || existsSync(`${name}.sqlite`)) {
  process.stderr.write(`The fixtures of version ${MIGRATIONS.length} are there, and stay as they are.\n`);
  process.exit(1);
}
// The server's is its own, because it runs as another user.
const folders = ["sqlite", "postgres"].map((store) => mkdtempSync(join(tmpdir(), `redrive-fixtures-${store}-`)));
mkdirSync(target, { recursive: true });
try {
  await onSqlite(folders[0], `${name}.sqlite`);
  writeFileSync(`${name}.sql`, await onPostgres(folders[1]));
  process.stdout.write(`${readdirSync(target).join("\n")}\n`);
} finally {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}
// The worker that is left in the middle of a run ends here.
process.exit(0);
