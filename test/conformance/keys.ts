// One job per (type, key): duplicates, conflicts, and how long a key stays taken.
import { expect } from "vitest";
import type { Retention, Store } from "../../src/store/store.ts";
import { newJob } from "../support/new-job.ts";
import { add, end, enqueuePatiently, finish, read, start, takeOne } from "../support/runs.ts";
import { complete, dead } from "../support/verdicts.ts";
import type { Suite } from "./suite.ts";

const DAY = 86_400_000;
const KEEP: Retention = { keep: { finishedMs: 0, deadMs: 0 }, types: [], keyMs: DAY, limit: 1_000, isFirst: true };

const same = () => newJob({ key: "k", payload: '{"body":1}' });
const other = () => newJob({ key: "k", payload: '{"body":2}' });

async function original(store: Store): Promise<string> {
  const job = same();
  await store.enqueue([job]);
  return job.id;
}

/** Tests of keys. */
export function keyFacts({ fact, timed }: Suite): void {
  fact("answers the same key and body with the original job", async ({ store }) => {
    const id = await original(store);
    expect(await store.enqueue([same()])).toEqual([{ kind: "duplicate", id, state: "queued" }]);
    expect((await store.count()).queued).toBe(1);
  });

  fact("answers the same key with another body with a conflict", async ({ store }) => {
    const id = await original(store);
    const before = await read(store, id);
    expect(await store.enqueue([other()])).toEqual([{ kind: "conflict", id }]);
    expect(await read(store, id)).toStrictEqual(before);
    expect((await store.count()).queued).toBe(1);
  });

  fact("stores nothing under the id of a duplicate or a conflict", async ({ store }) => {
    await original(store);
    const [duplicate, conflict] = [same(), other()];
    await store.enqueue([duplicate, conflict]);
    expect(await store.get([duplicate.id, conflict.id])).toEqual([null, null]);
  });

  fact("judges keys of one call against each other in their order", async ({ store }) => {
    const [a, b, c, d] = [same(), other(), same(), newJob({ key: "k2" })];
    expect(await store.enqueue([a, b, c, d])).toEqual([
      { kind: "created", id: a.id },
      { kind: "conflict", id: a.id },
      { kind: "duplicate", id: a.id, state: "queued" },
      { kind: "created", id: d.id },
    ]);
  });

  fact("leaves no key behind when its call is refused", async ({ store }) => {
    const refused = store.enqueue([same(), other(), newJob({ maxAttempts: 0 })]);
    await expect(refused).rejects.toMatchObject({ code: "invalid_argument" });
    const job = other();
    expect(await store.enqueue([job])).toEqual([{ kind: "created", id: job.id }]);
  });

  fact("keeps keys of different types apart", async ({ store }) => {
    await add(store, { type: "a", key: "k" });
    await add(store, { type: "b", key: "k" });
    await add(store, { type: "a.b", key: "c" });
    await add(store, { type: "a", key: "b.c" });
    expect((await store.count()).queued).toBe(4);
  });

  fact("compares keys exactly", async ({ store }) => {
    // The two é are composed and decomposed; "k " and "K" differ from "k".
    for (const key of ["k", "K", "k ", "\u00e9", "e\u0301", "0", "00", "__proto__", "😀", "x".repeat(255)]) {
      await add(store, { key });
    }
    expect((await store.count()).queued).toBe(10);
  });

  fact("treats an absent key as no key", async ({ store }) => {
    await add(store, { key: null, payload: "1" });
    await add(store, { key: null, payload: "1" });
    expect((await store.count()).queued).toBe(2);
  });

  fact("holds no digest against a job without key", async ({ store }) => {
    await add(store, { digest: "same" });
    await add(store, { digest: "same" });
    expect((await store.count()).queued).toBe(2);
  });

  fact("recognises the key of a job in any state", async ({ store }) => {
    const type = "keyed";
    const again = async () => (await store.enqueue([newJob({ type, key: "k" })]))[0];
    const id = await add(store, { type, key: "k" });
    const run = await takeOne(store, id);
    expect(await again()).toEqual({ kind: "duplicate", id, state: "running" });
    const died = await end(store, run, dead());
    expect(await again()).toEqual({ kind: "duplicate", id, state: "dead" });
    await store.redrive([{ id, generation: died.generation, delayMs: 0 }]);
    expect(await again()).toEqual({ kind: "duplicate", id, state: "queued" });
    await end(store, await takeOne(store, id), complete());
    expect(await again()).toEqual({ kind: "duplicate", id, state: "completed" });
  });

  fact("recognises the key of a cancelled job", async ({ store }) => {
    const id = await original(store);
    await store.cancel([id]);
    expect(await store.enqueue([same()])).toEqual([{ kind: "duplicate", id, state: "cancelled" }]);
  });

  fact("creates one job when many callers use one key at once", async ({ store, peer }) => {
    const second = await peer();
    const jobs = Array.from({ length: 40 }, same);
    const answers = await Promise.all(jobs.map((job, i) => enqueuePatiently(i % 2 ? second : store, job)));
    expect(answers.filter(({ kind }) => kind === "created")).toHaveLength(1);
    expect(new Set(answers.map(({ id }) => id)).size).toBe(1);
    expect((await store.count()).queued).toBe(1);
  });

  fact("recognises an id before it looks at the key", async ({ store }) => {
    const id = await original(store);
    const plain = await add(store, { type: "plain" });
    expect(await store.enqueue([{ ...same(), id: plain }])).toEqual([
      { kind: "duplicate", id: plain, state: "queued" },
    ]);
    expect(await store.enqueue([{ ...other(), id }])).toEqual([{ kind: "duplicate", id, state: "queued" }]);
  });

  fact("keeps the key of a removed job taken", async ({ store }) => {
    const { id } = await finish(store, complete(), { type: "keyed", key: "k" });
    expect(await store.remove([id])).toBe(1);
    expect(await store.enqueue([newJob({ type: "keyed", key: "k" })])).toEqual([
      { kind: "duplicate", id, state: null },
    ]);
    const changed = newJob({ type: "keyed", key: "k", payload: "2" });
    expect(await store.enqueue([changed])).toEqual([{ kind: "conflict", id }]);
  });

  fact("recognises the repeated write of a keyed job that is gone", async ({ store }) => {
    const job = newJob({ type: "keyed", key: "k" });
    await store.enqueue([job]);
    await store.cancel([job.id]);
    await store.remove([job.id]);
    expect(await store.enqueue([job])).toEqual([{ kind: "duplicate", id: job.id, state: null }]);
  });

  timed("frees the key of a gone job after its time, and not before", async ({ store, clock }) => {
    const { id } = await finish(store, complete(), { type: "keyed", key: "k" });
    clock.now += 5_000;
    await store.prune(KEEP);
    expect(await store.get([id])).toEqual([null]);
    clock.now += DAY - 5_001;
    await store.prune(KEEP);
    expect(await store.enqueue([newJob({ type: "keyed", key: "k" })])).toEqual([
      { kind: "duplicate", id, state: null },
    ]);
    clock.now += 1;
    await store.prune(KEEP);
    const next = newJob({ type: "keyed", key: "k", payload: "2" });
    expect(await store.enqueue([next])).toEqual([{ kind: "created", id: next.id }]);
  });

  timed(
    "counts the time of a key from its enqueue, so that a job removed late frees it at once",
    async ({ store, clock }) => {
      const { id } = await finish(store, complete(), { type: "keyed", key: "k" });
      clock.now += 3 * DAY;
      await store.remove([id]);
      await store.prune(KEEP);
      const next = newJob({ type: "keyed", key: "k", payload: "2" });
      expect(await store.enqueue([next])).toEqual([{ kind: "created", id: next.id }]);
    },
  );

  timed("frees as many keys as jobs in one pass, however small its steps", async ({ store, clock }) => {
    const keys = ["a", "b", "c", "d", "e"];
    for (const key of keys) await finish(store, complete(), { type: "keyed", key });
    clock.now += 2 * DAY;
    for (let [more, steps] = [true, 0]; more && steps < 10; steps++)
      more = (await store.prune({ ...KEEP, limit: 2 })).more;
    const again = keys.map((key) => newJob({ type: "keyed", key, payload: "2" }));
    expect(await store.enqueue(again)).toEqual(again.map(({ id }) => ({ kind: "created", id })));
  });

  timed("never frees the key of a job that is still there", async ({ store, clock }) => {
    const id = await original(store);
    const run = await start(store, { key: "k" });
    clock.now += 400 * DAY;
    await store.prune({ ...KEEP, keyMs: 0 });
    expect(await store.enqueue([same()])).toEqual([{ kind: "duplicate", id, state: "queued" }]);
    const again = newJob({ type: run.type, key: "k" });
    expect(await store.enqueue([again])).toEqual([{ kind: "duplicate", id: run.id, state: "running" }]);
  });
}
