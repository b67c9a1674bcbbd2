// Two callers who want one key at the same time, stepped by hand: one holds the key in an open transaction, the other
// waits for it on the server, the first one commits. Whoever waited must see what the winner wrote.
import type pg from "pg";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { type NewJob, UNIQUE_MODES, type UniqueMode } from "../../../src/core/new-job.ts";
import type { Retention } from "../../../src/store/store.ts";
import { newJob } from "../../support/new-job.ts";
import { openQueue, type PostgresQueue } from "../../support/postgres-queue.ts";
import { add, end, read, take, takeOne } from "../../support/runs.ts";
import { complete } from "../../support/verdicts.ts";

const SERVER = inject("postgres18");
const WAIT = { timeout: 20_000, interval: 5 };
const FOREVER: Retention = {
  keep: { finishedMs: 1e12, deadMs: null },
  types: [],
  keyMs: 0,
  limit: 1_000,
  isFirst: true,
};

const keyed = (unique: UniqueMode, more: Partial<NewJob> = {}) =>
  newJob({ type: "keyed", key: "k", unique, payload: '{"body":2}', ...more });

/** A connection of the application in a transaction; what is left open goes with the test. */
async function openTransaction({ pool }: PostgresQueue): Promise<pg.PoolClient> {
  const client = await pool.connect();
  onTestFinished(() => client.release(true));
  await client.query("begin");
  return client;
}

/** Waits until a connection waits for what another one holds. */
async function untilItWaits({ sql }: PostgresQueue, tx: pg.PoolClient): Promise<void> {
  const { processID } = tx as unknown as { readonly processID: number };
  const waiting = () => sql("select wait_event_type as type from pg_stat_activity where pid = $1", [processID]);
  await expect.poll(waiting, WAIT).toEqual([{ type: "Lock" }]);
}

/** Enqueues in one transaction, then in another that has to wait for it; both commit. */
async function race(queue: PostgresQueue, [one, two]: readonly [NewJob, NewJob]) {
  const [first, second] = [await openTransaction(queue), await openTransaction(queue)];
  const [won] = await queue.store.within(first).enqueue([one]);
  const waited = queue.store.within(second).enqueue([two]);
  await untilItWaits(queue, second);
  await first.query("commit");
  const [met] = await waited;
  await second.query("commit");
  return { won, met };
}

/** What the second caller is told, by the mode. */
const MET: Readonly<Record<UniqueMode, string>> = {
  key: "duplicate",
  queued: "duplicate",
  active: "duplicate",
  replace: "replaced",
  debounce: "replaced",
};

