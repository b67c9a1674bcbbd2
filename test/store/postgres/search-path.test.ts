// Functions of the names that we use, in a schema that a role, a pool or a transaction looks through before that of
// Postgres: none of them is ever called.
import pg from "pg";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { createPostgresStore, type PostgresStore } from "../../../src/store/postgres/index.ts";
import type { ClaimedJob } from "../../../src/store/store.ts";
import { newJob } from "../../support/new-job.ts";
import { testPool, testSchema } from "../../support/postgres-queue.ts";
import { sql } from "../../support/postgres-world.ts";
import { leaseOf, signUp, take } from "../../support/runs.ts";
import { complete, dead } from "../../support/verdicts.ts";

const SERVER = inject("postgres18");
const NAMES =
  "floor statement_timestamp clock_timestamp hashtext hashtextextended pg_try_advisory_lock pg_advisory_unlock pg_notify nextval random " +
  "generate_series array_position set_config json_build_array pg_advisory_xact_lock_shared width_bucket current_setting";

/** A schema with a function for each of those of Postgres that have these names; each fails. */
async function hijack(): Promise<string> {
  const { schema } = testSchema(SERVER);
  await sql(
    SERVER,
    `create schema ${schema};
    do $$ declare f record; begin
      for f in select oid, proname from pg_catalog.pg_proc where pronamespace = 'pg_catalog'::regnamespace and prokind = 'f'
        and proname = any(string_to_array('${NAMES}', ' ')) and provariadic = 0 loop
        execute format('create function ${schema}.%I(%s) returns %s language plpgsql as ''begin raise exception ''''hijacked %s''''; end''',
          f.proname, pg_get_function_identity_arguments(f.oid), pg_get_function_result(f.oid), f.proname);
      end loop;
    end $$`,
  );
  return schema;
}

async function exerciseStore(store: PostgresStore): Promise<void> {
  await store.enqueue([newJob(), newJob({ key: "k" }), newJob({ group: "g" })]);
  const worker = await signUp(store);
  await store.beat({ worker, leaseMs: 30_000, startedThrough: 0 });
  const runs = await take(store, worker);
  expect(runs).toHaveLength(3);
  const verdicts = [complete(), dead(), complete()];
  const settlements = runs.map((run, at) => ({ ...leaseOf(run), verdict: verdicts[at] ?? complete() }));
  expect(await store.settle({ settlements, worker, startedThrough: 3 })).toMatchObject({ stale: [] });
  expect(await store.count()).toMatchObject({ completed: 2, dead: 1 });
}

describe("functions of our names in another schema are not called", () => {
  it("on connections of our own", async () => {
    const evil = await hijack();
    const { schema } = testSchema(SERVER);
    const store = createPostgresStore({ url: `${SERVER}?options=-c%20search_path%3D${evil},pg_catalog`, schema });
    onTestFinished(() => store.close());
    await exerciseStore(store);
  });

  it("on those of a caller's pool", async () => {
    const evil = await hijack();
    const { schema } = testSchema(SERVER);
    const pool = new pg.Pool({ connectionString: SERVER, max: 3, options: `-c search_path=${evil},pg_catalog` });
    onTestFinished(() => pool.end());
    const store = createPostgresStore({ pool, schema });
    onTestFinished(() => store.close());
    await exerciseStore(store);
    await expect(pool.query("select floor(1.5)")).rejects.toThrow("hijacked floor");
  });

  it("in a transaction of a caller's", async () => {
    const evil = await hijack();
    const { schema } = testSchema(SERVER);
    const store = createPostgresStore({ url: SERVER, schema });
    onTestFinished(() => store.close());
    await store.enqueue([newJob()]);
    const [run] = await take(store);
    const client = await testPool(SERVER, 1).connect();
    onTestFinished(() => client.release(true));
    await client.query(`begin; set local search_path = ${evil}, pg_catalog`);
    const within = store.within(client);
    const [one, two] = [newJob({ type: "new", key: "k", unique: "replace" }), newJob({ type: "new", tenant: "t" })];
    expect(await within.enqueue([one, two])).toMatchObject([{ kind: "created" }, { kind: "created" }]);
    expect(await within.enqueue([newJob({ type: "new", key: "k", unique: "replace" })])).toMatchObject([
      { kind: "replaced" },
    ]);
    expect(await within.complete(leaseOf(run as ClaimedJob), "1")).toBe(true);
    await client.query("commit");
    expect(await store.count()).toMatchObject({ queued: 2, completed: 1 });
  });
});
