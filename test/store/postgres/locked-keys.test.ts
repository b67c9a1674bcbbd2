// Keys in a transaction of somebody else that stays open: who wants one of them waits for a while and is told why, and nobody
// else notices.
import { describe, expect, inject, it } from "vitest";
import { openQueue } from "../../support/postgres-queue.ts";
import { withPg } from "../../support/transaction-kinds.ts";

const SERVER = inject("postgres18");

describe("two keys in an open transaction", () => {
  it("are waited for, then refused, while other keys are free; nothing waits on the server", async () => {
    const { redrive, pool, sql, schema } = await openQueue(SERVER);
    const waiting = () =>
      sql(
        `select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and query like '%${schema}%'`,
      );
    const keys = ["a", "b"];
    await redrive.enqueue("work", 0, { key: "first" });
    await withPg(pool, async (tx) => {
      for (const key of keys) await redrive.enqueue("work", key, { key, tx });
      const began = performance.now();
      const wanted: Promise<unknown>[] = [];
      for (const key of [...keys, ...keys]) {
        wanted.push(redrive.enqueue("work", key, { key }));
        // Each in a write of its own.
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      let isOver = false;
      const answers = Promise.allSettled(wanted).finally(() => (isOver = true));
      for (const key of ["c", "d", "e"]) await redrive.enqueue("work", key, { key });
      expect(isOver).toBe(false);
      for (const each of await answers)
        expect(each).toMatchObject({
          reason: {
            code: "store_unavailable",
            message:
              "A key is being taken by another transaction that is still open. Try again when that transaction has ended.",
          },
        });
      expect(performance.now() - began).toBeGreaterThan(9_000);
      expect(await waiting()).toEqual([{ n: 0 }]);
    });
    expect((await redrive.jobs.count()).queued).toBe(6);
  });

  it("are had by those who waited when it ends", async () => {
    const { redrive, pool } = await openQueue(SERVER);
    const waiting = await withPg(pool, async (tx) => {
      await redrive.enqueue("work", 1, { key: "a", tx });
      const others = [1, 2].map((n) => redrive.enqueue("work", n, { key: "a" }));
      const kinds = Promise.allSettled(others);
      await new Promise((resolve) => setTimeout(resolve, 600));
      return { kinds };
    });
    expect(await waiting.kinds).toMatchObject([{ value: { duplicate: true } }, { reason: { code: "conflict" } }]);
  });
});

describe("rows in an open transaction", () => {
  it("are not waited for on the server when nobody waits any more", { timeout: 40_000 }, async () => {
    const { redrive, pool, sql, schema } = await openQueue(SERVER);
    const { id } = await redrive.enqueue("work", 1, { key: "a" });
    await withPg(pool, async (tx) => {
      await (tx as { query(text: string): Promise<unknown> }).query(`select from ${schema}.job for update`);
      await (tx as { query(text: string): Promise<unknown> }).query(`select from ${schema}.waiting for update`);
      await expect(redrive.enqueue("work", 2, { key: "a", unique: "replace" })).rejects.toThrow(
        "Rows of Redrive are held by another transaction that is still open. Try again when that transaction has ended.",
      );
      const left = `select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and query like '%${schema}%'`;
      expect(await sql(left)).toEqual([{ n: 0 }]);
    });
    expect(await redrive.jobs.get(id)).toMatchObject({ payload: "1" });
  });
});
