// How finished jobs go: removed by hand, or pruned when their time is over. Keys are in keys.ts.
import { expect } from "vitest";
import type { Job } from "../../src/core/job.ts";
import type { Retention } from "../../src/store/store.ts";
import { newJob } from "../support/new-job.ts";
import { add, end, finish, inState, signUp, start, takeOne } from "../support/runs.ts";
import { cancel, complete, dead, retry } from "../support/verdicts.ts";
import type { Suite } from "./suite.ts";

const HOUR = 3_600_000;
const KEEP: Retention = {
  keep: { finishedMs: HOUR, deadMs: 3 * HOUR },
  types: [],
  keyMs: HOUR,
  limit: 1_000,
  cursor: null,
};
const NONE = { completed: 0, cancelled: 0, dead: 0, next: null };

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

  fact("removes a death only while it is the one that was meant", async ({ store }) => {
    const { id, generation } = await finish(store, dead());
    expect(await store.remove([{ id, generation: generation + 1 }])).toBe(0);
    await store.redrive([{ id, generation, delayMs: 0 }]);
    expect(await store.remove([{ id, generation }])).toBe(0);
    await end(store, await takeOne(store, id), complete());
    expect(
      await store.remove([
        { id, generation },
        { id, generation: generation + 1 },
      ]),
    ).toBe(0);
    expect((await store.get([id]))[0]?.state).toBe("completed");
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
    expect(await store.prune(KEEP)).toEqual({ ...NONE, completed: 1, cancelled: 1 });
    expect(await left()).toEqual([null, null, "dead"]);
    clock.now += 2 * HOUR - 1;
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
    expect(await store.prune({ ...KEEP, keep: { finishedMs: 0, deadMs: 0 }, keyMs: 0 })).toEqual(NONE);
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
    const two = { ...NONE, completed: 2, next: expect.any(String) as string };
    expect(await store.prune({ ...KEEP, limit: 2 })).toEqual(two);
    expect(await left()).toEqual([false, false, true, true, true]);
    expect(await store.prune({ ...KEEP, limit: 2 })).toEqual(two);
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

  timed("keeps each type as long as it is told, the others as all", async ({ store, clock }) => {
    const types = [
      { type: "short", finishedMs: 10, deadMs: 20 },
      { type: "long", finishedMs: 5 * HOUR, deadMs: null },
    ];
    const ids = new Map<string, string>();
    for (const type of ["short", "long", "other"]) {
      for (const verdict of [complete(), cancel(), dead()]) {
        ids.set(`${type} ${verdict.kind}`, (await finish(store, verdict, { type })).id);
      }
    }
    const left = async () => {
      const jobs = await store.get([...ids.values()]);
      return [...ids.keys()].filter((_, at) => jobs[at] !== null);
    };
    clock.now += 19;
    expect(await store.prune({ ...KEEP, types })).toEqual({ ...NONE, completed: 1, cancelled: 1 });
    clock.now += 1;
    expect(await store.prune({ ...KEEP, types })).toEqual({ ...NONE, dead: 1 });
    clock.now += 3 * HOUR;
    expect(await store.prune({ ...KEEP, types })).toEqual({ ...NONE, completed: 1, cancelled: 1, dead: 1 });
    expect(await left()).toEqual(["long complete", "long cancel", "long dead"]);
    clock.now += 1_000 * HOUR;
    expect(await store.prune({ ...KEEP, types })).toEqual({ ...NONE, completed: 1, cancelled: 1 });
    expect(await left()).toEqual(["long dead"]);
  });

  timed("looks at no more than its limit, and goes on behind what is kept", async ({ store, clock }) => {
    const types = [{ type: "kept", finishedMs: 9 * HOUR, deadMs: 9 * HOUR }];
    const jobs: Job[] = [];
    for (const type of ["kept", "kept", "kept", "over", "kept", "over"]) {
      jobs.push(await finish(store, complete(), { type }));
    }
    clock.now += 10;
    jobs.push(await finish(store, dead(), { type: "kept" }), await finish(store, complete(), { type: "over" }));
    clock.now += 4 * HOUR;
    const counts: number[] = [];
    let cursor: string | null = null;
    do {
      const { completed, next } = await store.prune({ ...KEEP, types, limit: 2, cursor });
      counts.push(completed);
      cursor = next;
    } while (cursor !== null);
    expect(counts).toEqual([0, 1, 1, 1]);
    const left = (await store.get(jobs.map(({ id }) => id))).map((job) => job !== null);
    expect(left).toEqual([true, true, true, false, true, false, true, false]);
  });

  timed("ends where every job is too young, however many there are", async ({ store, clock }) => {
    const old = await finish(store, complete());
    clock.now += HOUR;
    for (let i = 0; i < 4; i++) await finish(store, complete());
    expect(await store.prune({ ...KEEP, limit: 1 })).toEqual({ ...NONE, completed: 1 });
    expect(await store.get([old.id])).toEqual([null]);
  });

  timed("goes on from a cursor although the job at it is gone", async ({ store, clock }) => {
    const types = [{ type: "kept", finishedMs: 9 * HOUR, deadMs: null }];
    const first = await finish(store, complete(), { type: "kept" });
    await finish(store, complete(), { type: "over" });
    clock.now += HOUR;
    const { next } = await store.prune({ ...KEEP, types, limit: 1 });
    await store.remove([first.id]);
    expect(await store.prune({ ...KEEP, types, limit: 1, cursor: next })).toEqual({ ...NONE, completed: 1 });
  });

  timed("deletes no dead job where the dead stay for ever", async ({ store, clock }) => {
    const died = await finish(store, dead());
    clock.now += 100_000 * HOUR;
    expect(await store.prune({ ...KEEP, keep: { finishedMs: 0, deadMs: null } })).toEqual(NONE);
    expect(await store.get([died.id])).toMatchObject([{ state: "dead" }]);
  });

  timed("clears old workers and pauses in the first step only", async ({ store, clock }) => {
    const worker = await signUp(store);
    await finish(store, complete());
    await store.expired({ gone: [worker], limit: 1 });
    await store.pause({ kind: "queue", name: "q" }, { forMs: 1, reason: "" });
    clock.now += 3 * HOUR + 1;
    await store.prune({ ...KEEP, cursor: "0-0" });
    expect((await store.workers()).map((each) => each.id)).toContain(worker);
    expect((await store.control()).pauses).toHaveLength(1);
    await store.prune(KEEP);
    expect((await store.workers()).map((each) => each.id)).not.toContain(worker);
    expect((await store.control()).pauses).toEqual([]);
  });

  fact("refuses a retention out of range", async ({ store }) => {
    await finish(store, complete());
    const forever = { finishedMs: 0, deadMs: null };
    const refused: Partial<Retention>[] = [
      ...[-1, 0.5, Number.NaN].flatMap((bad) => [
        { keep: { finishedMs: bad, deadMs: 0 } },
        { keep: { finishedMs: 0, deadMs: bad } },
        { types: [{ type: "a", finishedMs: bad, deadMs: 0 }] },
        { keyMs: bad },
        { limit: bad },
      ]),
      { limit: 0 },
      { limit: 10_001 },
      { keep: { finishedMs: null as never, deadMs: 0 } },
      { types: [{ type: "a b", ...forever }] },
      {
        types: [
          { type: "a", ...forever },
          { type: "a", ...forever },
        ],
      },
      ...["", "1", "1-", "a-b", "1.5-2", "1-2-3", "1-2; drop table job"].map((cursor) => ({ cursor })),
    ];
    for (const bad of refused) {
      const told = expect(store.prune({ ...KEEP, keep: { finishedMs: 0, deadMs: 0 }, ...bad }), JSON.stringify(bad));
      await told.rejects.toMatchObject({ code: "invalid_argument" });
    }
    expect((await store.count()).completed).toBe(1);
  });
}
