// What people ask has connections of its own, made at the first question, and reads what it looks at and no more.
import pg from "pg";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { gatherHealth } from "../../../src/operate/health.ts";
import { createPostgresStore, type PostgresStore } from "../../../src/store/postgres/index.ts";
import { newJob } from "../../support/new-job.ts";
import { testSchema } from "../../support/postgres-queue.ts";
import { blocksRead } from "../../support/postgres-blocks.ts";
import { sql, storeBeside } from "../../support/postgres-world.ts";
import { claimBy, signUp } from "../../support/runs.ts";
import { dead } from "../../support/verdicts.ts";

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

describe("in a store whose tables the planner takes for empty", () => {
  const LOOK = { limit: 5, lookAt: 100 };
  const CAUSE = dead().failure.fingerprint;
  const QUESTIONS: Readonly<Record<string, (store: PostgresStore) => Promise<unknown>>> = {
    "waiting jobs": (store) => store.list({ ...LOOK, state: "queued" }),
    "waiting jobs of a tenant": (store) => store.list({ ...LOOK, state: "queued", tenant: "none" }),
    "running jobs of a tenant": (store) => store.list({ ...LOOK, state: "running", tenant: "none" }),
    "dead jobs of a tenant": (store) => store.list({ ...LOOK, state: "dead", tenant: "none" }),
    "jobs by due time": (store) => store.list({ ...LOOK, sort: "due", tenant: "none" }),
    "letters of a cause": (store) => store.deadLetters({ ...LOOK, fingerprint: CAUSE }),
    "letters of a cause, however far": (store) => store.deadLetters({ limit: 5, fingerprint: CAUSE }),
    "letters that wait for an archive": (store) => store.tally({ aside: true }),
    "a tally of a service": (store) => store.tally({ lookAt: 100, service: "none" }),
    counts: (store) => store.count(100),
    health: (store) => gatherHealth(store),
  };
  /** A few index levels for each row looked at, what a connection reads at first, and the runs of both claims. */
  const FEW = 1_500;

  it("no question reads more than a few blocks for each row that it may look at", async () => {
    const { store, client, s } = await storeBeside(SERVER);
    const worker = await signUp(store);
    for (let n = 0; n < 3; n++) {
      await store.enqueue(Array.from({ length: 1_000 }, () => newJob()));
      const { jobs } = await claimBy(store, worker, { limit: 1_000 });
      const settlements = jobs.map(({ id, epoch, nonce }) => ({ id, epoch, nonce, verdict: dead() }));
      await store.settle({ settlements });
    }
    for (let n = 0; n < 6; n++) await store.enqueue(Array.from({ length: 1_000 }, () => newJob()));
    await claimBy(store, worker, { limit: 200 });
    // As a vacuum leaves them that saw them empty.
    await client.query(
      `update pg_class set reltuples = 0, relpages = greatest(1, pg_relation_size(oid) / 8192)
       where relnamespace = $1::regnamespace and relkind = 'r'`,
      [s],
    );
    const read: Record<string, number> = {};
    for (const [name, ask] of Object.entries(QUESTIONS))
      read[name] = await blocksRead(client, s, createPostgresStore({ url: SERVER, schema: s }), ask);
    // A run that has sent them all; the jobs of the newest three have not run.
    await client.query(`update ${s}.dead_letter set redriven_at = 1, redrive = 'r',
      outcome = case when seq <= (select max(seq) - 3 from ${s}.dead_letter) then 'completed' end`);
    const pending = { redrive: "r", outcome: "none", sort: "enqueued", limit: 3 } as const;
    const ask = (each: PostgresStore): Promise<unknown> => each.deadLetters(pending);
    read["pending letters of a run"] = await blocksRead(
      client,
      s,
      createPostgresStore({ url: SERVER, schema: s }),
      ask,
    );
    expect(Object.entries(read).filter(([, blocks]) => blocks > FEW)).toEqual([]);
  });
});
