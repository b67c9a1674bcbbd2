// What a statement may take, and what one locked row may stop. Whatever we stop waiting for ends in the server too, on
// connections of our own, on those of a caller's pool and behind a pooler; and a row of one worker holds up no other.
import type pg from "pg";
import { describe, expect, inject, it, onTestFinished, vi } from "vitest";
import { openDependencies, type PostgresDependencies } from "../../../src/store/postgres/dependencies.ts";
import type { PostgresOptions } from "../../../src/store/postgres/address.ts";
import type { ClaimedJob, Retention } from "../../../src/store/store.ts";
import { HAS_PGBOUNCER, startPgBouncer } from "../../support/pgbouncer.ts";
import { openQueue, type PostgresQueue, testPool } from "../../support/postgres-queue.ts";
import { sql } from "../../support/postgres-world.ts";
import { add, claimBy, leaseOf, signUp, take } from "../../support/runs.ts";
import { complete } from "../../support/verdicts.ts";

const SERVER = inject("postgres18");
/** Longer than the server waits for a lock or lets a statement run, with room for a busy machine. */
const LONG = { timeout: 120_000 };
const SETTINGS = ["statement_timeout", "lock_timeout"].map((name) => `current_setting('${name}')`).join(", ");
const BOUNDS = { text: `select ${SETTINGS}` };

function parts(options: PostgresOptions): PostgresDependencies {
  const opened = openDependencies(options, {});
  onTestFinished(() => opened.db.close());
  return opened;
}

type Way = readonly [name: string, open: () => Promise<PostgresDependencies>];
const BEHIND_POOLER: Way = [
  "a pooler in transaction mode",
  async () => parts({ url: await startPgBouncer(SERVER, 2), pooler: true }),
];
const WAYS: readonly Way[] = [
  ["a connection of our own", async () => parts({ url: SERVER })],
  ["a connection of a caller's pool", async () => parts({ pool: testPool(SERVER) })],
  // As behind a pooler: nothing is said when a connection is made.
  ["a connection that is told nothing", async () => parts({ url: SERVER, pooler: true })],
  ...(HAS_PGBOUNCER ? [BEHIND_POOLER] : []),
];

describe("on the way to the server by", () => {
  it.each(WAYS)("%s, the server bounds every statement, and migrations by their own time", async (_name, open) => {
    const { db } = await open();
    const usual = [["14s", "12s"]];
    expect(await db.ask(BOUNDS)).toEqual(usual);
    expect(await db.together((ask) => ask(BOUNDS))).toEqual(usual);
    expect(await db.together((ask) => ask(BOUNDS), undefined, 250)).toEqual([["14s", "250ms"]]);
    expect(await db.together((ask) => ask(BOUNDS), 600_000)).toEqual([["599s", "597s"]]);
  });

  it("any of these, a statement that takes too long ends in the server, and it is said so", LONG, async () => {
    const mark = `sleeps ${Math.random()}`;
    const ways = await Promise.all(WAYS.map(([, open]) => open()));
    const asked = ways.map(({ db }) => db.ask({ text: `select pg_sleep(300), '${mark}'` }));
    for (const each of await Promise.allSettled(asked))
      expect(each).toMatchObject({
        reason: {
          code: "store_unavailable",
          message: expect.stringMatching(/ended a statement that took too long: .*statement timeout/) as string,
        },
      });
    const left = `select count(*)::int as n from pg_stat_activity
      where state <> 'idle' and query like $1 and pid <> pg_backend_pid()`;
    // The server tells the error a moment before its process counts as idle; one that went on would sleep for minutes.
    await vi.waitFor(async () => expect(await sql(SERVER, left, [`%${mark}%`])).toEqual([{ n: 0 }]), 60_000);
  });

  it("a caller's pool, nothing of it stays on the connection", async () => {
    const pool = testPool(SERVER, 1);
    const { db } = parts({ pool });
    const settings = async () => (await pool.query({ text: BOUNDS.text, rowMode: "array" })).rows;
    const before = await settings();
    await db.ask(BOUNDS);
    await db.together((ask) => ask(BOUNDS));
    expect(await settings()).toEqual(before);
  });

  it("a URL with options, what these say of the bounds counts", async () => {
    const { db } = parts({ url: `${SERVER}?options=-c%20statement_timeout%3D3s` });
    expect(await db.ask(BOUNDS)).toEqual([["3s", "12s"]]);
  });
});

