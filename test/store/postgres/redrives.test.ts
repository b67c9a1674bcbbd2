// Redrives on Postgres whose last statement fails: what was written before it in their transaction is not there.
import { describe, expect, inject, it } from "vitest";
import { openQueue } from "../../support/postgres-queue.ts";
import { finish, leaseOf, read, takeOne } from "../../support/runs.ts";
import { complete, dead } from "../../support/verdicts.ts";

const SERVER = inject("postgres18");
const REFUSE = "alter table @.redrive_tick add constraint refused check (false) not valid";
const ALLOW = "alter table @.redrive_tick drop constraint refused";

/** A queue with a dead job, whose counts of runs refuse every write while `refusing` runs. */
async function scene() {
  const queue = await openQueue(SERVER);
  const { id } = await finish(queue.store, dead());
  const refusing = async (work: () => Promise<unknown>): Promise<void> => {
    await queue.sql(REFUSE);
    try {
      await expect(work()).rejects.toMatchObject({ message: expect.stringContaining("refused") as string });
    } finally {
      await queue.sql(ALLOW);
    }
  };
  const request = { id, generation: 1, delayMs: 0, redrive: "r_1" };
  return { ...queue, id, request, refusing };
}

describe("a transaction that fails at its counts", () => {
  it("leaves the cell of a fence and the job as they were", async () => {
    const { store, id, request, refusing } = await scene();
    const fence = { kind: "redrive", name: "r_1", holder: "", version: 0, value: "1" };
    await refusing(() => store.redrive([request], fence));
    expect((await store.cells([{ kind: "redrive" }])).cells).toEqual([]);
    expect((await read(store, id)).state).toBe("dead");
    expect(await store.redrive([request], fence)).toEqual(["redriven"]);
  });

  it("leaves a run unsettled", async () => {
    const { store, id, request, refusing } = await scene();
    await store.redrive([request]);
    const settlement = { ...leaseOf(await takeOne(store, id)), verdict: complete(), redriven: true };
    await refusing(() => store.settle({ settlements: [settlement] }));
    expect((await read(store, id)).state).toBe("running");
    expect((await store.settle({ settlements: [settlement] })).stale).toEqual([]);
    expect((await store.redriveCounts(["r_1"]))[0]).toMatchObject({ sent: 1, good: 1 });
  });

  it("leaves a recalled job in the queue, and a cancelled one", async () => {
    const { store, id, request, refusing } = await scene();
    await store.redrive([request]);
    await refusing(() => store.recall([request]));
    await refusing(() => store.cancel([id]));
    expect(await takeOne(store, id)).toMatchObject({ id, generation: 2 });
  });
});
