// A pool of the user's own, as small as it can be, and what becomes of a lane that is new in one of its transactions.
import { type AddressInfo, createServer, type Socket } from "node:net";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { defineJob, fixed, PermanentError, type Redrive } from "../../../src/index.ts";
import { importBuilt } from "../../support/built.ts";
import { testPool, testSchema } from "../../support/postgres-queue.ts";
import { TRANSACTIONS, withPg } from "../../support/transaction-kinds.ts";

const SERVER = inject("postgres18");
const { createRedrive, postgres } = {
  ...(await importBuilt<typeof import("../../../src/index.ts")>("index.js")),
  ...(await importBuilt<typeof import("../../../src/store/postgres/index.ts")>("store/postgres/index.js")),
};

describe("a pool of one connection", () => {
  it("is enough for everything, also for a transaction that holds it", async () => {
    const { schema } = testSchema(SERVER);
    const pool = testPool(SERVER, 1);
    const broken = { now: true };
    const work = defineJob("work", {
      maxAttempts: 3,
      backoff: fixed(1),
      async run({ n }: { n: number }, ctx) {
        await ctx.progress(n);
        if (n === 1 && ctx.attempt === 1) throw new Error("once");
        if (n === 2 && broken.now) throw new PermanentError("not yet");
        if (n === 3) await withPg(pool, (tx) => ctx.complete(n, { tx }));
        return n;
      },
    });
    const store = postgres({ pool, schema });
    const redrive: Redrive = await createRedrive({ store, jobs: [work], log: "silent" });
    onTestFinished(async () => {
      await redrive.close();
      await store.close();
    });
    await Promise.all(
      Array.from({ length: 5 }, (_, n) => redrive.enqueue(work, { n }, { key: `k${n % 4}` })).map((each) =>
        each.catch(() => null),
      ),
    );
    await withPg(pool, async (tx) => {
      await redrive.enqueue(work, { n: 5 }, { tx, tenant: "new", key: "own" });
      await redrive.enqueueMany(work, [{ n: 6 }, { n: 7 }], { tx, each: ({ n }) => ({ tenant: `t${n}` }) });
    });
    const drain = () => redrive.worker({ poll: 20, concurrency: 5 }).drain({ grace: "100ms" });
    expect(await drain()).toMatchObject({ completed: 6, dead: 1, retried: 1, stale: 0 });
    broken.now = false;
    await redrive.deadLetters.retry({ type: "work" });
    await redrive.pause({ kind: "type", name: "other" });
    expect(await drain()).toMatchObject({ completed: 1, dead: 0, stale: 0 });
    expect(await redrive.jobs.count()).toMatchObject({ queued: 0, running: 0, completed: 7, dead: 0 });
  });
});

describe("a pool of one connection that somebody holds", () => {
  it("is said to be in use, to whoever waits for it in vain", async () => {
    const { schema } = testSchema(SERVER);
    const pool = testPool(SERVER, 1);
    const store = postgres({ pool, schema });
    const redrive = await createRedrive({ store, log: "silent" });
    onTestFinished(() => redrive.close());
    await withPg(pool, async (tx) => {
      const beside = redrive.enqueue("work", 1);
      await expect(beside).rejects.toMatchObject({
        code: "store_unavailable",
        message:
          "No connection of the pool was free for 5 s: its only one is in use. Raise max of the pool, or pass tx where a transaction of yours has one.",
      });
      // Whoever else waits for it may do so for as long as ever.
      const other = pool.query("select 1 as one");
      await redrive.enqueue("work", 2, { tx });
      return { other };
    }).then(async ({ other }) => expect((await other).rows).toEqual([{ one: 1 }]));
    expect((await redrive.jobs.list({})).items).toMatchObject([{ payload: "2" }]);
  });
});

describe("a pool whose server never answers", () => {
  it.each([1, 3])("is given up after seconds, with room for %i", async (max) => {
    const sockets = new Set<Socket>();
    const silent = createServer((socket) => void sockets.add(socket.on("error", () => undefined)));
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const pool = testPool(`postgres://postgres@127.0.0.1:${(silent.address() as AddressInfo).port}/postgres`, max);
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
      silent.close();
    });
    const store = postgres({ pool });
    const asked = await Promise.allSettled([1, 2].map(() => store.server()));
    for (const each of asked)
      expect(each).toMatchObject({
        reason: { code: "store_unavailable", message: expect.stringContaining("does not answer") as string },
      });
    await expect(createRedrive({ store, log: "silent" }).then((redrive) => redrive.jobs.count())).rejects.toThrow(
      "does not answer",
    );
    // Nobody keeps the places of the pool.
    await expect.poll(() => pool.totalCount).toBe(0);
  });
});

