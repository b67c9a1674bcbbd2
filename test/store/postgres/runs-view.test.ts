// The view `runs` on Postgres: the same as the library says, whatever happened to a job, and fast among many.
import pg from "pg";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { createRedrive } from "../../../src/redrive.ts";
import { createPostgresStore } from "../../../src/store/postgres/index.ts";
import { newJob } from "../../support/new-job.ts";
import { blocksRead } from "../../support/postgres-blocks.ts";
import { planOf, wholeTables } from "../../support/postgres-plan.ts";
import { postgresWorld } from "../../support/postgres-world.ts";
import { asRows, LIVES, live } from "../../support/run-lives.ts";
import { add, end, start } from "../../support/runs.ts";
import { complete } from "../../support/verdicts.ts";

const HISTORY = "select * from runs where job_id = $1 order by generation, retry_count";
const PENDING = "select * from runs where status = 'pending_retry' order by next_retry_at limit 50";
const QUEUE = "select * from retry_queue order by process_after limit 50";

async function setup() {
  const url = inject("postgres18");
  const world = await postgresWorld(url, { now: Date.now() });
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`set search_path to ${world.schema}`);
  onTestFinished(async () => {
    await client.end();
    await world.close();
  });
  const ask = async (text: string, ...values: unknown[]): Promise<unknown[][]> =>
    (await client.query<unknown[]>({ text, values, rowMode: "array" })).rows;
  return { ...world, client, ask };
}

describe("the view of runs", () => {
  it.each(Object.entries(LIVES))("says what the library says of a job that %s", async (_, steps) => {
    const { store, clock, ask } = await setup();
    for (const limited of [true, false]) {
      const lived = await live(store, clock, steps, { limited });
      const rows = asRows(
        lived,
        (ms) => new Date(ms),
        (is) => is,
      );
      expect(await ask(HISTORY, lived.job.id)).toEqual(rows);
    }
  });

  it("shows odd rows and does not break", async () => {
    const { store, ask } = await setup();
    const done = await start(store);
    await end(store, done, complete());
    await ask("update job set attempts = 1000000 where id = $1", done.id);
    const id = await add(store);
    const other = await add(store);
    await ask("update job set lane = 4711, attempts = 1000000, max_attempts = 1000000 where id = $1", id);
    await ask("update waiting set lane = 4711, job_id = $1 where seq = (select seq from job where id = $1)", id);
    await ask(
      `insert into attempt (job_seq, generation, epoch, attempt, ended_at, delay_ms, error_class, error_name, error_message, failure)
       select seq, -1, 1, 1000000, 1, 9000000000000, '', '', '', '' from job where id = $1`,
      id,
    );
    expect(await ask("select count(*)::int from runs")).toEqual([[4]]);
    expect(await ask("select attempt, status from attempts where job_id = $1", done.id)).toEqual([
      [1000001, "completed"],
    ]);
    expect(await ask("select status from runs where job_id = $1", other)).toEqual([["queued"]]);
  });
});

describe("with 200,000 waiting retries", () => {
  it("what is pending, stuck or one job's history is found without reading the whole", {
    timeout: 120_000,
  }, async () => {
    const { store: own, client, clock, ask, schema } = await setup();
    await own.enqueue([newJob({ type: "retry" })]);
    const stuck = await start(own, { stuckMs: 1 });
    clock.now += 10;
    await client.query(`insert into job (id, lane, run_at, due_at, created_at, updated_at, attempts, max_attempts, max_crashes, version, payload)
      select 'copy-' || n, j.lane + 1, j.run_at + n * 1000, j.due_at, j.created_at, j.updated_at, 1, 10, 3, 1, '1'
      from job j cross join generate_series(1, 200000) n where j.started_at is null and exists (select from waiting w where w.seq = j.seq)`);
    await client.query(
      `insert into waiting (lane, run_at, seq, job_id) select lane, run_at, seq, id from job where attempts = 1`,
    );
    // The blocks that the server's own upkeep reads would count as ours.
    for (const table of ["job", "waiting"]) await client.query(`alter table ${table} set (autovacuum_enabled = false)`);
    await client.query("analyze job; analyze waiting");
    expect(await ask("select count(*)::int from runs where status = 'pending_retry'")).toEqual([[200_000]]);
    expect((await ask(PENDING)).map(([id]) => id).slice(0, 2)).toEqual(["copy-1:1.2", "copy-2:1.2"]);
    for (const [text, values] of [
      [PENDING, []],
      [QUEUE, []],
      [HISTORY, ["copy-77"]],
      ["select * from runs where status = 'running'", []],
    ] as const)
      expect(wholeTables(await planOf(client, text, [...values]), ["job", "waiting"])).toEqual([]);
    const blocks = await blocksRead(
      client,
      schema,
      createPostgresStore({ url: inject("postgres18"), schema }),
      async (store) => {
        const redrive = await createRedrive({ store });
        expect((await redrive.stuck.list()).map(({ id }) => id)).toEqual([stuck.id]);
        const due = { limit: 50, state: "queued", tried: true, sort: "due" } as const;
        expect((await store.list(due)).items.map(({ id }) => id).slice(0, 2)).toEqual(["copy-1", "copy-2"]);
        const { runAt } = (await store.get(["copy-150000"]))[0] ?? { runAt: 0 };
        const page = await store.list({ ...due, cursor: `${runAt}.1` });
        expect(page.items[0]?.id).toBe("copy-150000");
      },
    );
    // Some hundred rows by their indexes; the whole table has 8,700 blocks.
    expect(blocks).toBeLessThan(6_000);
  });
});