describe.each(UNIQUE_MODES)("a key that two want at once, %s", (unique) => {
  it("stands for one waiting job where nobody had it", async () => {
    const queue = await openQueue(SERVER);
    const [one, two] = [keyed(unique), keyed(unique)];
    const { won, met } = await race(queue, [one, two]);
    expect(won).toEqual({ kind: "created", id: one.id });
    expect(met).toMatchObject({ kind: MET[unique], id: one.id });
    expect(await queue.store.count()).toMatchObject({ queued: 1 });
  });

  it("stands for one waiting job after its last one has ended", async () => {
    const queue = await openQueue(SERVER);
    const { store } = queue;
    const last = await add(store, { type: "keyed", key: "k", payload: '{"body":2}' });
    await end(store, await takeOne(store, last), complete());
    const [one, two] = [keyed(unique), keyed(unique)];
    const { won, met } = await race(queue, [one, two]);
    // A plain key stays with the job that had it.
    const holder = unique === "key" ? last : one.id;
    expect(won).toMatchObject({ kind: unique === "key" ? "duplicate" : "created", id: holder });
    expect(met).toMatchObject({ kind: MET[unique], id: holder });
    expect(await store.count()).toMatchObject({ queued: unique === "key" ? 0 : 1 });
    expect(await take(store)).toHaveLength(unique === "key" ? 0 : 1);
  });

  it("is not freed by a prune that meets it while it is being taken", async () => {
    const queue = await openQueue(SERVER);
    const { store, sql } = queue;
    await goneKey(queue);
    const tx = await openTransaction(queue);
    const one = keyed(unique, { payload: '{"body":1}' });
    expect(await store.within(tx).enqueue([one])).toMatchObject([
      { id: unique === "key" ? expect.any(String) : one.id },
    ]);
    const pruned = store.prune(FOREVER);
    let isOver = false;
    void pruned.finally(() => (isOver = true));
    const waiting = async () =>
      (await sql("select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%@.job_key%'")).length >
      0;
    await expect.poll(async () => isOver || (await waiting()), WAIT).toBe(true);
    await tx.query("commit");
    await pruned;
    expect(await sql("select gone from @.job_key")).toEqual([{ gone: unique === "key" }]);
    if (unique !== "key")
      expect(await store.enqueue([keyed("active")])).toMatchObject([{ kind: "duplicate", id: one.id }]);
  });

  it("is guarded where a prune frees it between two statements of an enqueue", async () => {
    const queue = await openQueue(SERVER);
    const { store } = queue;
    await goneKey(queue);
    const tx = await openTransaction(queue);
    let isFirst = true;
    const stepped = {
      async query(text: string, values: unknown[]) {
        const answer = await tx.query(text, values);
        // After the first statement about keys, and before the next.
        if (isFirst && text.includes(".job_key")) {
          isFirst = false;
          await store.prune(FOREVER);
        }
        return answer;
      },
    };
    const one = keyed(unique, { payload: '{"body":1}' });
    await store.within(stepped).enqueue([one]);
    await tx.query("commit");
    expect(isFirst).toBe(false);
    const [met] = await store.enqueue([keyed(unique, { payload: '{"body":1}' })]);
    expect(met?.kind).not.toBe("created");
    expect((await store.count()).queued).toBeLessThanOrEqual(1);
  });
});

/** Leaves a key of which the job is gone, and which a prune may free. */
async function goneKey({ store, sql }: PostgresQueue): Promise<void> {
  const last = await add(store, { type: "keyed", key: "k", payload: '{"body":1}' });
  await store.cancel([last]);
  await store.remove([last]);
  await sql("update @.job_key set created_at = 0");
}

describe.each(["replace", "debounce"] as const)("a waiting job that is rescheduled and, at once, %s", (unique) => {
  it("stays the one of its key", async () => {
    const queue = await openQueue(SERVER);
    const { store, schema } = queue;
    const id = await add(store, { type: "keyed", key: "k", payload: '{"body":1}' });
    const [mover, enqueuer] = [await openTransaction(queue), await openTransaction(queue)];
    // As a reschedule does: it takes the job from the queue and puts it back elsewhere.
    await mover.query(`delete from ${schema}.waiting`);
    await mover.query(`update ${schema}.job set run_at = run_at + 1000`);
    await mover.query(`insert into ${schema}.waiting (lane, run_at, seq) select lane, run_at, seq from ${schema}.job`);
    const met = store.within(enqueuer).enqueue([keyed(unique)]);
    await untilItWaits(queue, enqueuer);
    await mover.query("commit");
    expect(await met).toEqual([{ kind: "replaced", id }]);
    await enqueuer.query("commit");
    expect(await store.count()).toMatchObject({ queued: 1 });
    expect((await read(store, id)).payload).toBe('{"body":2}');
  });
});

describe("a prune", () => {
  it("passes over a job whose key is being taken, and over one that is held, and deletes the others", async () => {
    const queue = await openQueue(SERVER);
    const { store, schema } = queue;
    const ended: string[] = [];
    for (const key of ["k", "other", null, null]) {
      const id = await add(store, { type: "keyed", key, payload: '{"body":1}' });
      await store.cancel([id]);
      ended.push(id);
    }
    const tx = await openTransaction(queue);
    await store.within(tx).enqueue([keyed("queued")]);
    await tx.query(`select from ${schema}.job where id = $1 for update`, [ended[3]]);
    const retention: Retention = { ...FOREVER, keep: { finishedMs: 0, deadMs: 0 } };
    expect(await store.prune(retention)).toMatchObject({ cancelled: 2 });
    expect((await store.get(ended)).map((job) => job?.id ?? null)).toEqual([ended[0], null, null, ended[3]]);
    await tx.query("commit");
    expect(await store.prune(retention)).toMatchObject({ cancelled: 2 });
  });
});
