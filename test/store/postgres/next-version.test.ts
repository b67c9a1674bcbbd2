// From one version of the schema to the next: with rows in it, slowly, by several at once, by hand, and not at all where a
// step fails.
import pg from "pg";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import type { PostgresDatabase } from "../../../src/store/postgres/driver.ts";
import { createPostgresStore } from "../../../src/store/postgres/index.ts";
import { findSchema, migrate, migrationPlan } from "../../../src/store/postgres/migrate.ts";
import { openDependencies } from "../../../src/store/postgres/dependencies.ts";
import { MIGRATIONS } from "../../../src/store/postgres/schema.ts";
import { newJob } from "../../support/new-job.ts";
import { testSchema } from "../../support/postgres-queue.ts";
import { sql } from "../../support/postgres-world.ts";

const SERVER = inject("postgres18");
const NOW_AT = MIGRATIONS.length;
const COLUMNS = `select column_name::text as name from information_schema.columns
  where table_schema = $1 and table_name = 'job' and column_name like 'color%' order by 1`;

/** The migrations that there are, and one more. */
const withNext = (sql: (s: string) => string, readableBy = NOW_AT + 1): typeof MIGRATIONS => [
  ...MIGRATIONS,
  { sql, readableBy },
];
const colored = withNext((s) => `alter table ${s}.job add column color text;`);

/** A schema of this version with a job in it, and ways to it. */
async function filled(ways = 1) {
  const { schema } = testSchema(SERVER);
  const store = createPostgresStore({ url: SERVER, schema });
  await store.enqueue([newJob()]);
  await store.close();
  const open = (): PostgresDatabase => openDependencies({ url: SERVER, schema, maxConnections: 1 }, {}).db;
  const dbs = Array.from({ length: ways }, open);
  onTestFinished(async () => void (await Promise.all(dbs.map((db) => db.close()))));
  return { schema, dbs, db: dbs[0] as PostgresDatabase };
}

/** What a schema has of the next version, and how many jobs. */
async function state(schema: string) {
  const versions = await sql(SERVER, `select version from ${schema}.migration order by 1`);
  const [jobs] = await sql(SERVER, `select count(*)::int as n from ${schema}.job`);
  const columns = await sql(SERVER, COLUMNS, [schema]);
  return { version: versions.at(-1)?.["version"], columns: columns.map(({ name }) => name), jobs: jobs?.["n"] };
}

describe("the next version of the schema", () => {
  it("may take longer than any statement, and whoever starts meanwhile waits for it", async () => {
    const { schema, dbs } = await filled(3);
    // Longer than the wait for any other statement.
    const slow = withNext((s) => `select pg_sleep(16); alter table ${s}.job add column color text;`);
    const found = await Promise.all(dbs.map((db) => migrate(db, schema, "here", slow)));
    expect(found.toSorted((a, b) => a - b)).toEqual([NOW_AT, NOW_AT + 1, NOW_AT + 1]);
    expect(await state(schema)).toEqual({ version: NOW_AT + 1, columns: ["color"], jobs: 1 });
  });

  it("waits for an open reader, and holds up no other program meanwhile", async () => {
    const { schema, db } = await filled();
    const reader = new pg.Client({ connectionString: SERVER });
    await reader.connect();
    onTestFinished(() => reader.end());
    await reader.query(`begin; select from ${schema}.job`);
    const waits = (): Promise<unknown[]> =>
      sql(SERVER, `select from pg_locks where relation = '${schema}.job'::regclass and not granted`);
    const migrated = migrate(db, schema, "here", colored);
    await expect.poll(waits, { interval: 5 }).toHaveLength(1);
    // It is behind the migration, which is behind the reader, who stays.
    const store = createPostgresStore({ url: SERVER, schema });
    onTestFinished(() => store.close());
    expect(await store.enqueue([newJob()])).toMatchObject([{ kind: "created" }]);
    await reader.query("commit");
    expect(await migrated).toBe(NOW_AT);
    expect(await state(schema)).toEqual({ version: NOW_AT + 1, columns: ["color"], jobs: 2 });
  });

  it("is refused by a program that does not know it", async () => {
    const { schema, db } = await filled();
    await migrate(db, schema, "here", colored);
    await expect(migrate(db, schema, "here")).rejects.toMatchObject({ code: "store_unusable" });
    expect(await migrate(db, schema, "here", colored)).toBe(NOW_AT + 1);
  });

  it("leaves everything as it was where a step of it fails", async () => {
    const { schema, db } = await filled();
    const sql = (s: string): string => `alter table ${s}.job add column color2 text; select 1 / 0;`;
    const failing = [...colored, { sql, readableBy: NOW_AT + 1 }];
    await expect(migrate(db, schema, "here", failing)).rejects.toThrow("division by zero");
    expect(await state(schema)).toEqual({ version: NOW_AT, columns: [], jobs: 1 });
  });
});

describe("the plan of the next version", () => {
  /** Runs a plan as psql does: one statement after the other on one connection, whatever became of those before. */
  const byHand = async (schema: string, db: PostgresDatabase, migrations: typeof MIGRATIONS): Promise<void> => {
    const plan = migrationPlan(schema, await findSchema(db.ask, schema, "here"), migrations);
    const client = new pg.Client({ connectionString: SERVER });
    await client.connect();
    onTestFinished(() => client.end());
    for (const text of plan.statements.join("").split(/(?<=;)\n/)) await client.query(text).catch(() => undefined);
  };

  it("does by hand what the program does", async () => {
    const { schema, db } = await filled();
    await byHand(schema, db, colored);
    expect(await state(schema)).toEqual({ version: NOW_AT + 1, columns: ["color"], jobs: 1 });
    expect(migrationPlan(schema, await findSchema(db.ask, schema, "here", NOW_AT + 1), colored).statements).toEqual([]);
  });

  it("does nothing by hand where a step of it fails", async () => {
    const { schema, db } = await filled();
    await byHand(
      schema,
      db,
      withNext((s) => `alter table ${s}.job add column color text;\nselect 1 / 0;`),
    );
    expect(await state(schema)).toEqual({ version: NOW_AT, columns: [], jobs: 1 });
  });
});
