// How finished jobs go: removed by hand, or pruned when their time is over. Keys are in keys.ts.
import { expect } from "vitest";
import { type Job, LATEST_INSTANT } from "../../src/core/job.ts";
import type { Retain, Retention, Store } from "../../src/store/store.ts";
import { newJob } from "../support/new-job.ts";
import { add, end, finish, inState, read, signUp, start, takeOne } from "../support/runs.ts";
import { cancel, complete, dead, retry } from "../support/verdicts.ts";
import type { Suite } from "./suite.ts";

const HOUR = 3_600_000;
const KEEP: Retention = {
  keep: { finishedMs: HOUR, deadMs: 3 * HOUR },
  types: [],
  keyMs: HOUR,
  limit: 1_000,
  isFirst: true,
};
const NONE = { completed: 0, cancelled: 0, dead: 0, more: false };

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
    const two = { ...NONE, completed: 2, more: true };
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

  timed("goes by what the job says, whatever the retention says of its type", async ({ store, clock }) => {
    const own = { keepFinishedMs: 90 * 24 * HOUR, keepDeadMs: 180 * 24 * HOUR };
    const short = { finishedMs: 0, deadMs: 0 };
    const ids: string[] = [];
    for (const verdict of [complete(), cancel(), dead()])
      ids.push((await finish(store, verdict, { type: "long", ...own })).id);
    const waiting = await add(store, { type: "long", ...own });
    expect(await store.cancel([waiting])).toEqual(["cancelled"]);
    const stranger: Retention = { ...KEEP, keep: short, types: [{ type: "long", ...short }] };
    clock.now += 90 * 24 * HOUR - 1;
    expect(await store.prune(stranger)).toEqual(NONE);
    clock.now += 1;
    expect(await store.prune(stranger)).toEqual({ ...NONE, completed: 1, cancelled: 2 });
    clock.now += 90 * 24 * HOUR - 1;
    expect(await store.prune(stranger)).toEqual(NONE);
    clock.now += 1;
    expect(await store.prune(stranger)).toEqual({ ...NONE, dead: 1 });
    expect(await store.get([...ids, waiting])).toEqual([null, null, null, null]);
  });

  timed("says of each job when it goes, from its end on", async ({ store, clock }) => {
    const own = { keepFinishedMs: 10, keepDeadMs: 20 };
    const run = await start(store, own);
    expect(run).toMatchObject({ ...own, expiresAt: null });
    clock.now += 5;
    expect(await end(store, run, retry())).toMatchObject({ ...own, expiresAt: null });
    clock.now += 5;
    const died = await end(store, await takeOne(store, run.id), dead());
    expect(died.expiresAt).toBe(clock.now + 20);
    await store.redrive([{ id: run.id, generation: died.generation, delayMs: 0 }]);
    expect(await read(store, run.id)).toMatchObject({ ...own, expiresAt: null });
    expect((await end(store, await takeOne(store, run.id), complete())).expiresAt).toBe(clock.now + 10);
    expect((await finish(store, complete())).expiresAt).toBeNull();
  });

  timed("keeps a job that says nothing as its type is kept when it is first seen", async ({ store, clock }) => {
    const types = [{ type: "long", finishedMs: 5 * HOUR, deadMs: 6 * HOUR }];
    const ids: string[] = [];
    for (const type of ["long", "other"])
      for (const verdict of [complete(), cancel(), dead()]) ids.push((await finish(store, verdict, { type })).id);
    const times = async () => (await store.get(ids)).map((job) => job?.expiresAt ?? null);
    const from = clock.now;
    clock.now += 1;
    expect(await store.prune({ ...KEEP, types })).toEqual(NONE);
    const said = [5, 5, 6, 1, 1, 3].map((hours) => from + hours * HOUR);
    expect(await times()).toEqual(said);
    expect(await store.prune({ ...KEEP, keep: { finishedMs: 0, deadMs: 0 } })).toEqual(NONE);
    expect(await times()).toEqual(said);
  });

  timed("gives a time to no more than its limit in one step", async ({ store, clock }) => {
    const jobs: Job[] = [];
    for (const verdict of [complete(), complete(), cancel(), dead(), complete()])
      jobs.push(await finish(store, verdict));
    clock.now += 10;
    const timed = async () =>
      (await store.get(jobs.map(({ id }) => id))).filter((job) => job?.expiresAt !== null).length;
    const steps: unknown[] = [];
    for (let i = 0; i < 3; i++) steps.push([(await store.prune({ ...KEEP, limit: 2 })).more, await timed()]);
    expect(steps).toEqual([
      [true, 2],
      [true, 4],
      [false, 5],
    ]);
  });

  timed("sets dead ones aside that only an archive lets go, and looks at them once", async ({ store, clock }) => {
    const types = [{ type: "archived", finishedMs: 10, deadMs: null }];
    const died = await finish(store, dead(), { type: "archived", keepFinishedMs: 10, keepDeadMs: 10 });
    const unsaid = await finish(store, dead(), { type: "archived" });
    const other = await finish(store, dead(), { type: "other", keepFinishedMs: 10, keepDeadMs: 10 });
    await finish(store, complete(), { type: "archived" });
    clock.now += 10;
    expect(await store.prune({ ...KEEP, types })).toEqual({ ...NONE, completed: 1, dead: 1 });
    expect(await store.get([other.id])).toEqual([null]);
    clock.now += 10_000 * HOUR;
    // Also for whoever knows nothing of the archive.
    expect(await store.prune({ ...KEEP, keep: { finishedMs: 0, deadMs: 0 } })).toEqual(NONE);
    const left = await store.get([died.id, unsaid.id]);
    expect(left.map((job) => [job?.state, job?.expiresAt])).toEqual([
      ["dead", LATEST_INSTANT],
      ["dead", LATEST_INSTANT],
    ]);
    expect((await store.tally({ aside: true })).byType).toEqual({ archived: 2 });
    expect((await store.deadLetters({ aside: true, limit: 5 })).items).toHaveLength(2);
    expect(await store.remove([died.id])).toBe(1);
    await store.redrive([{ id: unsaid.id, generation: unsaid.generation, delayMs: 0 }]);
    expect(await store.tally({ aside: true })).toMatchObject({ total: 0 });
  });

  timed("ends where every job is too young, however many there are", async ({ store, clock }) => {
    const own = { keepFinishedMs: HOUR, keepDeadMs: HOUR };
    const old = await finish(store, complete(), own);
    clock.now += HOUR;
    for (let i = 0; i < 4; i++) await finish(store, complete(), own);
    expect(await store.prune({ ...KEEP, limit: 1 })).toEqual({ ...NONE, completed: 1 });
    expect(await store.get([old.id])).toEqual([null]);
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
    await store.prune({ ...KEEP, isFirst: false });
    expect((await store.workers()).map((each) => each.id)).toContain(worker);
    expect((await store.control()).pauses).toHaveLength(1);
    await store.prune(KEEP);
    expect((await store.workers()).map((each) => each.id)).not.toContain(worker);
    expect((await store.control()).pauses).toEqual([]);
  });

  timed("keeps a worker that was given up as long as a run is its own", async ({ store, clock }) => {
    const run = await start(store);
    const worker = run.worker as string;
    await store.expired({ gone: [worker], limit: 1 });
    const pruned = async (): Promise<string[]> => {
      clock.now += 3 * HOUR + 1;
      await store.prune(KEEP);
      return (await store.workers()).map((each) => each.id);
    };
    expect(await pruned()).toContain(worker);
    await end(store, run, complete());
    expect(await pruned()).not.toContain(worker);
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
      { isFirst: 1 as never },
      { isFirst: undefined as never },
    ];
    for (const bad of refused) {
      const told = expect(store.prune({ ...KEEP, keep: { finishedMs: 0, deadMs: 0 }, ...bad }), JSON.stringify(bad));
      await told.rejects.toMatchObject({ code: "invalid_argument" });
    }
    expect((await store.count()).completed).toBe(1);
  });
}

