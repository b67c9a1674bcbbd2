// What an operator may do to a job before it ends: cancel and reschedule.
import { expect } from "vitest";
import { add, claimBy, dueLanes, end, inState, leaseOf, read, signUp, start, take, takeOne } from "../support/runs.ts";
import { complete, crashed, dead, release, retry } from "../support/verdicts.ts";
import type { Suite } from "./suite.ts";

/** Tests of cancel. */
export function cancelFacts({ fact, timed }: Suite): void {
  timed("cancels a waiting job at once", async ({ store, clock }) => {
    const id = await add(store, { delayMs: 60_000 });
    clock.now += 10;
    expect(await store.cancel([id])).toEqual(["cancelled"]);
    expect(await read(store, id)).toMatchObject({ state: "cancelled", finishedAt: clock.now, updatedAt: clock.now });
    clock.now += 60_000;
    expect(await take(store)).toEqual([]);
  });

  fact("asks a running job to stop and leaves it running", async ({ store }) => {
    const run = await start(store);
    expect(await store.cancel([run.id])).toEqual(["requested"]);
    expect(await read(store, run.id)).toMatchObject({ state: "running", cancelRequested: true, finishedAt: null });
    expect(await store.cancel([run.id])).toEqual(["requested"]);
  });

  fact("answers each of a set for itself, in its order", async ({ store }) => {
    const done = await inState(store, "completed");
    const run = await start(store);
    const waiting = await add(store);
    const answers = await store.cancel([run.id, "nobody", waiting, done.id, waiting]);
    expect(answers).toEqual(["requested", "missing", "cancelled", "finished", "finished"]);
  });

  fact("tells the worker that holds the job, and only that one", async ({ store }) => {
    const [mine, theirs] = [await signUp(store), await signUp(store)];
    const run = await start(store, {}, mine);
    await start(store, {}, mine);
    await start(store, {}, theirs);
    await store.cancel([run.id]);
    const beat = { leaseMs: 30_000, startedThrough: 0 };
    expect((await store.beat({ worker: mine, ...beat })).cancel).toEqual([leaseOf(run)]);
    expect((await store.beat({ worker: theirs, ...beat })).cancel).toEqual([]);
    await end(store, run, { kind: "cancel" });
    expect((await store.beat({ worker: mine, ...beat })).cancel).toEqual([]);
  });

  for (const verdict of [retry({ delayMs: 5 }), release({ delayMs: 5 }), crashed()]) {
    timed(`ends a run asked to stop as cancelled where the verdict is ${verdict.kind}`, async ({ store, clock }) => {
      const run = await start(store);
      await store.cancel([run.id]);
      clock.now += 70;
      const job = await end(store, run, verdict);
      expect(job).toMatchObject({ state: "cancelled", finishedAt: clock.now });
      expect((await store.deadLetters({ limit: 10, redriven: true })).items).toEqual([]);
      clock.now += 1_000;
      expect(await take(store)).toEqual([]);
    });
  }

  fact("lets a run that was asked to stop complete", async ({ store }) => {
    const run = await start(store);
    await store.cancel([run.id]);
    expect(await end(store, run, complete("1"))).toMatchObject({ state: "completed", result: "1" });
  });

  fact("lets a run that was asked to stop die", async ({ store }) => {
    const run = await start(store);
    await store.cancel([run.id]);
    expect((await end(store, run, dead())).state).toBe("dead");
    expect((await store.deadLetters({ limit: 10 })).items).toHaveLength(1);
  });

  fact("forgets the request of a job that is redriven", async ({ store }) => {
    const run = await start(store);
    await store.cancel([run.id]);
    const died = await end(store, run, dead());
    await store.redrive([{ id: run.id, generation: died.generation, delayMs: 0 }]);
    const again = await takeOne(store, run.id);
    expect(again.cancelRequested).toBe(false);
    expect((await end(store, again, retry())).state).toBe("queued");
  });
}

