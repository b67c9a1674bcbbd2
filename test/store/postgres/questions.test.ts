// What people ask has connections of its own, made at the first question.
import pg from "pg";
import { expect, inject, it, onTestFinished } from "vitest";
import { createPostgresStore } from "../../../src/store/postgres/index.ts";
import { newJob } from "../../support/new-job.ts";
import { testSchema } from "../../support/postgres-queue.ts";
import { sql } from "../../support/postgres-world.ts";

const SERVER = inject("postgres18");

it("people are answered while every connection of the workers waits", async () => {
  const { schema } = testSchema(SERVER);
  const store = createPostgresStore({ url: SERVER, schema, maxConnections: 1 });
  onTestFinished(() => store.close());
  const first = newJob();
  await store.enqueue([first]);
  const other = new pg.Client({ connectionString: SERVER });
  await other.connect();
  onTestFinished(() => other.end());
  await other.query(`begin; lock table ${schema}.lane in access exclusive mode`);
  let written = false;
  const writing = store.enqueue([newJob({ type: "new-lane" })]).then(() => (written = true));
  const waits = `select from pg_locks where relation = '${schema}.lane'::regclass and not granted`;
  await expect.poll(() => sql(SERVER, waits), { interval: 5 }).toHaveLength(1);
  expect(await store.history(first.id)).toEqual([]);
  expect(await store.count(10)).toMatchObject({ queued: 1 });
  expect(written).toBe(false);
  await other.query("rollback");
  await writing;
  expect(await store.count(10)).toMatchObject({ queued: 2 });
});
