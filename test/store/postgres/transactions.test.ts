// Enqueueing inside the caller's own transaction: nobody sees the job before the commit, everybody after it, and after a
// rollback it was never there. The same with every library that users have.
import type pg from "pg";
import { describe, expect, inject, it } from "vitest";
import { defineJob, type EnqueuedJob, type RedriveEvent } from "../../../src/index.ts";
import { openQueue } from "../../support/postgres-queue.ts";
import { type InTransaction, TRANSACTIONS } from "../../support/transaction-kinds.ts";

const SERVER = inject("postgres18");
const note = defineJob("note", { run: (_input: { n: number }) => undefined });

class Undone extends Error {}

/** Rolls back after the work, and gives its answer. */
async function undone<T>(work: (reject: (answer: T) => never) => Promise<unknown>): Promise<T> {
  let answer: { value: T } | null = null;
  await expect(
    work((value) => {
      answer = { value };
      throw new Undone();
    }),
  ).rejects.toBeInstanceOf(Undone);
  return (answer as unknown as { value: T }).value;
}

describe.each(TRANSACTIONS)("a transaction of %s", (_name, inTransaction: InTransaction) => {
  it("shows a job to nobody before its commit, and to everybody after it", async () => {
    const { redrive, pool } = await openQueue(SERVER, { jobs: [note] });
    const { id } = await inTransaction(pool, async (tx) => {
      const job = await redrive.enqueue(note, { n: 1 }, { tx });
      expect(job).toMatchObject({ type: "note", duplicate: false, replaced: false, state: "queued" });
      expect(await redrive.jobs.get(job.id)).toBeNull();
      expect((await redrive.jobs.count()).queued).toBe(0);
      return job;
    });
    expect(await redrive.jobs.get(id)).toMatchObject({ id, type: "note", state: "queued", payload: '{"n":1}' });
  });

  it("takes everything back with a rollback", async () => {
    const { redrive, pool, sql } = await openQueue(SERVER, { jobs: [note] });
    const id = await undone<string>((reject) =>
      inTransaction(pool, async (tx) => {
        await redrive.enqueueMany(note, [{ n: 2 }, { n: 3 }], { tx });
        reject((await redrive.enqueue(note, { n: 1 }, { key: "k", tx })).id);
      }),
    );
    expect(await redrive.jobs.get(id)).toBeNull();
    expect(
      await sql(
        "select (select count(*) from @.job) + (select count(*) from @.waiting) + (select count(*) from @.job_key) as n",
      ),
    ).toEqual([{ n: "0" }]);
  });

  it("writes a stream of jobs, in chunks, all of them with the commit", async () => {
    const { redrive, pool } = await openQueue(SERVER, { jobs: [note] });
    const inputs = Array.from({ length: 1_100 }, (_, n) => ({ n }));
    const summary = await inTransaction(pool, async (tx) => {
      const answer = await redrive.enqueueMany(note, inputs, { tx, each: ({ n }) => ({ tenant: `t${n % 3}` }) });
      expect((await redrive.jobs.count()).queued).toBe(0);
      return answer;
    });
    expect(summary).toEqual({ enqueued: 1_100, duplicates: 0, replaced: 0, conflicts: 0 });
    expect((await redrive.jobs.count()).queued).toBe(1_100);
  });

  it("answers a taken key as ever: duplicate, conflict, replaced", async () => {
    const { redrive, pool } = await openQueue(SERVER, { jobs: [note] });
    const first = await redrive.enqueue(note, { n: 1 }, { key: "k" });
    await inTransaction(pool, async (tx) => {
      const again = await redrive.enqueue(note, { n: 1 }, { key: "k", tx });
      expect(again).toMatchObject({ id: first.id, duplicate: true, state: "queued" });
      // A conflict is an answer, not a failed statement: the transaction goes on.
      await expect(redrive.enqueue(note, { n: 2 }, { key: "k", tx })).rejects.toMatchObject({
        code: "conflict",
        details: { id: first.id },
      });
      const replaced = await redrive.enqueue(note, { n: 3 }, { key: "k", unique: "replace", tx });
      expect(replaced).toMatchObject({ id: first.id, replaced: true });
      expect(await redrive.enqueueMany(note, [{ n: 3 }, { n: 4 }], { tx, each: () => ({ key: "k" }) })).toEqual({
        enqueued: 0,
        duplicates: 1,
        replaced: 0,
        conflicts: 1,
      });
      expect(await redrive.jobs.get(first.id)).toMatchObject({ payload: '{"n":1}' });
    });
    expect(await redrive.jobs.get(first.id)).toMatchObject({ payload: '{"n":3}' });
  });

  it("gives the key to the second where the first rolls back", async () => {
    const { redrive, pool } = await openQueue(SERVER, { jobs: [note] });
    const others: Promise<EnqueuedJob>[] = [];
    const first = await undone<string>((reject) =>
      inTransaction(pool, async (tx) => {
        const { id } = await redrive.enqueue(note, { n: 1 }, { key: "k", tx });
        others.push(inTransaction(pool, (other) => redrive.enqueue(note, { n: 1 }, { key: "k", tx: other })));
        // It waits for us: whether the key is taken is not decided yet.
        const early = await Promise.race([...others, new Promise((resolve) => setTimeout(resolve, 100, "waits"))]);
        expect(early).toBe("waits");
        reject(id);
      }),
    );
    const [winner] = (await Promise.all(others)) as [EnqueuedJob];
    expect(winner).toMatchObject({ duplicate: false, replaced: false });
    expect(winner.id).not.toBe(first);
    expect(await redrive.jobs.get(winner.id)).toMatchObject({ state: "queued", key: "k" });
    expect((await redrive.jobs.count()).queued).toBe(1);
  });

  it("keeps a stream waiting that has its key, longer than a shared write waits", async () => {
    const { redrive, pool } = await openQueue(SERVER, { jobs: [note] });
    const others: Promise<unknown>[] = [];
    const inputs = [{ n: 1 }, { n: 2 }, { n: 3 }];
    await inTransaction(pool, async (tx) => {
      await redrive.enqueue(note, { n: 1 }, { key: "k1", tx });
      others.push(redrive.enqueueMany(note, inputs, { each: ({ n }) => ({ key: `k${n}` }) }));
      const early = await Promise.race([...others, new Promise((resolve) => setTimeout(resolve, 700, "waits"))]);
      expect(early).toBe("waits");
    });
    expect(await Promise.all(others)).toEqual([{ enqueued: 2, duplicates: 1, replaced: 0, conflicts: 0 }]);
  });

  it("tells the second of the first where that commits", async () => {
    const { redrive, pool } = await openQueue(SERVER, { jobs: [note] });
    const others: Promise<EnqueuedJob>[] = [];
    const { id } = await inTransaction(pool, async (tx) => {
      const job = await redrive.enqueue(note, { n: 1 }, { key: "k", tx });
      others.push(inTransaction(pool, (other) => redrive.enqueue(note, { n: 1 }, { key: "k", tx: other })));
      await new Promise((resolve) => setTimeout(resolve, 50));
      return job;
    });
    expect(await Promise.all(others)).toMatchObject([{ id, duplicate: true, state: "queued" }]);
    expect((await redrive.jobs.count()).queued).toBe(1);
  });

  it("leaves no later job in a lane that was rolled back", async () => {
    const { redrive, pool, sql } = await openQueue(SERVER, { jobs: [note] });
    await undone<null>((reject) =>
      inTransaction(pool, async (tx) => {
        await redrive.enqueue(note, { n: 1 }, { tenant: "new", tx });
        // A second time in the same transaction finds the lane of the first.
        await redrive.enqueue(note, { n: 2 }, { tenant: "new", tx });
        reject(null);
      }),
    );
    await redrive.enqueue(note, { n: 3 }, { tenant: "new" });
    await inTransaction(pool, (tx) => redrive.enqueue(note, { n: 4 }, { tenant: "new", tx }));
    const homeless =
      "select count(*) as n from @.job j left join @.lane l on l.base = j.lane - j.lane % 4 where l.base is null";
    expect(await sql(homeless)).toEqual([{ n: "0" }]);
    const { lanes } = await redrive.store.lanes(null, 10);
    expect(lanes).toMatchObject([{ type: "note", tenant: "new" }]);
    expect((await redrive.jobs.list({ tenant: "new" })).items).toHaveLength(2);
  });
});

