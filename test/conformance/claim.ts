// Lanes and claims: what is due, in which order it is taken, and what a claim leaves on a job.
import { expect } from "vitest";
import { LANE_KINDS } from "../../src/core/lane.ts";
import type { ClaimedJob, Store } from "../../src/store/store.ts";
import { newJob } from "../support/new-job.ts";
import { add, claimBy, dueLanes, end, finish, nextNonce, read, signUp, start, take } from "../support/runs.ts";
import { crashed, release, retry } from "../support/verdicts.ts";
import type { Suite } from "./suite.ts";

const ids = (jobs: readonly { readonly id: string }[]) => jobs.map(({ id }) => id);

async function laneOf(store: Store, type: string): Promise<number> {
  const found = (await dueLanes(store)).find((lane) => lane.type === type);
  if (!found) throw new Error(`No lane of ${type} is due.`);
  return found.lane;
}

/** Tests of lanes. */
export function laneFacts({ fact, timed }: Suite): void {
  fact("shows no lane where nothing is due", async ({ store }) => {
    expect(await store.lanes(null, 10)).toMatchObject({ lanes: [], next: null, nextRunAt: null });
    await add(store, { delayMs: 60_000 });
    await start(store);
    expect(await store.lanes(null, 10)).toMatchObject({ lanes: [], next: null });
  });

  timed("shows what a lane belongs to and when its oldest job fell due", async ({ store, clock }) => {
    await add(store, { delayMs: 60_000 });
    await add(store, { runAt: clock.now - 20, queue: "q", service: "s", tenant: "t", priority: 3 });
    await add(store, { runAt: clock.now - 30, queue: "q", service: "s", tenant: "t", priority: 3 });
    const { lanes } = await store.lanes(null, 10);
    const ungrouped = { group: null, groupConcurrency: null, room: null };
    const head = { type: "thumbnail", queue: "q", service: "s", tenant: "t", priority: 3, ...ungrouped };
    expect(lanes).toStrictEqual([{ lane: lanes[0]?.lane, ...head, kind: "first", headRunAt: clock.now - 30 }]);
  });

  timed("shows a lane from the moment its first job is due", async ({ store, clock }) => {
    await add(store, { delayMs: 1_000 });
    clock.now += 999;
    expect(await dueLanes(store)).toEqual([]);
    clock.now += 1;
    expect(await dueLanes(store)).toMatchObject([{ headRunAt: clock.now }]);
  });

  timed("tells when the next lane falls due", async ({ store, clock }) => {
    await add(store, { delayMs: 9_000, type: "a" });
    await add(store, { delayMs: 5_000, type: "b" });
    await add(store, { delayMs: 7_000, type: "b" });
    await add(store, { type: "c" });
    expect(await store.lanes(null, 10)).toMatchObject({ nextRunAt: clock.now + 5_000, now: clock.now });
    clock.now += 5_000;
    expect(await store.lanes(null, 10)).toMatchObject({ nextRunAt: clock.now + 4_000, now: clock.now });
    await store.cancel((await store.list({ limit: 10, type: "a" })).items.map(({ id }) => id));
    expect(await store.lanes(null, 10)).toMatchObject({ nextRunAt: null });
  });

  fact("has one lane for each belonging and kind", async ({ store }) => {
    const belongings = [{}, { type: "b" }, { queue: "q" }, { service: "s" }, { tenant: "t" }, { priority: 1 }];
    for (const each of [...belongings, ...belongings]) await add(store, each);
    expect(await dueLanes(store)).toHaveLength(belongings.length);
  });

  fact("orders lanes by priority, then kinds of one belonging", async ({ store }) => {
    for (const priority of [0, 9, 4]) {
      const runs = [];
      for (let i = 0; i < 4; i++) runs.push(await start(store, { type: "t", priority }));
      for (const verdict of [crashed(), retry(), crashed({ lane: "last" }), release()])
        await end(store, runs.pop() as ClaimedJob, verdict);
    }
    const lanes = await dueLanes(store);
    expect(lanes.map(({ priority, kind }) => `${priority} ${kind}`)).toEqual(
      [9, 4, 0].flatMap((priority) => LANE_KINDS.map((kind) => `${priority} ${kind}`)),
    );
    expect(lanes.map(({ lane }) => lane)).toEqual(lanes.map(({ lane }) => lane).toSorted((a, b) => a - b));
  });

  fact("pages through the lanes without skipping or repeating one", async ({ store }) => {
    const jobs = Array.from({ length: 25 }, (_, i) => newJob({ tenant: `t${i}`, priority: i % 3 }));
    await store.enqueue(jobs);
    const all = (await store.lanes(null, 100)).lanes;
    expect(all).toHaveLength(25);
    for (const limit of [1, 7, 24, 25, 26]) {
      const seen: number[] = [];
      let after: number | null = null;
      do {
        const page = await store.lanes(after, limit);
        expect(page.lanes.length).toBeLessThanOrEqual(limit);
        seen.push(...page.lanes.map(({ lane }) => lane));
        after = page.next;
      } while (after !== null);
      expect(seen).toEqual(all.map(({ lane }) => lane));
    }
  });

  fact("finds every head among lanes with one job and lanes with many", async ({ store }) => {
    const thin = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, i) => newJob({ tenant: `t${from + i}` }));
    const thick = Array.from({ length: 150 }, () => newJob({ tenant: "thick" }));
    for (const jobs of [thin(0, 70), thick, thin(70, 110)]) await store.enqueue(jobs);
    for (const limit of [1_000, 111, 90, 64, 33]) {
      const seen: string[] = [];
      for (let after: number | null = null, pages = 0; pages < 5; pages++) {
        const page = await store.lanes(after, limit);
        for (const { tenant } of page.lanes) seen.push(tenant as string);
        after = page.next;
        if (after === null) break;
      }
      const tenants = [...Array.from({ length: 110 }, (_, i) => `t${i}`), "thick"];
      expect(seen.toSorted()).toEqual(tenants.toSorted());
    }
  });

  fact("finds due lanes behind many that are not", async ({ store }) => {
    await store.enqueue(
      Array.from({ length: 50 }, (_, i) => newJob({ tenant: `t${i}`, priority: 9, delayMs: 60_000 })),
    );
    const due = await add(store, { tenant: "last", priority: 0 });
    expect(await dueLanes(store)).toMatchObject([{ tenant: "last" }]);
    expect(ids(await take(store))).toEqual([due]);
  });
}

