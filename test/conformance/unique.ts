// What a key that is taken means, by the mode of the new job. The plain mode, and how long keys last, are in keys.ts.
import { expect } from "vitest";
import type { Job } from "../../src/core/job.ts";
import { type NewJob, UNIQUE_MODES, type UniqueMode } from "../../src/core/new-job.ts";
import type { EnqueueAnswer, Store } from "../../src/store/store.ts";
import { newJob } from "../support/new-job.ts";
import { add, dueLanes, end, enqueuePatiently, read, take, takeOne } from "../support/runs.ts";
import { cancel, complete, crashed, dead, retry } from "../support/verdicts.ts";
import type { Suite } from "./suite.ts";

const DAY = 86_400_000;
const keyed = (unique: UniqueMode, more: Partial<NewJob> = {}) =>
  newJob({ type: "keyed", key: "k", unique, payload: '{"body":2}', ...more });

async function enqueueOne(store: Store, job: NewJob): Promise<EnqueueAnswer> {
  const [answer] = await store.enqueue([job]);
  return answer as EnqueueAnswer;
}

/** A job that holds the key, and the ways to its states. */
const hold = (store: Store, more: Partial<NewJob> = {}) =>
  add(store, { type: "keyed", key: "k", payload: '{"body":1}', ...more });
const ENDS = { completed: complete(), dead: dead(), cancelled: cancel() } as const;

