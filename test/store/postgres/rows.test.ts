// What a settle writes: every row in its place, and not again what it leaves as it is.
import { expect, inject, it } from "vitest";
import { settleStatements } from "../../../src/store/postgres/settle-statements.ts";
import { newJob } from "../../support/new-job.ts";
import { storeBeside } from "../../support/postgres-world.ts";
import { claimBy, signUp } from "../../support/runs.ts";

const COUNT = 300;

async function setup() {
  const { s, store, client } = await storeBeside(inject("postgres18"));
  const worker = await signUp(store);
  /** Claims new jobs with a payload of this many bytes. */
  const claimed = async (bytes: number) => {
    await store.enqueue(Array.from({ length: COUNT }, () => newJob({ payload: JSON.stringify("x".repeat(bytes)) })));
    return (await claimBy(store, worker, { limit: COUNT })).jobs;
  };
  return { s, store, client, worker, claimed };
}

it("updates the row of a job that completes with a small result in place, so that no index grows", async () => {
  const { s, store, client, claimed } = await setup();
  const verdict = { kind: "complete", result: '{"key":"a.png"}' } as const;
  for (let n = 0; n < 3; n++) {
    const jobs = await claimed(100);
    await store.settle({ settlements: jobs.map(({ id, epoch, nonce }) => ({ id, epoch, nonce, verdict })) });
  }
  await store.close();
  const counts = async (): Promise<unknown> => {
    await client.query("select pg_stat_clear_snapshot()");
    const text = `select n_tup_upd::int as updated, n_tup_hot_upd::int as in_place from pg_stat_user_tables
      where schemaname = $1 and relname = 'job'`;
    return (await client.query(text, [s])).rows[0];
  };
  // A backend says what it did when it ends.
  await expect.poll(counts).toEqual({ updated: 3 * COUNT, in_place: 3 * COUNT });
});

it("does not write the payload to the log again when a job completes", async () => {
  const { s, client, worker, claimed } = await setup();
  const { complete } = settleStatements(s, null);
  const logged = async (bytes: number): Promise<number> => {
    const jobs = await claimed(bytes);
    const { rows: seqs } = await client.query<{ seqs: string[] }>(`select seqs from ${s}.claim where nonce = $1`, [
      jobs[0]?.nonce,
    ]);
    const ones = `array_fill(1::bigint, array[${COUNT}])`;
    const values = `array['${jobs[0]?.nonce}'], '{${seqs[0]?.seqs.join(",")}}', ${ones}, ${ones}::int[], array_fill('{}'::text, array[${COUNT}]), '${worker}', 1`;
    await client.query(`prepare complete as ${complete.text}`);
    const { rows } = await client.query(`explain (analyze, wal, format json) execute complete (${values})`);
    await client.query("deallocate complete");
    const [{ Plan: plan }] = rows[0]["QUERY PLAN"];
    // A page that is written for the first time after a checkpoint goes to the log as a whole.
    return (plan["WAL Bytes"] - plan["WAL FPI"] * 8_192) / COUNT;
  };
  const [short, long] = [await logged(10), await logged(1_500)];
  expect(short).toBeGreaterThan(100);
  expect(long).toBeLessThan(short + 200);
});