/** Tests of reschedule. */
export function rescheduleFacts({ fact, timed }: Suite): void {
  timed("moves the due time of a waiting job, later and earlier", async ({ store, clock }) => {
    const id = await add(store);
    expect(await store.reschedule([{ id, delayMs: 5_000 }])).toEqual(["changed"]);
    expect(await read(store, id)).toMatchObject({ state: "queued", runAt: clock.now + 5_000 });
    expect(await take(store)).toEqual([]);
    clock.now += 1_000;
    await store.reschedule([{ id, delayMs: 0 }]);
    expect(await read(store, id)).toMatchObject({ runAt: clock.now });
    expect((await take(store)).map((job) => job.id)).toEqual([id]);
  });

  timed("moves since when a job is due where it has not been tried, and only there", async ({ store, clock }) => {
    const fresh = await add(store);
    await store.reschedule([{ id: fresh, delayMs: 5_000 }]);
    expect(await read(store, fresh)).toMatchObject({ dueAt: clock.now + 5_000 });
    await store.reschedule([{ id: fresh, delayMs: 60_000 }]);
    const tried = await start(store);
    await end(store, tried, retry());
    const { dueAt } = await read(store, tried.id);
    clock.now += 1_000;
    await store.reschedule([{ id: tried.id, delayMs: 9_000 }]);
    expect(await read(store, tried.id)).toMatchObject({ runAt: clock.now + 9_000, dueAt });
  });

  fact("moves a waiting job to another priority and keeps the rest", async ({ store }) => {
    const id = await add(store, { tenant: "acme", service: "s", queue: "q", delayMs: 0 });
    const before = await read(store, id);
    expect(await store.reschedule([{ id, priority: 9 }])).toEqual(["changed"]);
    const after = await read(store, id);
    expect(after).toEqual({ ...before, priority: 9, updatedAt: after.updatedAt });
    const lanes = await dueLanes(store);
    expect(lanes).toMatchObject([{ priority: 9, tenant: "acme", service: "s", queue: "q", kind: "first" }]);
  });

  fact("claims by the new priority", async ({ store }) => {
    const first = await add(store, { priority: 5 });
    const second = await add(store, { priority: 5 });
    await store.reschedule([{ id: first, priority: 1 }]);
    expect((await take(store)).map((job) => job.id)).toEqual([second, first]);
  });

  fact("keeps a retry among the retries and a suspect among the suspects", async ({ store }) => {
    const retried = await start(store);
    await end(store, retried, retry());
    const suspect = await start(store);
    await end(store, suspect, crashed());
    await store.reschedule([
      { id: retried.id, priority: 4 },
      { id: suspect.id, priority: 3 },
    ]);
    expect(await dueLanes(store)).toMatchObject([
      { type: retried.type, kind: "retry", priority: 4 },
      { type: suspect.type, kind: "suspect", priority: 3 },
    ]);
  });

  fact("answers each of a set for itself, in its order", async ({ store }) => {
    const run = await start(store);
    const done = await inState(store, "completed");
    const waiting = await add(store);
    const ids = [run.id, "nobody", done.id, waiting, waiting];
    const answers = await store.reschedule(ids.map((id) => ({ id, delayMs: 1_000 })));
    expect(answers).toEqual(["refused", "missing", "refused", "changed", "changed"]);
  });

  fact("changes nothing of a set with one bad value", async ({ store }) => {
    const id = await add(store);
    const before = await read(store, id);
    for (const bad of [
      { delayMs: -1 },
      { delayMs: 0.5 },
      { delayMs: Number.NaN },
      { priority: 10 },
      { priority: -1 },
    ]) {
      const refused = store.reschedule([
        { id, delayMs: 9_000, priority: 3 },
        { id, ...bad },
      ]);
      await expect(refused).rejects.toMatchObject({ code: "invalid_argument" });
    }
    expect(await read(store, id)).toStrictEqual(before);
  });

  fact("keeps lease and counters of a job that waits for its retry", async ({ store }) => {
    const run = await start(store);
    const before = await end(store, run, retry({ delayMs: 60_000 }));
    await store.reschedule([{ id: run.id, delayMs: 0 }]);
    const { attempts, crashes, epoch, generation, failure } = before;
    expect(await read(store, run.id)).toMatchObject({ attempts, crashes, epoch, generation, failure });
    expect((await claimBy(store, await signUp(store))).jobs).toMatchObject([{ id: run.id, epoch: epoch + 1 }]);
  });
}