describe("a lane that came and went with a transaction of the pool", () => {
  it("takes no later job with it", async () => {
    const { schema } = testSchema(SERVER);
    // With one more, it would be made beside the transaction.
    const pool = testPool(SERVER, 1);
    const store = postgres({ pool, schema });
    const redrive = await createRedrive({ store, log: "silent" });
    onTestFinished(() => redrive.close());
    const undo = withPg(pool, async (tx) => {
      await redrive.enqueue("work", 1, { tenant: "new", tx });
      await redrive.enqueue("work", 2, { tenant: "new", tx });
      throw new Error("undo");
    });
    await expect(undo).rejects.toThrow("undo");
    expect((await pool.query(`select from ${schema}.lane`)).rows).toEqual([]);
    await redrive.enqueue("work", 3, { tenant: "new" });
    await withPg(pool, (tx) => redrive.enqueue("work", 4, { tenant: "new", tx }));
    expect((await store.lanes(null, 10)).lanes).toMatchObject([{ type: "work", tenant: "new" }]);
    expect((await redrive.jobs.list({ tenant: "new" })).items).toHaveLength(2);
    const homeless = `select from ${schema}.job j left join ${schema}.lane l on l.base = j.lane - j.lane % 4 where l.base is null`;
    expect((await pool.query(homeless)).rows).toEqual([]);
  });
});

describe("a new lane in a transaction of the pool", () => {
  const opened = async (max: number) => {
    const { schema, url } = testSchema(SERVER);
    const pool = testPool(SERVER, max);
    const redrive = await createRedrive({ store: postgres({ pool, schema }), log: "silent" });
    const other = await createRedrive({ store: url, log: "silent" });
    onTestFinished(async () => void (await Promise.all([redrive.close(), other.close()])));
    return { pool, redrive, other };
  };

  it("keeps nobody else from it, however long the transaction is open", async () => {
    const { pool, redrive, other } = await opened(2);
    await withPg(pool, async (tx) => {
      await redrive.enqueue("work", 1, { tenant: "new", tx });
      // Neither here nor in another process does anybody wait.
      await other.enqueue("work", 2, { tenant: "new" });
      await withPg(pool, (mine) => redrive.enqueue("work", 3, { tenant: "new", tx: mine }));
    });
    expect((await redrive.jobs.list({ tenant: "new" })).items).toHaveLength(3);
  });

  it("is made inside it where the pool has nothing to spare, and others wait", async () => {
    const { pool, redrive, other } = await opened(1);
    const ended: string[] = [];
    const waiting = await withPg(pool, async (tx) => {
      await redrive.enqueue("work", 1, { tenant: "new", tx });
      const theirs = other.enqueue("work", 2, { tenant: "new" }).then(() => ended.push("theirs"));
      await other.jobs.count();
      await other.enqueue("work", 3, { tenant: "known" });
      ended.push("ours");
      return [theirs];
    });
    await Promise.all(waiting);
    expect(ended).toEqual(["ours", "theirs"]);
  });

  it.each(TRANSACTIONS)("is found again inside it, also by %s", async (_name, inTransaction) => {
    const { pool, redrive } = await opened(1);
    await inTransaction(pool, async (tx) => {
      const each = (n: number) => ({ tenant: `t${n % 3}` });
      expect(await redrive.enqueueMany("work", [0, 1, 2, 3, 4], { tx, each })).toMatchObject({ enqueued: 5 });
      await redrive.enqueue("work", 5, { tenant: "t2", key: "k", tx });
    });
    const found = await Promise.all(["t0", "t1", "t2"].map((tenant) => redrive.jobs.list({ tenant })));
    const inputs = found.map(({ items }) => items.map(({ payload }) => payload).sort());
    expect(inputs).toEqual([
      ["0", "3"],
      ["1", "4"],
      ["2", "5"],
    ]);
  });

  it("that several transactions make at once ends well for all of them", async () => {
    const { pool, redrive } = await opened(3);
    const all = Array.from({ length: 12 }, (_, n) =>
      withPg(pool, async (tx) => {
        for (const tenant of ["a", "b", "c"].slice(n % 3)) await redrive.enqueue("work", n, { tenant, tx });
      }),
    );
    await Promise.all(all);
    expect((await redrive.jobs.list({ limit: 100 })).items).toHaveLength(24);
  });
});
