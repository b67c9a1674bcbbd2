// How a set of cells locks on Postgres: in the order of the keys, whatever it writes and however it was given.
import pg from "pg";
import { expect, inject, it, onTestFinished } from "vitest";
import type { CellChange } from "../../../src/store/store.ts";
import { postgresWorld, sql } from "../../support/postgres-world.ts";

const URL = inject("postgres18");

const cell = (name: string, version: number | null, value: string | null = "2", kind = "k"): CellChange => {
  return { kind, name, holder: "", version, value };
};

/** Until it is so; each look is a question to the server. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (let looks = 0; looks < 2_000; looks++) if (await isSo()) return;
  throw new Error("It did not come to that.");
}

it.each([
  ["overwrites", [cell("c", null), cell("b", null), cell("a", null)]],
  ["deletes, makes and repeats", [cell("c", null, null), cell("b", 1), cell("a", null), cell("d", 0), cell("a", 2)]],
])("locks in the order of the keys when it %s", async (_, changes) => {
  const world = await postgresWorld(URL);
  const other = new pg.Client({ connectionString: URL });
  await other.connect();
  onTestFinished(async () => {
    await other.end();
    await world.close();
  });
  const { schema, store } = world;
  await store.setCells(["a", "b", "c"].map((name) => cell(name, 0, "1")));
  await other.query(`begin; select from ${schema}.cell where name = 'b' for update`);
  const answer = store.setCells(changes);
  const free = `select name from ${schema}.cell order by name for update skip locked`;
  await until(async () => (await sql(URL, free)).length === 1);
  expect(await sql(URL, free)).toEqual([{ name: "c" }]);
  await other.query("rollback");
  expect(await answer).toEqual(changes.map(() => true));
});

it.each([
  ["replaced", (name: string) => cell(name, 1)],
  ["deleted", (name: string) => cell(name, 1, null)],
  ["a schedule among others", (name: string) => cell(name, 1, "2", "schedule")],
])("leaves a cell that is held alone where it is to be %s, and waits for nobody", async (_, change) => {
  const world = await postgresWorld(URL);
  const other = new pg.Client({ connectionString: URL });
  await other.connect();
  onTestFinished(async () => {
    await other.end();
    await world.close();
  });
  const { schema, store } = world;
  const changes = ["c", "b", "a"].map(change);
  await store.setCells(changes.map((each) => ({ ...each, version: 0, value: "1" })));
  await other.query(`begin; select from ${schema}.cell where name = 'b' for update`);
  expect(await store.setCells([...changes, cell("new", 0)])).toEqual([true, false, true, true]);
  await other.query("rollback");
  const [, held] = changes;
  expect(await store.setCells([held as CellChange])).toEqual([true]);
});

it.each([
  ["does not wait for the disk", "load", "off"],
  ["is on disk before it is answered where it is a schedule", "schedule", "on"],
  ["is on disk before it is answered where it is the state of a batch", "batch", "on"],
])("%s", async (_, kind, setting) => {
  const world = await postgresWorld(URL);
  onTestFinished(() => world.close());
  const { schema, store } = world;
  // A trigger sees what the commit to come goes by.
  await sql(
    URL,
    `create table ${schema}.seen (setting text);
     create function ${schema}.look() returns trigger language plpgsql as
       $$ begin insert into ${schema}.seen values (current_setting('synchronous_commit')); return null; end $$;
     create trigger look after insert or update or delete on ${schema}.cell for each statement execute function ${schema}.look()`,
  );
  await store.setCells([cell("a", null, "2", kind)]);
  await store.setCells([cell("a", 1, "2", kind)]);
  await store.setCells([cell("a", 2, null, kind), cell("b", 0, "2", kind)]);
  await store.setCells([cell("b", 1, "2", kind), cell("c", null, "2", "load")]);
  const seen = await sql(URL, `select distinct setting from ${schema}.seen`);
  await sql(URL, `drop function ${schema}.look cascade; drop table ${schema}.seen`);
  expect(seen).toEqual([{ setting }]);
});
