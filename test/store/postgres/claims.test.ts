// What a claim stands for while it is the only word about a run: jobs that run have no row of their own that says so.
import pg from "pg";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { createPostgresStore, type PostgresStore } from "../../../src/store/postgres/index.ts";
import { freshSchema } from "../../support/postgres-world.ts";
import { add, isStale, leaseOf, nextNonce, read, signUp, start, take } from "../../support/runs.ts";
import { complete, release, retry } from "../../support/verdicts.ts";

const URL = inject("postgres18");

/** A schema of its own with two stores, as two processes have them, and a connection beside them. */
async function setup() {
  const s = freshSchema();
  const stores = [1, 2].map(() => createPostgresStore({ url: URL, schema: s })) as [PostgresStore, PostgresStore];
  await stores[0].migrate();
  const client = new pg.Client({ connectionString: URL });
  await client.connect();
  onTestFinished(async () => {
    for (const store of stores) await store.close();
    await client.query(`drop schema ${s} cascade`);
    await client.end();
  });
  const [store, other] = stores;
  return { store, other, client, s };
}

describe("a claim that the server lost in a crash", () => {
  it("gives its leases no right to anything, though their epochs are given out again", async () => {
    const { store, other, client, s } = await setup();
    const run = await start(store);
    await client.query(`delete from ${s}.claim`);
    await client.query(`insert into ${s}.waiting (lane, run_at, seq) select lane, run_at, seq from ${s}.job`);
    expect(await read(store, run.id)).toMatchObject({ state: "queued", epoch: 0, worker: null });
    expect(await isStale(store, run, complete())).toBe(true);
    const [again] = await take(other);
    expect(again).toMatchObject({ id: run.id, epoch: run.epoch });
    for (const verdict of [complete(), release(), { kind: "progress", value: "1" } as const]) {
      expect(await isStale(store, run, verdict)).toBe(true);
      expect(await isStale(other, run, verdict)).toBe(true);
    }
    expect(await isStale(other, leaseOf(again as typeof run), complete())).toBe(false);
    expect(await read(store, run.id)).toMatchObject({ state: "completed", epoch: 1 });
  });
});

describe("an epoch that no claim could follow", () => {
  it.each(["job", "waiting"])("is refused when it is written by hand into %s, and claims go on", async (table) => {
    const { store, client, s } = await setup();
    await add(store);
    const epoch = "9223372036854775807";
    await expect(client.query(`update ${s}.${table} set epoch = ${epoch}`)).rejects.toMatchObject({ code: "23514" });
    expect(await take(store)).toHaveLength(1);
  });
});

describe("a lease", () => {
  it("is good for the jobs of its claim only, also where another process settles it", async () => {
    const { store, other } = await setup();
    const worker = await signUp(store);
    const [one, two] = [await start(store, {}, worker), await start(store, {}, worker)];
    for (const each of [store, other]) {
      expect(await isStale(each, { ...leaseOf(one), nonce: two.nonce }, complete())).toBe(true);
      expect(await isStale(each, { ...leaseOf(one), epoch: 2 }, complete())).toBe(true);
    }
    const settlements = [{ ...leaseOf(one), nonce: two.nonce }, leaseOf(one)].map((lease) => ({
      ...lease,
      verdict: complete(),
    }));
    expect((await other.settle({ settlements })).stale).toEqual([{ ...leaseOf(one), nonce: two.nonce }]);
    expect(await read(store, one.id)).toMatchObject({ state: "completed", worker, startedAt: one.startedAt });
    expect(await store.held(worker)).toEqual([leaseOf(two)]);
  });
});

describe("a cancel that meets a run as it is sent back", () => {
  it("ends the job in the queue instead of leaving a word for a run that is over", async () => {
    const { store, client, s } = await setup();
    const id = await add(store);
    await take(store);
    await client.query("begin");
    await client.query(`update ${s}.job set epoch = epoch + 1`);
    await client.query(
      `insert into ${s}.waiting (lane, run_at, seq, epoch) select lane, run_at, seq, epoch from ${s}.job`,
    );
    const answer = store.cancel([id]);
    const waits = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%' || $1 || '%'`;
    const waiting = async (): Promise<number | null> => {
      // Inside a transaction the server would repeat what it said first.
      await client.query("select pg_stat_clear_snapshot()");
      return (await client.query(waits, [`${s}.job`])).rowCount;
    };
    await expect.poll(waiting).toBe(1);
    await client.query("commit");
    expect(await answer).toEqual(["cancelled"]);
    expect(await read(store, id)).toMatchObject({ state: "cancelled" });
    expect((await client.query(`select from ${s}.waiting`)).rowCount).toBe(0);
  });
});

describe("a claim in several parts", () => {
  it("takes from a lane that is named twice until it has enough, without a transaction around", async () => {
    const { store, client, s } = await setup();
    const worker = await signUp(store);
    for (let n = 0; n < 5; n++) await add(store);
    await add(store, { priority: 0, type: "other" });
    const { version } = await store.control();
    const { lanes } = await store.lanes(null, 10);
    const [one, two] = lanes.map(({ lane }) => lane) as [number, number];
    const quotas = [one, two, one, two].map((lane, n) => ({ lane, limit: n < 2 ? 1 : 10 }));
    const request = { worker, quotas, limit: 4, nonce: nextNonce(), control: version, ticket: 1, startedThrough: 0 };
    const { jobs } = await store.claim(request);
    expect(jobs).toHaveLength(4);
    expect(jobs.map(({ ticket }) => ticket)).toEqual([1, 2, 3, 4]);
    // A claim is written in parts, each of them whole: what one says is not lost with another.
    const { rows } = await client.query(`select xmin::text from ${s}.claim`);
    expect(new Set(rows.map(({ xmin }) => xmin as string)).size).toBe(2);
    const held = await store.held(worker);
    expect(held.map(({ id }) => id).sort()).toEqual(jobs.map(({ id }) => id).sort());
    for (const job of jobs) expect(await isStale(store, leaseOf(job), complete())).toBe(false);
  });

  it("began with its last part: no run of it is told to have begun before its job was due", async () => {
    const { store, client, s } = await setup();
    const worker = await signUp(store);
    for (let n = 0; n < 2; n++) await add(store);
    const { version } = await store.control();
    const { lane = -1 } = (await store.lanes(null, 10)).lanes[0] ?? {};
    const quotas = [1, 2].map(() => ({ lane, limit: 1 }));
    const request = { worker, quotas, limit: 2, nonce: nextNonce(), control: version, ticket: 1, startedThrough: 0 };
    const { jobs, now } = await store.claim(request);
    // As on a slow server, where the second part is taken long after the first.
    await client.query(`update ${s}.claim set at = $1::bigint - 60000 where ticket = 1`, [now]);
    for (const job of jobs) {
      expect(await isStale(store, leaseOf(job), retry())).toBe(false);
      const { rows } = await client.query(
        `select started_at::float8 as at from ${s}.attempt where job_seq =
        (select seq from ${s}.job where id = $1)`,
        [job.id],
      );
      expect(rows).toEqual([{ at: now }]);
    }
  });
});