/** Tests of claim. */
export function claimFacts({ fact, timed }: Suite): void {
  fact("takes nothing, if asked so, while anything waits in a lane before", async ({ store }) => {
    const worker = await signUp(store);
    const low = await add(store, { type: "low" });
    const high = await add(store, { type: "high", priority: 5 });
    const lane = await laneOf(store, "low");
    const claim = (unlessBefore: number) =>
      claimBy(store, worker, { quotas: [{ lane, limit: 1 }], unlessBefore, limit: 1 });
    expect(await claim(lane)).toMatchObject({ jobs: [], refused: null });
    await store.cancel([high]);
    expect(ids((await claim(lane)).jobs)).toEqual([low]);
  });

  timed("takes a due job under a new lease", async ({ store, clock }) => {
    const worker = await signUp(store);
    const id = await add(store);
    const before = await read(store, id);
    clock.now += 250;
    const answer = await claimBy(store, worker, { nonce: "ab".repeat(16), ticket: 7 });
    const { updatedAt } = await read(store, id);
    const taken = { ...before, state: "running", epoch: before.epoch + 1, worker, startedAt: clock.now, updatedAt };
    expect(answer).toEqual({
      jobs: [{ ...taken, nonce: "ab".repeat(16), ticket: 7 }],
      now: clock.now,
      refused: null,
    });
    expect(await read(store, id)).toStrictEqual(taken);
  });

  timed("takes nothing before its due time", async ({ store, clock }) => {
    const worker = await signUp(store);
    const id = await add(store, { delayMs: 1_000 });
    const due = await add(store);
    const lane = await laneOf(store, "thumbnail");
    const quotas = [{ lane, limit: 10 }];
    expect(ids((await claimBy(store, worker, { quotas })).jobs)).toEqual([due]);
    clock.now += 999;
    expect((await claimBy(store, worker, { quotas })).jobs).toEqual([]);
    clock.now += 1;
    expect(ids((await claimBy(store, worker, { quotas })).jobs)).toEqual([id]);
  });

  timed("takes by due time, then in the order of enqueue", async ({ store, clock }) => {
    const late = await add(store, { runAt: clock.now - 1 });
    const early = await add(store, { runAt: clock.now - 9 });
    const twin = await add(store, { runAt: clock.now - 9 });
    const third = await add(store, { runAt: clock.now - 9 });
    expect(ids(await take(store))).toEqual([early, twin, third, late]);
  });

  fact("takes jobs that are due together in the order of enqueue, not of ids", async ({ store }) => {
    const jobs = Array.from({ length: 20 }, () => newJob({ runAt: 1_000 }));
    expect(ids(jobs).toSorted()).not.toEqual(ids(jobs));
    await store.enqueue(jobs);
    expect(ids(await take(store, undefined, { limit: 12 }))).toEqual(ids(jobs).slice(0, 12));
    expect(ids(await take(store))).toEqual(ids(jobs).slice(12));
  });

  fact("works through the quotas in the order given", async ({ store }) => {
    const jobs = ["a", "b", "c"].flatMap((type) => [newJob({ type, runAt: 1 }), newJob({ type, runAt: 2 })]);
    await store.enqueue(jobs);
    const [a1, a2, b1, b2, c1] = ids(jobs);
    const [a, b, c] = [await laneOf(store, "a"), await laneOf(store, "b"), await laneOf(store, "c")];
    const quotas = [
      { lane: c, limit: 1 },
      { lane: a, limit: 1 },
      { lane: b, limit: 5 },
      { lane: a, limit: 5 },
      { lane: c, limit: 5 },
    ];
    const taken = await take(store, undefined, { quotas, limit: 5, ticket: 11 });
    expect(ids(taken)).toEqual([c1, a1, b1, b2, a2]);
    expect(taken.map(({ ticket }) => ticket)).toEqual([11, 12, 13, 14, 15]);
    expect((await store.count()).queued).toBe(1);
  });

  fact("takes no more than the limit and no more than a quota", async ({ store }) => {
    await store.enqueue(Array.from({ length: 10 }, () => newJob()));
    const lane = await laneOf(store, "thumbnail");
    const worker = await signUp(store);
    const taking = (quota: number, limit: number) => take(store, worker, { quotas: [{ lane, limit: quota }], limit });
    expect(await taking(5, 0)).toHaveLength(0);
    expect(await taking(0, 5)).toHaveLength(0);
    expect(await taking(3, 5)).toHaveLength(3);
    expect(await taking(5, 2)).toHaveLength(2);
    expect(await taking(100, 100)).toHaveLength(5);
    expect(await taking(100, 100)).toHaveLength(0);
  });

  fact("takes nothing for lanes that do not exist or have nothing due", async ({ store }) => {
    const id = await add(store, { type: "a" });
    const lane = await laneOf(store, "a");
    await store.reschedule([{ id, delayMs: 60_000 }]);
    const due = await add(store, { type: "b" });
    const quotas = [
      { lane, limit: 5 },
      { lane: lane + 4_000, limit: 5 },
      { lane: await laneOf(store, "b"), limit: 5 },
    ];
    expect(ids(await take(store, undefined, { quotas }))).toEqual([due]);
    expect(await take(store, undefined, { quotas: [] })).toEqual([]);
  });

  fact("serves the higher priority first, retries included", async ({ store }) => {
    const low = await add(store, { type: "t", priority: 0 });
    const high = await finish(store, retry(), { type: "t", priority: 9 });
    const middle = await add(store, { type: "t", priority: 5 });
    expect(ids(await take(store))).toEqual([high.id, middle, low]);
  });

  fact("gives all jobs of a claim one nonce and each its own epoch", async ({ store }) => {
    const twice = await finish(store, release(), { type: "t" });
    const once = await add(store, { type: "t" });
    const nonce = nextNonce();
    const taken = await take(store, undefined, { nonce });
    expect(taken.map((job) => [job.id, job.nonce, job.epoch])).toEqual([
      [twice.id, nonce, twice.epoch + 1],
      [once, nonce, twice.epoch],
    ]);
  });

  fact("charges no attempt", async ({ store }) => {
    const run = await start(store);
    expect(run).toMatchObject({ attempts: 0, crashes: 0, releases: 0, failure: null });
  });

  fact("refuses a worker that nobody registered", async ({ store }) => {
    const id = await add(store);
    expect(await claimBy(store, "stranger")).toMatchObject({ jobs: [], refused: "worker" });
    expect((await read(store, id)).state).toBe("queued");
  });

  fact("refuses a claim planned with another control version", async ({ store }) => {
    const worker = await signUp(store);
    const id = await add(store);
    const { version } = await store.control();
    await store.pause({ kind: "queue", name: "default" }, { forMs: null, reason: "incident" });
    for (const control of [version, version + 2]) {
      expect(await claimBy(store, worker, { control })).toMatchObject({ jobs: [], refused: "control" });
    }
    expect((await read(store, id)).state).toBe("queued");
    expect((await claimBy(store, worker)).jobs).toHaveLength(1);
  });

  fact("never gives one job to two claimers", async ({ store, peer }) => {
    const second = await peer();
    const jobs = Array.from({ length: 300 }, (_, i) => newJob({ type: `t${i % 3}` }));
    await store.enqueue(jobs);
    const quotas = (await dueLanes(store)).map(({ lane }) => ({ lane, limit: 7 }));
    const control = (await store.control()).version;
    const workers = await Promise.all(Array.from({ length: 20 }, () => signUp(store)));
    const claimAll = async (worker: string, from: Store): Promise<string[]> => {
      const got: string[] = [];
      for (let ticket = 1; ; ) {
        const nonce = nextNonce();
        const { jobs } = await from.claim({ worker, quotas, limit: 9, nonce, control, ticket, startedThrough: 0 });
        if (jobs.length === 0) return got;
        got.push(...ids(jobs));
        ticket += jobs.length;
      }
    };
    const got = (await Promise.all(workers.map((worker, i) => claimAll(worker, i % 2 ? second : store)))).flat();
    expect(got.toSorted()).toEqual(ids(jobs).toSorted());
  });

  fact("shows the claimed run to everyone at once", async ({ store, peer }) => {
    const run = await start(store);
    const second = await peer();
    expect(await read(second, run.id)).toMatchObject({ state: "running", epoch: run.epoch, worker: run.worker });
    await end(second, run, release());
    expect((await read(store, run.id)).state).toBe("queued");
  });
}
