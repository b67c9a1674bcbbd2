// Lanes that were without a job for long are deleted, and no job ever meets a lane that is gone.
import { expect } from "vitest";
import type { NewJob } from "../../src/core/new-job.ts";
import type { Retention, Store } from "../../src/store/store.ts";
import { newJob } from "../support/new-job.ts";
import { add, end, read, start, take, takeOne } from "../support/runs.ts";
import { complete, dead, retry } from "../support/verdicts.ts";
import type { Suite } from "./suite.ts";

/** Deletes what is finished, and every lane that holds nothing. */
const ALL: Retention = {
  keep: { finishedMs: 0, deadMs: 0 },
  types: [],
  keyMs: 0,
  laneMs: 0,
  limit: 1_000,
  isFirst: true,
};
/** Deletes lanes alone. */
const LANES: Retention = { ...ALL, keep: { finishedMs: 86_400_000, deadMs: null } };

/** So often, because lanes go in steps. */
const STEPS = 4;

async function pruneAll(store: Store, times = STEPS): Promise<void> {
  for (let turn = 0; turn < times; turn++) await store.prune(ALL);
}

const ours = (overrides: Partial<NewJob> = {}) => newJob({ type: "mail", tenant: "acme", group: "a", ...overrides });

/** Runs everything that waits; answers the ids. Nothing was set aside. */
async function runAll(store: Store): Promise<string[]> {
  const jobs = await take(store);
  for (const job of jobs) await end(store, job, complete());
  expect((await store.deadLetters({ limit: 10 })).items).toEqual([]);
  return jobs.map(({ id }) => id).sort();
}

/** Tests of lanes that go. */
export function oldLaneFacts({ fact, timed }: Suite): void {
  fact("writes jobs to lanes that were deleted, by whoever remembers their numbers", async ({ store, peer }) => {
    const other = await peer();
    for (let round = 0; round <= STEPS; round++) {
      for (const [nth, producer] of [store, other].entries()) {
        const jobs = [
          ours(),
          ours({ tenant: "zeta" }),
          ours({ group: null, groupConcurrency: null }),
          ours({ key: `${nth} ${round}` }),
        ];
        for (const job of jobs) expect(await producer.enqueue([job])).toEqual([{ kind: "created", id: job.id }]);
        const together = jobs.map(({ id: _id, ...job }) =>
          newJob({ ...job, group: null, groupConcurrency: null, key: null }),
        );
        expect(await producer.enqueue(together)).toEqual(together.map(({ id }) => ({ kind: "created", id })));
        const ids: string[] = [];
        for (let turn = 0; turn < 10 && ids.length < 8; turn++) ids.push(...(await runAll(store)));
        expect(ids.toSorted()).toEqual([...jobs, ...together].map(({ id }) => id).toSorted());
        // Whatever step they are in.
        await pruneAll(store, round);
      }
    }
  });

  fact("answers duplicates and writes the rest where a lane was deleted", async ({ store, peer }) => {
    const other = await peer();
    await other.enqueue([ours()]);
    await runAll(store);
    await pruneAll(store);
    const known = newJob({ type: "other" });
    await other.enqueue([known]);
    const fresh = ours();
    expect(await other.enqueue([fresh, known])).toEqual([
      { kind: "created", id: fresh.id },
      { kind: "duplicate", id: known.id, state: "queued" },
    ]);
    expect(await runAll(store)).toEqual([fresh.id, known.id].toSorted());
  });

  fact("replaces and moves jobs to lanes that were deleted", async ({ store, peer }) => {
    const other = await peer();
    await other.enqueue([ours({ priority: 7 })]);
    await runAll(store);
    await pruneAll(store);
    const [moved, replaced] = [ours({ priority: 3 }), newJob({ type: "mail", key: "k", unique: "replace" })];
    await other.enqueue([moved, replaced]);
    expect(await other.reschedule([{ id: moved.id, priority: 7 }])).toEqual(["changed"]);
    await runAll(store);
    await pruneAll(store);
    const holder = newJob({ type: "mail", key: "k", unique: "replace" });
    await other.enqueue([holder]);
    const body = ours({ key: "k", unique: "replace", priority: 7, payload: '"new"' });
    expect(await other.enqueue([body])).toEqual([{ kind: "replaced", id: holder.id }]);
    expect(await read(store, holder.id)).toMatchObject({ tenant: "acme", priority: 7, payload: '"new"' });
    expect(await runAll(store)).toEqual([holder.id]);
  });

  fact("keeps the lanes of jobs that wait, run, or are kept after their end", async ({ store }) => {
    const waiting = await add(store, { type: "mail", tenant: "w", delayMs: 60_000 });
    const running = await start(store, { tenant: "r" });
    const died = await end(store, await start(store, { tenant: "d" }), dead());
    const done = await end(store, await start(store, { tenant: "c" }), complete());
    for (let turn = 0; turn < STEPS; turn++) await store.prune(LANES);
    const ids = [waiting, running.id, died.id, done.id];
    expect((await store.get(ids)).map((job) => job?.tenant)).toEqual(["w", "r", "d", "c"]);
    await end(store, running, retry());
    for (let turn = 0; turn < STEPS; turn++) await store.prune(LANES);
    await store.redrive([{ id: died.id, generation: died.generation, delayMs: 0 }]);
    for (const id of [running.id, died.id]) await end(store, await takeOne(store, id), complete());
    expect((await store.deadLetters({ limit: 10 })).items).toEqual([]);
  });

  fact("lets a group that comes back go one after the other", async ({ store, peer }) => {
    const other = await peer();
    await other.enqueue([ours()]);
    await runAll(store);
    await pruneAll(store);
    await other.enqueue([ours(), ours({ priority: 7 })]);
    await store.enqueue([ours()]);
    const [first, ...rest] = await take(store);
    expect(rest).toEqual([]);
    expect(await take(other)).toEqual([]);
    await end(store, first as NonNullable<typeof first>, complete());
    expect(await take(other)).toHaveLength(1);
  });

  timed("gives a lane that is in use a day each time", async ({ store, clock }) => {
    for (let hour = 0; hour < 60; hour++) {
      clock.now += 3_600_000;
      await store.prune({ ...ALL, laneMs: 86_400_000 });
      const id = await add(store, { type: "mail", tenant: `t${hour % 3}` });
      expect(await runAll(store)).toEqual([id]);
    }
  });
}
