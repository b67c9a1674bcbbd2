// What enqueue, get and count say about jobs that are only waiting.
import { expect } from "vitest";
import type { Job } from "../../src/core/job.ts";
import type { NewJob } from "../../src/core/new-job.ts";
import { newJob, nextId } from "../support/new-job.ts";
import { add, finish, inState, read, start, take } from "../support/runs.ts";
import { complete, dead, failure } from "../support/verdicts.ts";
import type { Suite } from "./suite.ts";

/** Tests of enqueue, get, count and the wake-up. */
export function enqueueFacts({ fact, timed }: Suite): void {
  fact("stores every field as it was given", async ({ store }) => {
    const job = newJob({
      type: "Type.with:all-kinds_of9",
      queue: "slow",
      service: "media-store",
      tenant: "acme & søn",
      priority: 7,
      key: "a.mp4",
      payload: '{ "spaces" : [1,  2] }',
      maxAttempts: 4,
      maxCrashes: 2,
      version: 4,
      deadlineMs: 60_000,
      stuckMs: 5_000,
      stuckRetryMs: 4_000,
      stuckLimit: 2,
      limited: false,
      trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    });
    expect(await store.enqueue([job])).toEqual([{ kind: "created", id: job.id }]);
    const { digest: _digest, delayMs: _delayMs, runAt: _runAt, unique: _unique, ...kept } = job;
    expect(await read(store, job.id)).toMatchObject(kept);
  });

  timed("starts a job with a clean record, due at once", async ({ store, clock }) => {
    const id = await add(store);
    expect(await read(store, id)).toMatchObject({
      state: "queued",
      runAt: clock.now,
      dueAt: clock.now,
      createdAt: clock.now,
      updatedAt: clock.now,
      startedAt: null,
      finishedAt: null,
      attempts: 0,
      crashes: 0,
      releases: 0,
      worker: null,
      cancelRequested: false,
      lastDelayMs: 0,
      batchMost: null,
      trace: null,
      result: null,
      failure: null,
    });
  });

  timed("adds a delay to the store's own clock", async ({ store, clock }) => {
    const id = await add(store, { delayMs: 90_000 });
    const due = clock.now + 90_000;
    expect(await read(store, id)).toMatchObject({ runAt: due, dueAt: due, createdAt: clock.now });
  });

  timed("takes an instant as it is, past or future", async ({ store, clock }) => {
    const past = await add(store, { runAt: clock.now - 5_000 });
    const future = await add(store, { runAt: clock.now + 5_000 });
    expect((await read(store, past)).runAt).toBe(clock.now - 5_000);
    expect((await read(store, future)).runAt).toBe(clock.now + 5_000);
    expect((await take(store)).map((job) => job.id)).toEqual([past]);
  });

  timed("accepts the longest delay and the latest instant", async ({ store, clock }) => {
    const delayed = await add(store, { delayMs: 10 * 366 * 86_400_000 });
    const last = await add(store, { runAt: 8_640_000_000_000_000 });
    expect((await read(store, delayed)).runAt).toBe(clock.now + 10 * 366 * 86_400_000);
    expect((await read(store, last)).runAt).toBe(8_640_000_000_000_000);
    expect(await take(store)).toEqual([]);
  });

  fact("answers a set in its order", async ({ store }) => {
    const jobs = Array.from({ length: 500 }, () => newJob());
    expect(await store.enqueue(jobs)).toEqual(jobs.map(({ id }) => ({ kind: "created", id })));
    expect((await store.count()).queued).toBe(500);
  });

  fact("answers an empty set with an empty set", async ({ store }) => {
    expect(await store.enqueue([])).toEqual([]);
    expect(await store.get([])).toEqual([]);
  });

  fact("recognises an id that was written before and changes nothing", async ({ store }) => {
    const job = newJob();
    await store.enqueue([job]);
    const before = await read(store, job.id);
    const again = await store.enqueue([{ ...job, payload: '"other"', priority: 9 }]);
    expect(again).toEqual([{ kind: "duplicate", id: job.id, state: "queued" }]);
    expect(await read(store, job.id)).toStrictEqual(before);
    expect((await store.count()).queued).toBe(1);
  });

  fact("recognises an id twice in one call", async ({ store }) => {
    const job = newJob();
    expect(await store.enqueue([job, job])).toEqual([
      { kind: "created", id: job.id },
      { kind: "duplicate", id: job.id, state: "queued" },
    ]);
  });

  for (const state of ["queued", "running", "completed", "dead", "cancelled"] as const) {
    fact(`answers a repeated id of a ${state} job with that state`, async ({ store }) => {
      const { id } = await inState(store, state);
      expect(await store.enqueue([newJob({ id })])).toEqual([{ kind: "duplicate", id, state }]);
    });
  }

  fact("writes nothing of a call with one bad job", async ({ store }) => {
    const good = newJob({ key: "a" });
    await expect(store.enqueue([good, newJob({ priority: 10 })])).rejects.toMatchObject({ code: "invalid_argument" });
    expect(await store.get([good.id])).toEqual([null]);
    expect(await store.enqueue([good])).toEqual([{ kind: "created", id: good.id }]);
  });

  fact("gets jobs in the order asked, null for unknown ones, twice if asked twice", async ({ store }) => {
    const a = await add(store);
    const b = await add(store);
    const found = await store.get([b, "nobody", a, b]);
    expect(found.map((job) => job?.id ?? null)).toEqual([b, null, a, b]);
  });

  fact("gets nothing for ids that no job can have", async ({ store }) => {
    await add(store);
    expect(await store.get(["", "' or 1=1 --", "\0", "\ud800", "__proto__", "x".repeat(10_000)])).toEqual(
      Array.from({ length: 6 }, () => null),
    );
  });

  fact("answers with jobs that the caller cannot change in the store", async ({ store }) => {
    const job = newJob();
    await store.enqueue([job]);
    const copy = await read(store, job.id);
    Reflect.set(copy, "payload", "changed");
    Reflect.set(job, "payload", "changed");
    expect((await read(store, job.id)).payload).toBe('{"key":"a.mp4"}');
  });

  fact("keeps failures that the caller cannot change afterwards", async ({ store }) => {
    const mine = failure();
    const { id, failure: theirs } = await finish(store, dead({ failure: mine }));
    const [record] = await store.history(id);
    const [letter] = (await store.deadLetters({ limit: 1 })).items;
    for (const each of [mine, theirs, record?.failure, letter?.failure]) Reflect.set(each ?? {}, "message", "changed");
    Reflect.set(record ?? {}, "attempt", 99);
    expect((await read(store, id)).failure).toStrictEqual(failure());
    expect(await store.history(id)).toMatchObject([{ attempt: 1, failure: failure() }]);
    expect((await store.deadLetters({ limit: 1 })).items).toMatchObject([{ failure: failure() }]);
  });

  fact("counts every state, also those without jobs", async ({ store }) => {
    expect(await store.count()).toEqual({ queued: 0, running: 0, completed: 0, dead: 0, cancelled: 0 });
    await start(store);
    await finish(store, complete());
    await finish(store, complete());
    await finish(store, dead());
    await add(store, { type: "waiting" });
    const cancelled = await add(store, { type: "waiting" });
    await store.cancel([cancelled]);
    expect(await store.count()).toEqual({ queued: 1, running: 1, completed: 2, dead: 1, cancelled: 1 });
  });

  fact("wakes the listener after an enqueue", async ({ store }) => {
    const woken = new Promise<void>((resolve) => void store.onWake(resolve));
    await add(store);
    await woken;
  });

  fact("leaves a listener alone that went away", async ({ store }) => {
    let calls = 0;
    const stop = store.onWake(() => calls++);
    await add(store);
    const before = calls;
    stop();
    await add(store);
    await add(store);
    expect(calls).toBe(before);
  });

  fact("keeps a job although a wake-up listener throws", async ({ store }) => {
    store.onWake(() => {
      throw new Error("a mistake of the listener");
    });
    const job = newJob();
    expect(await store.enqueue([job])).toEqual([{ kind: "created", id: job.id }]);
  });

  fact(
    "writes jobs that are alike beside others, each with its own fields, and answers in their order",
    async ({ store }) => {
      const many = (count: number, fields: Partial<NewJob> = {}) =>
        Array.from({ length: count }, (_, at) => newJob({ payload: `{"n":${at}}`, ...fields }));
      const known = many(3);
      await store.enqueue(known);
      const jobs = [
        ...many(123),
        ...many(2, { priority: 3 }),
        ...[1, 2, 3].flatMap((n) => many(1, { delayMs: n * 1_000, maxAttempts: n })),
        ...many(2, { key: "both", payload: "{}" }),
        ...many(15, { trace: "a", tenant: "acme" }),
        ...many(12, { trace: "b", tenant: "acme" }),
        ...known.slice(0, 2),
        ...many(120),
        known[2] as NewJob,
        ...many(1),
      ];
      const [first, second] = jobs.filter(({ key }) => key !== null) as [NewJob, NewJob];
      expect(await store.enqueue(jobs)).toEqual(
        jobs.map((job) => {
          if (known.includes(job)) return { kind: "duplicate", id: job.id, state: "queued" };
          return job === second
            ? { kind: "duplicate", id: first.id, state: "queued" }
            : { kind: "created", id: job.id };
        }),
      );
      const written = jobs.filter((job) => job !== second);
      const stored = await store.get(written.map(({ id }) => id));
      expect(stored).toMatchObject(
        written.map(({ digest: _digest, delayMs: _delayMs, runAt: _runAt, unique: _unique, ...kept }) => kept),
      );
      expect(stored.map((job) => (job as Job).runAt - (job as Job).createdAt)).toEqual(
        written.map(({ delayMs }) => delayMs),
      );
    },
  );

  fact("serves many callers at once", async ({ store }) => {
    const ids = Array.from({ length: 200 }, nextId);
    const answers = await Promise.all(ids.map((id) => store.enqueue([newJob({ id })])));
    expect(answers).toEqual(ids.map((id) => [{ kind: "created", id }]));
    expect((await store.get(ids)).map((job) => job?.id)).toEqual(ids);
  });
}