/** Tests of the modes of a key. */
export function uniqueFacts({ fact, timed }: Suite): void {
  for (const unique of UNIQUE_MODES) {
    fact(`creates a job whose key is free: ${unique}`, async ({ store }) => {
      const job = keyed(unique);
      expect(await enqueueOne(store, job)).toEqual({ kind: "created", id: job.id });
      expect(await enqueueOne(store, newJob({ type: "keyed", key: "k" }))).toEqual({ kind: "conflict", id: job.id });
    });

    fact(`knows a repeated id before its key, also when the job is gone: ${unique}`, async ({ store }) => {
      const job = keyed(unique);
      await store.enqueue([job]);
      const before = await read(store, job.id);
      expect(await enqueueOne(store, job)).toEqual({ kind: "duplicate", id: job.id, state: "queued" });
      expect(await read(store, job.id)).toStrictEqual(before);
      await store.cancel([job.id]);
      expect(await enqueueOne(store, job)).toEqual({ kind: "duplicate", id: job.id, state: "cancelled" });
      await store.remove([job.id]);
      expect(await enqueueOne(store, job)).toEqual({ kind: "duplicate", id: job.id, state: null });
    });

    fact(`means nothing without a key: ${unique}`, async ({ store }) => {
      await add(store, { unique });
      await add(store, { unique });
      expect((await store.count()).queued).toBe(2);
    });
  }

  for (const unique of ["queued", "active"] as const) {
    fact(`answers with the waiting job, whatever its body: ${unique}`, async ({ store }) => {
      const id = await hold(store);
      const before = await read(store, id);
      expect(await enqueueOne(store, keyed(unique))).toEqual({ kind: "duplicate", id, state: "queued" });
      await end(store, await takeOne(store, id), retry({ delayMs: 60_000 }));
      expect(await enqueueOne(store, keyed(unique))).toEqual({ kind: "duplicate", id, state: "queued" });
      expect((await read(store, id)).payload).toBe(before.payload);
      expect((await store.count()).queued).toBe(1);
    });
  }

  fact("answers with the running job where it counts as active", async ({ store }) => {
    const id = await hold(store);
    await takeOne(store, id);
    expect(await enqueueOne(store, keyed("active"))).toEqual({ kind: "duplicate", id, state: "running" });
    expect((await store.count()).queued).toBe(0);
  });

  for (const unique of ["queued", "replace", "debounce"] as const) {
    fact(`creates a job beside the running one, once: ${unique}`, async ({ store }) => {
      const id = await hold(store);
      const run = await takeOne(store, id);
      const next = keyed(unique);
      expect(await enqueueOne(store, next)).toEqual({ kind: "created", id: next.id });
      const kind = unique === "queued" ? "duplicate" : "replaced";
      expect(await enqueueOne(store, keyed(unique))).toMatchObject({ kind, id: next.id });
      expect(await end(store, run, complete())).toMatchObject({ state: "completed", payload: '{"body":1}', key: "k" });
      expect(await store.count()).toMatchObject({ queued: 1, completed: 1 });
    });
  }

  for (const unique of ["queued", "active", "replace", "debounce"] as const) {
    for (const [state, verdict] of Object.entries(ENDS)) {
      fact(`takes over the key of a ${state} job: ${unique}`, async ({ store }) => {
        const id = await hold(store);
        const old = await end(store, await takeOne(store, id), verdict);
        const next = keyed(unique);
        expect(await enqueueOne(store, next)).toEqual({ kind: "created", id: next.id });
        expect(await read(store, id)).toStrictEqual(old);
        const other = newJob({ type: "keyed", key: "k", payload: '{"body":1}' });
        expect(await enqueueOne(store, other)).toEqual({ kind: "conflict", id: next.id });
        const { items } = await store.list({ limit: 5, key: "k", type: "keyed" });
        expect(items.map((job) => job.id)).toEqual([next.id, id]);
      });
    }
  }

  fact("leaves the old job of a key all its rights", async ({ store }) => {
    const id = await hold(store);
    const died = await end(store, await takeOne(store, id), dead());
    const next = keyed("queued");
    await store.enqueue([next]);
    expect(await store.redrive([{ id, generation: died.generation, delayMs: 0 }])).toEqual(["redriven"]);
    expect(await enqueueOne(store, keyed("queued"))).toEqual({ kind: "duplicate", id: next.id, state: "queued" });
    expect(new Set((await take(store)).map((job) => job.id))).toEqual(new Set([id, next.id]));
  });

  fact("keeps the key of the new job when the old one is removed", async ({ store }) => {
    const id = await hold(store);
    await end(store, await takeOne(store, id), complete());
    const next = keyed("queued");
    await store.enqueue([next]);
    await store.remove([id]);
    expect(await enqueueOne(store, keyed("active"))).toEqual({ kind: "duplicate", id: next.id, state: "queued" });
  });

  timed("takes over the key of a job that is gone, for its whole time", async ({ store, clock }) => {
    const retention = { keep: { finishedMs: 0, deadMs: 0 }, types: [], keyMs: DAY, limit: 10, isFirst: true };
    const id = await hold(store);
    await store.cancel([id]);
    await store.remove([id]);
    clock.now += DAY - 1;
    const next = keyed("queued");
    expect(await enqueueOne(store, next)).toEqual({ kind: "created", id: next.id });
    await store.cancel([next.id]);
    await store.remove([next.id]);
    clock.now += DAY - 1;
    await store.prune(retention);
    const plain = () => newJob({ type: "keyed", key: "k", payload: '{"body":2}' });
    expect(await enqueueOne(store, plain())).toEqual({ kind: "duplicate", id: next.id, state: null });
    clock.now += 1;
    await store.prune(retention);
    expect(await enqueueOne(store, plain())).toMatchObject({ kind: "created" });
  });

  replaceFacts({ fact, timed });
}

const CHANGED = {
  priority: 7,
  maxAttempts: 2,
  maxCrashes: 5,
  deadlineMs: 9_000,
  stuckMs: 8_000,
  stuckRetryMs: 7_000,
  stuckLimit: 1,
  limited: false,
  trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  version: 3,
};