/** Holds the row of a worker in a transaction until the test ends it, or ends. */
async function lockWorker({ pool, schema }: PostgresQueue, worker: string): Promise<pg.PoolClient> {
  const client = await pool.connect();
  onTestFinished(() => client.release(true));
  await client.query("begin");
  await client.query(`select from ${schema}.worker where id = $1 for update`, [worker]);
  return client;
}

async function runOf({ store }: PostgresQueue): Promise<{ readonly worker: string; readonly run: ClaimedJob }> {
  const worker = await signUp(store);
  await add(store);
  return { worker, run: (await take(store, worker))[0] as ClaimedJob };
}

const waiting = ({ sql: ask, schema }: PostgresQueue) =>
  ask(`select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and query like '%${schema}%'`);

const KEEP: Retention = { keep: { finishedMs: 0, deadMs: 0 }, types: [], keyMs: 0, limit: 1_000, isFirst: true };

describe("the row of one worker, locked", () => {
  it("keeps no other worker from being given up", async () => {
    const queue = await openQueue(SERVER);
    const { store } = queue;
    const [one, two] = [await runOf(queue), await runOf(queue)];
    const tx = await lockWorker(queue, one.worker);
    const lost = async () =>
      (await store.expired({ gone: [one.worker, two.worker], limit: 10 })).map(({ job }) => job.id);
    expect(await lost()).toEqual([two.run.id]);
    await tx.query("rollback");
    expect(await lost()).toEqual([one.run.id, two.run.id]);
  });

  it("keeps its worker neither from settling nor from claiming, nor others from pruning", async () => {
    const queue = await openQueue(SERVER);
    const { store } = queue;
    const { worker, run } = await runOf(queue);
    const tx = await lockWorker(queue, worker);
    const settlements = [{ ...leaseOf(run), verdict: complete() }];
    expect(await store.settle({ settlements, worker, startedThrough: 7 })).toMatchObject({ stale: [] });
    expect(await store.settle({ settlements: [], worker, startedThrough: 8 })).toMatchObject({ stale: [] });
    expect(await claimBy(store, worker, { startedThrough: 9 })).toMatchObject({ jobs: [], refused: null });
    await tx.query(`update ${queue.schema}.worker set given_up = true, beat_at = 0`);
    await store.prune(KEEP);
    await tx.query("commit");
    await tx.query("begin");
    await tx.query(`select from ${queue.schema}.worker for update`);
    await store.prune(KEEP);
    expect(await store.workers()).toMatchObject([{ id: worker }]);
  });

  it("is waited for by a heartbeat no longer than leaves time for another", async () => {
    const queue = await openQueue(SERVER);
    const { worker } = await runOf(queue);
    const tx = await lockWorker(queue, worker);
    const beat = { worker, leaseMs: 2_000, startedThrough: 0 };
    await expect(queue.store.beat(beat)).rejects.toThrow(
      "Rows of Redrive are held by another transaction that is still open. Try again when that transaction has ended.",
    );
    await expect(Promise.all([queue.store.beat(beat), queue.store.beat(beat)])).rejects.toThrow("Rows of Redrive");
    await expect.poll(() => waiting(queue), { timeout: 10_000 }).toEqual([{ n: 0 }]);
    await tx.query("rollback");
    expect(await queue.store.beat(beat)).toMatchObject({ alive: true });
  });
});
