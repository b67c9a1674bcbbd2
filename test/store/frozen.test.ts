// The freeze: a store made from scratch is the one of the stored fixtures, changed by numbered migrations alone.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { createInlineSqliteStore } from "../../src/store/sqlite/inline.ts";
import { reader, testPath } from "../support/database-file.ts";
import { type Fixture, postgresFixture, rowsOn, sqliteFixture, testDatabase } from "../support/fixtures.ts";

const FROZEN =
  "The schema differs from that of test/fixtures: add a numbered migration; versions 1 and 2 are frozen (CONTRIBUTING.md, A change of the schema)";

/** Text without comments and without what only looks different. */
const plain = (text: unknown): unknown =>
  typeof text === "string" ? text.replace(/--.*/g, "").replace(/\s+/g, " ").trim() : text;

type Rows = Fixture["rows"];

const sqlitePicture = async (rows: Rows): Promise<unknown> =>
  (await rows("select type, name, tbl_name, sql from sqlite_master order by 1, 2")).map((row) => row.map(plain));

const ON_SERVER = {
  tables: `select c.relname, c.relkind::text, c.reloptions::text, pg_get_viewdef(c.oid) from pg_class c
    where c.relnamespace = 'redrive'::regnamespace and c.relkind in ('r', 'v', 'S') order by 1`,
  columns: `select c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity::text,
      a.attgenerated::text, a.attstorage::text, a.attcollation::regcollation::text, pg_get_expr(d.adbin, d.adrelid)
    from pg_attribute a join pg_class c on c.oid = a.attrelid left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
    where c.relnamespace = 'redrive'::regnamespace and c.relkind in ('r', 'v') and a.attnum > 0 and not a.attisdropped
    order by 1, a.attnum`,
  indexes: "select indexname, indexdef from pg_indexes where schemaname = 'redrive' order by 1",
  constraints: `select conrelid::regclass::text, conname, pg_get_constraintdef(oid) from pg_constraint
    where connamespace = 'redrive'::regnamespace order by 1, 2`,
};

async function serverPicture(rows: Rows): Promise<unknown> {
  const parts = Object.entries(ON_SERVER).map(async ([name, text]) => [name, await rows(text)] as const);
  return Object.fromEntries(await Promise.all(parts));
}

describe.each([1, 2] as const)("the schema of version %i", (version) => {
  it("is on SQLite what the stored file has, after the same migrations", async () => {
    const path = testPath();
    await createInlineSqliteStore({ path, clock: Date.now }).close();
    const fixture = await sqliteFixture(version);
    await fixture.open(Date.now);
    const made = await sqlitePicture(async (text) => reader(path)(text));
    expect(made, FROZEN).toEqual(await sqlitePicture(fixture.rows));
  });

  it("is on Postgres what the stored dump has, after the same migrations", async () => {
    const url = await testDatabase();
    const rows = rowsOn(url);
    const store = createPostgresStore({ url });
    await store.migrate();
    await store.close();
    const fixture = await postgresFixture(version);
    await (await fixture.open(Date.now)).migrate();
    expect(await serverPicture(rows), FROZEN).toEqual(await serverPicture(fixture.rows));
  });
});

it("says a frozen schema where the message says", () => {
  const guide = readFileSync(new URL("../../CONTRIBUTING.md", import.meta.url), "utf8");
  expect(guide).toContain("\n## A change of the schema\n");
});