describe("a job of a transaction", () => {
  const [, withPg] = TRANSACTIONS[0] as (typeof TRANSACTIONS)[number];

  it("repeats nothing inside a transaction that does not want to wait", async () => {
    const { redrive, pool } = await openQueue(SERVER, { jobs: [note] });
    const each = ({ n }: { n: number }) => ({ key: `k${n}` });
    await withPg(pool, async (tx) => {
      await redrive.enqueueMany(note, [{ n: 1 }], { tx, each });
      const hasty = withPg(pool, async (other) => {
        await (other as pg.PoolClient).query("set local lock_timeout = '50ms'");
        await redrive.enqueueMany(note, [{ n: 1 }, { n: 2 }], { tx: other, each });
      });
      await expect(hasty).rejects.toThrow(/A key is being taken by another transaction that is still open/);
    });
  });

  it("shares no write with the jobs of others", async () => {
    const { redrive, pool } = await openQueue(SERVER, { jobs: [note] });
    await undone<null>((reject) =>
      withPg(pool, async (tx) => {
        const others = Array.from({ length: 20 }, (_, n) => redrive.enqueue(note, { n }));
        await Promise.all([redrive.enqueue(note, { n: 100 }, { tx }), ...others]);
        reject(null);
      }),
    );
    expect((await redrive.jobs.count()).queued).toBe(20);
  });

  it("keeps nobody from the lane that it is the first in", async () => {
    const { redrive, pool } = await openQueue(SERVER, { jobs: [note] });
    await withPg(pool, async (tx) => {
      await redrive.enqueue(note, { n: 1 }, { tenant: "new", tx });
      await redrive.enqueue(note, { n: 2 }, { tenant: "new" });
      expect((await redrive.jobs.list({ tenant: "new" })).items).toMatchObject([{ payload: '{"n":2}' }]);
    });
    expect((await redrive.jobs.list({ tenant: "new" })).items).toHaveLength(2);
  });

  it.each([["active"], ["replace"], ["debounce"]] as const)(
    "takes over a key whose job has ended, and others meet it there: %s",
    async (unique) => {
      const { redrive, pool } = await openQueue(SERVER, { jobs: [note] });
      const ended = await redrive.enqueue(note, { n: 1 }, { key: "k", unique });
      await redrive.jobs.cancel(ended.id);
      const others: Promise<EnqueuedJob>[] = [];
      const { id } = await withPg(pool, async (tx) => {
        const job = await redrive.enqueue(note, { n: 1 }, { key: "k", unique, tx });
        others.push(redrive.enqueue(note, { n: 1 }, { key: "k", unique }));
        others.push(withPg(pool, (own) => redrive.enqueue(note, { n: 1 }, { key: "k", unique, tx: own })));
        await new Promise((resolve) => setTimeout(resolve, 50));
        return job;
      });
      expect((await Promise.all(others)).map((other) => other.id)).toEqual([id, id]);
      expect(await redrive.jobs.count()).toMatchObject({ queued: 1, cancelled: 1 });
    },
  );

  it("is announced by no event, because it may still be taken back", async () => {
    const { redrive, pool } = await openQueue(SERVER, { jobs: [note] });
    const heard: RedriveEvent[] = [];
    redrive.on("job.enqueued", (event) => void heard.push(event));
    await withPg(pool, async (tx) => {
      await redrive.enqueue(note, { n: 1 }, { tx });
      await redrive.enqueueMany(note, [{ n: 2 }], { tx });
    });
    expect(heard).toEqual([]);
  });

  it("goes with its savepoint", async () => {
    const { redrive, pool } = await openQueue(SERVER, { jobs: [note] });
    const kept = await withPg(pool, async (tx) => {
      const { query } = tx as { query(text: string): Promise<unknown> };
      const say = (text: string): Promise<unknown> => query.call(tx, text);
      await say("savepoint a");
      await redrive.enqueue(note, { n: 1 }, { key: "k", tenant: "new", tx });
      await say("rollback to savepoint a");
      return redrive.enqueue(note, { n: 2 }, { key: "k", tenant: "new", tx });
    });
    expect(kept.duplicate).toBe(false);
    expect((await redrive.jobs.list({})).items).toMatchObject([{ id: kept.id, tenant: "new", payload: '{"n":2}' }]);
  });

  it("is refused before anything is written where its input is bad, and the transaction goes on", async () => {
    const { redrive, pool } = await openQueue(SERVER, { jobs: [note] });
    await withPg(pool, async (tx) => {
      await expect(redrive.enqueue(note, { n: 1 }, { tenant: "", tx })).rejects.toMatchObject({
        code: "invalid_argument",
      });
      await expect(redrive.enqueue("note", () => 1, { tx })).rejects.toMatchObject({ code: "invalid_payload" });
      await redrive.enqueue(note, { n: 2 }, { tx });
    });
    expect((await redrive.jobs.count()).queued).toBe(1);
  });
});