/** Tests of retain. */
export function retainFacts({ fact, timed }: Suite): void {
  const all = async (store: Store, request: Pick<Retain, "types">, limit = 2): Promise<number> => {
    let sum = 0;
    for (let after: number | null = 0, steps = 0; after !== null && steps < 20; steps++) {
      const { moved, next } = await store.retain({ ...request, after, limit });
      [sum, after] = [sum + moved, next];
    }
    return sum;
  };
  const TYPES = [{ type: "moved", finishedMs: 2 * HOUR, deadMs: 4 * HOUR }];

  timed("moves the time of ended jobs of its types, both ways, counted from their end", async ({ store, clock }) => {
    const long = { type: "moved", keepFinishedMs: 100 * HOUR, keepDeadMs: 100 * HOUR };
    const short = { type: "moved", keepFinishedMs: 1, keepDeadMs: 1 };
    const from = clock.now;
    const ended = [
      await finish(store, complete(), long),
      await finish(store, dead(), long),
      await finish(store, cancel(), short),
      await finish(store, dead(), short),
      await finish(store, complete(), { type: "moved" }),
      await finish(store, complete(), { ...long, type: "other" }),
    ];
    const waiting = await add(store, long);
    clock.now += 5;
    expect(await all(store, { types: TYPES })).toBe(5);
    const times = (await store.get(ended.map(({ id }) => id))).map((job) => (job?.expiresAt as number) - from);
    expect(times).toEqual([2, 4, 2, 4, 2, 100].map((hours) => hours * HOUR));
    expect(await read(store, ended[0]?.id as string)).toMatchObject({ keepFinishedMs: 2 * HOUR, keepDeadMs: 4 * HOUR });
    expect(await read(store, waiting)).toMatchObject({ keepFinishedMs: 100 * HOUR, expiresAt: null });
    expect(await all(store, { types: TYPES })).toBe(0);
    clock.now = from + 2 * HOUR;
    expect(await store.prune(KEEP)).toEqual({ ...NONE, completed: 2, cancelled: 1 });
    clock.now = from + 4 * HOUR;
    expect(await store.prune(KEEP)).toEqual({ ...NONE, dead: 2 });
  });

  timed("leaves one aside that waits for its archive", async ({ store, clock }) => {
    const { id } = await finish(store, dead(), { type: "moved", keepFinishedMs: 1, keepDeadMs: 1 });
    clock.now += 1;
    await store.prune({ ...KEEP, types: [{ type: "moved", finishedMs: 1, deadMs: null }] });
    await all(store, { types: TYPES });
    expect(await read(store, id)).toMatchObject({ keepDeadMs: 4 * HOUR, expiresAt: LATEST_INSTANT });
  });

  fact("looks at no more than its limit", async ({ store }) => {
    for (let i = 0; i < 3; i++) await finish(store, complete(), { type: "moved" });
    const { moved, next } = await store.retain({ types: TYPES, after: 0, limit: 2 });
    expect([moved, typeof next]).toEqual([2, "number"]);
    expect(await store.retain({ types: TYPES, after: next as number, limit: 2 })).toEqual({ moved: 1, next: null });
  });

  fact("refuses what is out of range", async ({ store }) => {
    const [type] = TYPES as [Retain["types"][number]];
    const refused: Partial<Retain>[] = [
      { types: [{ ...type, finishedMs: -1 }] },
      { types: [{ ...type, deadMs: null as never }] },
      { types: [type, type] },
      { types: [{ ...type, type: "a b" }] },
      { after: -1 },
      { limit: 0 },
      { limit: 10_001 },
    ];
    for (const bad of refused) {
      const told = expect(store.retain({ types: TYPES, after: 0, limit: 1, ...bad }), JSON.stringify(bad));
      await told.rejects.toMatchObject({ code: "invalid_argument" });
    }
  });
}
