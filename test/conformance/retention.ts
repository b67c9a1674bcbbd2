// How finished jobs go: removed by hand, or pruned when their time is over. Keys are in keys.ts.
import { expect } from "vitest";
import type { Job } from "../../src/core/job.ts";
import type { Retention } from "../../src/store/store.ts";
import { newJob } from "../support/new-job.ts";
import { add, end, finish, inState, start, takeOne } from "../support/runs.ts";
import { cancel, complete, dead, retry } from "../support/verdicts.ts";
import type { Suite } from "./suite.ts";

const HOUR = 3_600_000;
const KEEP: Retention = { completedMs: HOUR, cancelledMs: 2 * HOUR, deadMs: 3 * HOUR, keyMs: HOUR, limit: 1_000 };
const NONE = { completed: 0, cancelled: 0, dead: 0 };

/** Tests of remove. */
export function removeFacts({ fact }: Suite): void {
  fact("removes finished jobs only and says how many", async ({ store }) => {
    const ids = [];
    for (const state of ["queued", "running", "completed", "dead", "cancelled"] as const) {
      ids.push((await inState(store, state)).id);
    }
    expect(await store.remove([...ids, "nobody", ...ids])).toBe(3);
    expect((await store.get(ids)).map((job) => job?.state ?? null)).toEqual(["queued", "running", null, null, null]);
    expect(await store.count()).toEqual({ queued: 1, running: 1, completed: 0, dead: 0, cancelled: 0 });
    expect(await store.remove([])).toBe(0);
  });

  fact("removes letters and history along with the job", async ({ store }) => {
    const run = await start(store);
    await end(store, run, retry());
    const died = await end(store, await takeOne(store, run.id), dead());
    await store.redrive([{ id: run.id, generation: died.generation, delayMs: 0 }]);
    await end(store, await takeOne(store, run.id), dead());
    const stays = await finish(store, dead());
    expect(await store.remove([run.id])).toBe(1);
    expect(await store.history(run.id)).toEqual([]);
    const { items } = await store.deadLetters({ limit: 10, redriven: true });
    expect(items.map(({ job }) => job.id)).toEqual([stays.id]);
  });

  fact("lets a removed id be used again", async ({ store }) => {
    const { id } = await finish(store, dead());
    await store.remove([id]);
    expect(await store.enqueue([newJob({ id })])).toEqual([{ kind: "created", id }]);
    expect(await store.history(id)).toEqual([]);
  });
}

/** Tests of prune. */
export function pruneFacts({ fact, timed }: Suite): void {
  timed("prunes each state after its own time, and not before", async ({ store, clock }) => {
    const ids: string[] = [];
    for (const verdict of [complete(), cancel(), dead()]) ids.push((await finish(store, verdict)).id);
    const left = async () => (await store.get(ids)).map((job) => job?.state ?? null);
    clock.now += HOUR - 1;
    expect(await store.prune(KEEP)).toEqual(NONE);
    clock.now += 1;
    expect(await store.prune(KEEP)).toEqual({ ...NONE, completed: 1 });
    expect(await left()).toEqual([null, "cancelled", "dead"]);
    clock.now += HOUR;
    expect(await store.prune(KEEP)).toEqual({ ...NONE, cancelled: 1 });
    clock.now += HOUR - 1;
    expect(await store.prune(KEEP)).toEqual(NONE);
    clock.now += 1;
    expect(await store.prune(KEEP)).toEqual({ ...NONE, dead: 1 });
    expect(await left()).toEqual([null, null, null]);
  });

  timed("counts from the end of a job, not from its beginning", async ({ store, clock }) => {
    const run = await start(store);
    clock.now += 100 * HOUR;
    await end(store, run, complete());
    expect(await store.prune(KEEP)).toEqual(NONE);
    clock.now += HOUR;
    expect(await store.prune(KEEP)).toEqual({ ...NONE, completed: 1 });
  });

  timed("never touches waiting or running jobs", async ({ store, clock }) => {
    const run = await start(store);
    const waiting = await add(store);
    const { id: retried } = await finish(store, retry({ delayMs: 5 }));
    const died = await finish(store, dead());
    await store.redrive([{ id: died.id, generation: died.generation, delayMs: 0 }]);
    clock.now += 1_000 * HOUR;
    expect(await store.prune({ ...KEEP, completedMs: 0, cancelledMs: 0, deadMs: 0, keyMs: 0 })).toEqual(NONE);
    expect(await store.get([run.id, waiting, retried, died.id])).not.toContain(null);
  });

  timed("deletes the oldest first, up to the limit, over several calls", async ({ store, clock }) => {
    const jobs: Job[] = [];
    for (let i = 0; i < 5; i++) {
      jobs.push(await finish(store, complete()));
      clock.now += 10;
    }
    clock.now += HOUR;
    const left = async () => (await store.get(jobs.map(({ id }) => id))).map((job) => job !== null);
    expect(await store.prune({ ...KEEP, limit: 2 })).toEqual({ ...NONE, completed: 2 });
    expect(await left()).toEqual([false, false, true, true, true]);
    expect(await store.prune({ ...KEEP, limit: 2 })).toEqual({ ...NONE, completed: 2 });
    expect(await store.prune({ ...KEEP, limit: 2 })).toEqual({ ...NONE, completed: 1 });
    expect(await store.prune({ ...KEEP, limit: 2 })).toEqual(NONE);
  });

  timed("bounds all states together by one limit", async ({ store, clock }) => {
    for (const verdict of [complete(), cancel(), dead(), complete(), cancel(), dead()]) await finish(store, verdict);
    clock.now += 10 * HOUR;
    const { completed, cancelled, dead: died } = await store.prune({ ...KEEP, limit: 4 });
    expect(completed + cancelled + died).toBe(4);
    const { completed: c, cancelled: x, dead: d } = await store.count();
    expect(c + x + d).toBe(2);
  });

  timed("prunes letters and history along with the job", async ({ store, clock }) => {
    const died = await finish(store, dead());
    const stays = await start(store);
    clock.now += 4 * HOUR;
    await end(store, stays, dead());
    expect(await store.prune(KEEP)).toEqual({ ...NONE, dead: 1 });
    expect(await store.history(died.id)).toEqual([]);
    const { items } = await store.deadLetters({ limit: 10, redriven: true });
    expect(items.map(({ job }) => job.id)).toEqual([stays.id]);
  });

  fact("refuses a retention out of range", async ({ store }) => {
    await finish(store, complete());
    for (const bad of [-1, 0.5, Number.NaN]) {
      await expect(store.prune({ ...KEEP, completedMs: bad })).rejects.toMatchObject({ code: "invalid_argument" });
    }
    expect((await store.count()).completed).toBe(1);
  });
}