function replaceFacts({ fact, timed }: Suite): void {
  timed("replaces body, version, lane and limits of a waiting job, not its due time", async ({ store, clock }) => {
    const id = await hold(store, { delayMs: 5_000, priority: 1 });
    const before = await read(store, id);
    clock.now += 10;
    const job = keyed("replace", { ...CHANGED, delayMs: 1, queue: "q", service: "s", tenant: "t" });
    expect(await enqueueOne(store, job)).toEqual({ kind: "replaced", id });
    const after: Job = {
      ...before,
      ...CHANGED,
      queue: "q",
      service: "s",
      tenant: "t",
      payload: job.payload,
      updatedAt: clock.now,
    };
    expect(await read(store, id)).toStrictEqual(after);
    expect(await store.get([job.id])).toEqual([null]);
    clock.now += 4_990;
    expect(await dueLanes(store)).toMatchObject([
      { kind: "first", priority: 7, queue: "q", service: "s", tenant: "t" },
    ]);
    expect(await take(store)).toMatchObject([{ id, payload: job.payload, ...CHANGED }]);
  });

  timed("debounces: the due time is set anew as well, backwards too", async ({ store, clock }) => {
    const id = await hold(store, { delayMs: 5_000 });
    clock.now += 10;
    expect(await enqueueOne(store, keyed("debounce", { delayMs: 9_000 }))).toEqual({ kind: "replaced", id });
    expect(await read(store, id)).toMatchObject({ runAt: clock.now + 9_000, dueAt: clock.now + 9_000 });
    await store.enqueue([keyed("debounce", { runAt: clock.now, delayMs: 7 })]);
    expect(await read(store, id)).toMatchObject({ runAt: clock.now + 7, dueAt: clock.now + 7 });
    expect(await take(store)).toEqual([]);
    clock.now += 7;
    expect((await take(store)).map((job) => job.id)).toEqual([id]);
  });

  timed("is due in its new order among others", async ({ store, clock }) => {
    const id = await hold(store);
    const other = await add(store, { type: "keyed" });
    await store.enqueue([keyed("debounce", { delayMs: 1 })]);
    clock.now += 1;
    expect((await take(store)).map((job) => job.id)).toEqual([other, id]);
  });

  for (const [kind, verdict] of [["retry", retry({ delayMs: 500 })] as const, ["suspect", crashed()] as const]) {
    timed(`keeps charges, history and the kind of lane: ${kind}`, async ({ store, clock }) => {
      const id = await hold(store);
      const tried = await end(store, await takeOne(store, id), verdict);
      const history = await store.history(id);
      await store.enqueue([keyed("replace", CHANGED)]);
      const { attempts, crashes, failure, epoch, lastDelayMs, runAt, dueAt } = tried;
      const kept = { attempts, crashes, failure, epoch, lastDelayMs, runAt, dueAt, startedAt: tried.startedAt };
      expect(await read(store, id)).toMatchObject({ ...kept, ...CHANGED, payload: '{"body":2}' });
      expect(await store.history(id)).toStrictEqual(history);
      clock.now += 500;
      expect(await dueLanes(store)).toMatchObject([{ kind, priority: 7 }]);
      expect(await take(store)).toMatchObject([{ id, attempts, crashes }]);
    });
  }

  fact("compares later bodies with the new one", async ({ store }) => {
    const id = await hold(store);
    await store.enqueue([keyed("replace")]);
    const [same, old] = [{ payload: '{"body":2}' }, { payload: '{"body":1}' }];
    expect(await enqueueOne(store, keyed("key", same))).toEqual({ kind: "duplicate", id, state: "queued" });
    expect(await enqueueOne(store, keyed("key", old))).toEqual({ kind: "conflict", id });
  });

  fact("judges the keys of one call in their order", async ({ store }) => {
    const [a, b, c, d] = [keyed("replace"), keyed("active"), keyed("debounce", { payload: "3" }), keyed("key")];
    expect(await store.enqueue([a, b, c, d])).toEqual([
      { kind: "created", id: a.id },
      { kind: "duplicate", id: a.id, state: "queued" },
      { kind: "replaced", id: a.id },
      { kind: "conflict", id: a.id },
    ]);
    expect((await read(store, a.id)).payload).toBe("3");
  });

  fact("replaces nothing of a call that is refused", async ({ store }) => {
    const id = await hold(store);
    const before = await read(store, id);
    const refused = store.enqueue([keyed("replace"), newJob({ version: 0 })]);
    await expect(refused).rejects.toMatchObject({ code: "invalid_argument" });
    expect(await read(store, id)).toStrictEqual(before);
  });

  fact("creates one job when many callers replace at once", async ({ store, peer }) => {
    const second = await peer();
    const jobs = Array.from({ length: 40 }, (_, i) => keyed("replace", { payload: String(i) }));
    const answers = await Promise.all(jobs.map((job, i) => enqueuePatiently(i % 2 ? second : store, job)));
    expect(answers.filter(({ kind }) => kind === "created")).toHaveLength(1);
    expect(answers.filter(({ kind }) => kind === "replaced")).toHaveLength(39);
    expect(new Set(answers.map(({ id }) => id)).size).toBe(1);
  });
}
