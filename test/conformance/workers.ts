// Workers: their leases, their heartbeats, and what becomes of the runs of one that died.
import { expect } from "vitest";
import type { Lease } from "../../src/core/job.ts";
import type { Signs, Store } from "../../src/store/store.ts";
import { newJob } from "../support/new-job.ts";
import { add, claimBy, end, isStale, leaseOf, nextNonce, read, signUp, start, take, takeOne } from "../support/runs.ts";
import { complete, crashed, dead, retry } from "../support/verdicts.ts";
import type { Suite } from "./suite.ts";

const beatOf = (worker: string, startedThrough = 0) => ({ worker, leaseMs: 30_000, startedThrough });

const record = async (store: Store, id: string) => (await store.workers()).find((worker) => worker.id === id);

const reap = (store: Store, gone: readonly string[] = [], limit = 100) => store.expired({ gone, limit });

/** Three jobs in the hands of a new worker, with tickets 1, 2 and 3. */
async function threeRuns(store: Store, startedThrough = 0): Promise<{ worker: string; leases: Lease[] }> {
  const worker = await signUp(store);
  await store.enqueue([newJob(), newJob(), newJob()]);
  const jobs = await take(store, worker, { ticket: 1, startedThrough });
  return { worker, leases: jobs.map(leaseOf) };
}

/** Tests of register, beat, leave and workers. */
export function workerFacts({ fact, timed }: Suite): void {
  timed("shows a registered worker", async ({ store, clock }) => {
    expect(await store.workers()).toEqual([]);
    await store.register({ id: "w1", leaseMs: 20_000, pid: 17, host: "h", release: null });
    const life = { leaseEnd: clock.now + 20_000, startedAt: clock.now, beatAt: clock.now };
    const shown = { id: "w1", pid: 17, host: "h", release: null, ...life, givenUp: false, running: 0 };
    expect(await store.workers()).toStrictEqual([shown]);
  });

  timed("tells with a look what has changed", async ({ store, clock }) => {
    const signs = async (): Promise<Signs | undefined> => (await store.lanes(null, 10)).signs;
    const before = await signs();
    expect(before).toMatchObject({ workers: 0, lapseAt: null });
    const worker = await signUp(store, 20_000);
    const there = await signs();
    expect(there).toMatchObject({ workers: 1, lapseAt: clock.now + 20_000, control: before?.control });
    expect(there?.newest).not.toBe(before?.newest);
    await store.pause({ kind: "queue", name: "default" }, { forMs: null, reason: "test" });
    await store.setCells([{ kind: "schedule", name: "", holder: "", version: null, value: "{}" }]);
    await store.setCells([{ kind: "schedule", name: "nightly", holder: "", version: null, value: "{}" }]);
    const changed = await signs();
    expect(changed?.control).not.toBe(there?.control);
    expect(changed?.cells).toBe((there?.cells ?? 0) + 1);
    const { newest } = changed as Signs;
    expect((await store.expired({ gone: [worker], limit: 10 })).length).toBe(0);
    expect(await signs()).toMatchObject({ lapseAt: 0 });
    await store.leave(worker);
    expect(await signs()).toMatchObject({ workers: 0, lapseAt: null });
    clock.now += 1;
    await signUp(store);
    expect((await signs())?.newest).not.toBe(newest);
  });

  fact("counts the runs that a worker holds", async ({ store }) => {
    const { worker, leases } = await threeRuns(store);
    await signUp(store);
    expect(await record(store, worker)).toMatchObject({ running: 3 });
    await end(store, leases[0] as Lease, complete());
    await end(store, leases[1] as Lease, retry());
    expect(await record(store, worker)).toMatchObject({ running: 1 });
  });

  timed("moves the end of the lease with a heartbeat", async ({ store, clock }) => {
    const worker = await signUp(store, 10_000);
    const registeredAt = clock.now;
    clock.now += 9_000;
    expect(await store.beat(beatOf(worker))).toEqual({ alive: true, cancel: [], now: clock.now });
    const life = { leaseEnd: clock.now + 30_000, beatAt: clock.now, startedAt: registeredAt, givenUp: false };
    expect(await record(store, worker)).toMatchObject(life);
  });

  timed("lets a late heartbeat save a worker that nobody gave up", async ({ store, clock }) => {
    const worker = await signUp(store, 1_000);
    clock.now += 60_000;
    expect(await store.beat(beatOf(worker))).toMatchObject({ alive: true });
    expect(await reap(store)).toEqual([]);
    expect(await record(store, worker)).toMatchObject({ givenUp: false });
  });

  fact("answers the heartbeat of a stranger", async ({ store }) => {
    expect(await store.beat(beatOf("nobody"))).toMatchObject({ alive: false, cancel: [] });
    expect(await store.workers()).toEqual([]);
  });

  fact("lists the leases a worker holds, and nobody else's", async ({ store }) => {
    const worker = await signUp(store);
    const mine = [await start(store, {}, worker), await start(store, {}, worker)];
    const ended = await start(store, {}, worker);
    await start(store, {}, await signUp(store));
    await store.settle({ settlements: [{ ...leaseOf(ended), verdict: complete() }] });
    expect(await store.held(worker)).toStrictEqual(mine.map(leaseOf));
    expect(await store.held("nobody")).toEqual([]);
  });

  fact("forgets a worker that leaves with empty hands", async ({ store }) => {
    const { worker, leases } = await threeRuns(store);
    for (const lease of leases) await end(store, lease, complete());
    await store.leave(worker);
    expect(await store.workers()).toEqual([]);
    expect(await store.beat(beatOf(worker))).toMatchObject({ alive: false });
    expect(await claimBy(store, worker)).toMatchObject({ refused: "worker" });
  });

  fact("gives up a worker that leaves with full hands", async ({ store }) => {
    const { worker, leases } = await threeRuns(store);
    await store.leave(worker);
    expect(await record(store, worker)).toMatchObject({ givenUp: true, running: 3 });
    expect(await store.beat(beatOf(worker))).toMatchObject({ alive: false });
    expect((await reap(store)).map(({ lease }) => lease)).toEqual(leases);
  });

  fact("lets a worker leave that is not there", async ({ store }) => {
    await expect(store.leave("nobody")).resolves.toBeUndefined();
  });
}

/** Tests of expired. */
export function expiredFacts({ fact, timed }: Suite): void {
  timed("gives up a worker at the end of its lease, not before", async ({ store, clock }) => {
    const run = await start(store, {}, await signUp(store, 10_000));
    clock.now += 9_999;
    expect(await reap(store)).toEqual([]);
    clock.now += 1;
    const job = await read(store, run.id);
    expect(await reap(store)).toStrictEqual([
      { position: expect.any(Number), job, lease: leaseOf(run), started: false },
    ]);
  });

  timed("never takes a worker back", async ({ store, clock }) => {
    const worker = await signUp(store, 10_000);
    const id = await add(store);
    clock.now += 10_000;
    await reap(store);
    for (let i = 0; i < 2; i++) expect(await store.beat(beatOf(worker))).toMatchObject({ alive: false });
    expect(await claimBy(store, worker)).toMatchObject({ jobs: [], refused: "worker" });
    expect((await read(store, id)).state).toBe("queued");
  });

  fact("gives up a worker named as gone at once, and no other", async ({ store }) => {
    const dying = await signUp(store);
    const living = await start(store, {}, await signUp(store));
    const run = await start(store, {}, dying);
    expect((await reap(store, [dying, "nobody"])).map(({ lease }) => lease)).toEqual([leaseOf(run)]);
    expect(await store.beat(beatOf(dying))).toMatchObject({ alive: false });
    expect(await store.beat(beatOf(living.worker as string))).toMatchObject({ alive: true });
  });

  timed("gives up only those named when the reaper was out of contact itself", async ({ store, clock }) => {
    const late = await start(store, {}, await signUp(store, 1_000));
    const named = await start(store, {}, await signUp(store, 60_000));
    clock.now += 2_000;
    const runs = await store.expired({ gone: [named.worker as string], limit: 10, late: [] });
    expect(runs.map(({ lease }) => lease)).toEqual([leaseOf(named)]);
    expect(await store.beat(beatOf(late.worker as string))).toMatchObject({ alive: true });
  });

  timed(
    "gives up only those of the late that the reaper may judge, and none that has shown itself since",
    async ({ store, clock }) => {
      const runs = [];
      for (let i = 0; i < 3; i++) runs.push(await start(store, {}, await signUp(store, 1_000)));
      const [judged, spared, back] = runs.map(({ worker }) => worker as string) as [string, string, string];
      clock.now += 2_000;
      const seenAt = clock.now;
      await store.beat(beatOf(back));
      clock.now += 60_000;
      const listed = await store.expired({ gone: [], late: [judged, back, "unknown"], lapsedBy: seenAt, limit: 10 });
      expect(listed.map(({ lease }) => lease.id)).toEqual([runs[0]?.id]);
      for (const worker of [spared, back]) expect(await store.beat(beatOf(worker))).toMatchObject({ alive: true });
    },
  );

  fact("lists the runs in the order of their claim, up to the limit, until they are settled", async ({ store }) => {
    const { worker, leases } = await threeRuns(store);
    const listed = async (limit: number) => (await reap(store, [worker], limit)).map(({ lease }) => lease);
    expect(await listed(2)).toEqual(leases.slice(0, 2));
    expect(await listed(10)).toEqual(leases);
    await end(store, leases[0] as Lease, crashed());
    await end(store, leases[1] as Lease, dead());
    expect(await listed(2)).toEqual(leases.slice(2));
    await end(store, leases[2] as Lease, crashed());
    expect(await listed(2)).toEqual([]);
  });

  for (const through of [0, 1, 2, 3, 9]) {
    fact(`counts runs up to ticket ${through} as started when the claim says so`, async ({ store }) => {
      const { worker } = await threeRuns(store, through);
      const started = (await reap(store, [worker])).map((run) => run.started);
      expect(started).toEqual([1 <= through, 2 <= through, 3 <= through]);
    });
  }

  fact("counts a run with ticket 0 as started from its claim", async ({ store }) => {
    const worker = await signUp(store);
    await add(store);
    await take(store, worker, { limit: 1, ticket: 0, startedThrough: 0 });
    expect((await reap(store, [worker])).map((run) => run.started)).toEqual([true]);
  });

  fact("learns what has started from heartbeats, claims and settles, and forgets none of it", async ({ store }) => {
    const worker = await signUp(store);
    await store.enqueue(Array.from({ length: 6 }, () => newJob()));
    const taken = await take(store, worker, { limit: 5, ticket: 1, startedThrough: 1 });
    await store.beat(beatOf(worker, 2));
    await take(store, worker, { ticket: 6, startedThrough: 3 });
    const settlements = [{ ...leaseOf(taken[0] as Lease), verdict: complete() }];
    await store.settle({ settlements, worker, startedThrough: 4 });
    await store.settle({ settlements: [], worker, startedThrough: 1 });
    await store.beat(beatOf(worker, 0));
    await take(store, worker, { ticket: 7, startedThrough: 2 });
    const started = (await reap(store, [worker])).map((run) => run.started);
    expect(started).toEqual([true, true, true, false, false]);
  });

  fact("learns what has started from a claim that is refused because of its control version", async ({ store }) => {
    const { worker } = await threeRuns(store);
    const { version } = await store.control();
    const refused = await claimBy(store, worker, { control: version + 1, ticket: 4, startedThrough: 2 });
    expect(refused).toMatchObject({ refused: "control" });
    expect((await reap(store, [worker])).map((run) => run.started)).toEqual([true, true, false]);
  });

  fact("keeps the progress of workers apart", async ({ store }) => {
    const [a, b] = [await signUp(store), await signUp(store)];
    const [mine, theirs] = [await start(store, {}, a), await start(store, {}, b)];
    await store.beat(beatOf(a, 5));
    const runs = await reap(store, [a, b]);
    expect(new Map(runs.map((run) => [run.lease.id, run.started]))).toEqual(
      new Map([
        [mine.id, true],
        [theirs.id, false],
      ]),
    );
  });

  fact("lists runs and leaves them as they are", async ({ store }) => {
    const { worker, leases } = await threeRuns(store);
    const before = await store.get(leases.map(({ id }) => id));
    await reap(store, [worker]);
    expect(await store.get(leases.map(({ id }) => id))).toStrictEqual(before);
    expect(await take(store)).toEqual([]);
  });

  fact("lets a worker that was given up settle while nobody else did", async ({ store }) => {
    const { worker, leases } = await threeRuns(store);
    await reap(store, [worker]);
    const settlements = [{ ...(leases[0] as Lease), verdict: complete("1") }];
    expect((await store.settle({ settlements, worker, startedThrough: 1 })).stale).toEqual([]);
    expect(await read(store, (leases[0] as Lease).id)).toMatchObject({ state: "completed", result: "1" });
  });

  fact("refuses a worker that was given up once its run was taken from it", async ({ store }) => {
    const run = await start(store);
    const [lost] = await reap(store, [run.worker as string]);
    await end(store, lost?.lease as Lease, crashed());
    expect(await isStale(store, leaseOf(run), complete())).toBe(true);
    const again = await takeOne(store, run.id);
    expect(await isStale(store, leaseOf(run), complete())).toBe(true);
    expect(await end(store, again, complete())).toMatchObject({ state: "completed", attempts: 1, crashes: 1 });
  });

  fact("lets one of two reapers charge a run", async ({ store, peer }) => {
    const second = await peer();
    const run = await start(store);
    const gone = [run.worker as string];
    const [mine, theirs] = await Promise.all([reap(store, gone), reap(second, gone)]);
    const leases = [...mine, ...theirs].map(({ lease }) => lease);
    expect(leases).toEqual([leaseOf(run), leaseOf(run)]);
    const stale = await Promise.all([
      isStale(store, leases[0] as Lease, crashed()),
      isStale(second, leases[1] as Lease, crashed()),
    ]);
    expect(stale.filter(Boolean)).toHaveLength(1);
    expect(await read(store, run.id)).toMatchObject({ state: "queued", attempts: 1, crashes: 1 });
    expect(await store.history(run.id)).toHaveLength(1);
  });

  fact("loses nothing when a worker dies between claim and settle", async ({ store, peer }) => {
    const second = await peer();
    const jobs = Array.from({ length: 20 }, () => newJob());
    await store.enqueue(jobs);
    const worker = await signUp(store);
    const held = await take(store, worker, { limit: 8, startedThrough: 3 });
    for (const run of await reap(second, [worker])) {
      const charge = { attempts: run.started ? 1 : 0, crashes: 1 } as const;
      await end(second, run.lease, crashed({ charge }));
    }
    const rest = await take(second, await signUp(second), { nonce: nextNonce() });
    expect(rest.map(({ id }) => id).toSorted()).toEqual(jobs.map(({ id }) => id).toSorted());
    for (const run of rest) await end(second, run, complete());
    const done = (await second.get(jobs.map(({ id }) => id))).map((job) => [job?.state, job?.attempts, job?.crashes]);
    expect(done.slice(0, 3)).toEqual(Array.from({ length: 3 }, () => ["completed", 1, 1]));
    expect(done.slice(3, held.length)).toEqual(Array.from({ length: 5 }, () => ["completed", 0, 1]));
    expect(done.slice(held.length)).toEqual(Array.from({ length: 12 }, () => ["completed", 0, 0]));
  });

  timed("goes on after every worker died", async ({ store, clock }) => {
    const runs = [];
    for (let i = 0; i < 3; i++) runs.push(await start(store, {}, await signUp(store, 1_000 * (i + 1))));
    clock.now += 2_000;
    expect((await reap(store)).map(({ lease }) => lease.id)).toEqual([runs[0]?.id, runs[1]?.id]);
    clock.now += 1_000;
    for (const { lease } of await reap(store)) await end(store, lease, crashed());
    expect((await store.count()).queued).toBe(3);
    expect(await reap(store)).toEqual([]);
  });
}
