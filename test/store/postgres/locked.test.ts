// Jobs that somebody holds in an open transaction, and the jobs beside them: no row keeps another from being settled,
// reaped or cancelled.
import { setTimeout as delay } from "node:timers/promises";
import type pg from "pg";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { defineJob, retryPolicyOf } from "../../../src/jobs/define-job.ts";
import type { ClaimedJob, Settlement, Store } from "../../../src/store/store.ts";
import { realSystem } from "../../../src/system/real.ts";
import { reap } from "../../../src/upkeep/expired-runs.ts";
import { newJob } from "../../support/new-job.ts";
import { openQueue, type PostgresQueue } from "../../support/postgres-queue.ts";
import { leaseOf, read, signUp, take } from "../../support/runs.ts";
import { cancel, complete, dead, forgotten, progress, release, retry } from "../../support/verdicts.ts";

const SERVER = inject("postgres18");
/** Ten times what a bounded wait takes, less than a silent server is given. */
const SOON_MS = 12_000;

/** A transaction of the application's that stays open until the test ends it, or ends. */
async function openTransaction({ pool }: PostgresQueue): Promise<pg.PoolClient> {
  const client = await pool.connect();
  onTestFinished(() => client.release(true));
  await client.query("begin");
  return client;
}

/** Runs of a worker of its own; the first is being completed in a transaction. */
async function scene(queue: PostgresQueue, count: number, overrides: Parameters<typeof newJob>[0] = {}) {
  const { store } = queue;
  await store.enqueue(Array.from({ length: count }, () => newJob(overrides)));
  const worker = await signUp(store);
  const runs = await take(store, worker);
  expect(runs).toHaveLength(count);
  const tx = await openTransaction(queue);
  await store.within?.(tx).complete(leaseOf(runs[0] as ClaimedJob), '"in its own transaction"');
  return { store, worker, runs, tx };
}

async function inTime<T>(work: () => Promise<T>): Promise<T> {
  const from = performance.now();
  const answer = await work();
  expect(performance.now() - from).toBeLessThan(SOON_MS);
  return answer;
}

function settleAll(store: Store, runs: readonly ClaimedJob[], verdict: (at: number) => Settlement["verdict"]) {
  return store.settle({ settlements: runs.map((run, at) => ({ ...leaseOf(run), verdict: verdict(at) })) });
}

const statesOf = async (store: Store, runs: readonly ClaimedJob[]) =>
  (await store.get(runs.map(({ id }) => id))).map((job) => job?.state ?? null);

describe("a job in an open transaction", () => {
  it.each([
    ["one statement", () => complete()],
    ["several", (at: number) => [complete(), retry(), dead(), release(), cancel(), progress("1")][at % 6] as never],
  ])("does not keep the others from being settled by %s", async (_name, verdict) => {
    const { store, runs, tx } = await scene(await openQueue(SERVER), 12);
    const [first, ...others] = runs as [ClaimedJob, ...ClaimedJob[]];
    const answer = await inTime(() => settleAll(store, runs, verdict));
    expect(answer).toMatchObject({ stale: [], locked: [leaseOf(first)], now: expect.any(Number) });
    const expected = ["completed", "queued", "dead", "queued", "cancelled", "running"];
    expect(await statesOf(store, others)).toEqual(
      others.map((_, at) => expected[["one statement"].includes(_name) ? 0 : (at + 1) % 6]),
    );
    // Its lease is as good as before, and says what came of the transaction.
    await tx.query("rollback");
    expect(await settleAll(store, [first], () => complete())).toMatchObject({ stale: [] });
    expect(await read(store, first.id)).toMatchObject({ state: "completed", result: '{"ok":true}' });
  });

  it("is stale once the transaction has committed", async () => {
    const { store, runs, tx } = await scene(await openQueue(SERVER), 2);
    expect((await settleAll(store, runs, () => retry())).locked).toHaveLength(1);
    await tx.query("commit");
    expect(await settleAll(store, runs.slice(0, 1), () => retry())).toMatchObject({
      stale: [leaseOf(runs[0] as ClaimedJob)],
    });
    expect(await read(store, runs[0]?.id as string)).toMatchObject({ state: "completed", attempts: 0 });
  });

  it("keeps its place in its group, and others of their groups free theirs", async () => {
    const queue = await openQueue(SERVER);
    const { store, runs } = await scene(queue, 3, { group: "g", groupConcurrency: 3 });
    expect((await inTime(() => settleAll(store, runs, () => complete()))).locked).toHaveLength(1);
    expect((await store.holders({ type: runs[0]?.type as string, group: "g" })).map(({ id }) => id)).toEqual([
      runs[0]?.id,
    ]);
  });

  it("is not taken for one that is gone", async () => {
    const queue = await openQueue(SERVER);
    const { store, runs } = await scene(queue, 3);
    await queue.sql("delete from @.job where id = $1", [runs[1]?.id]);
    expect(await settleAll(store, runs, () => complete())).toMatchObject({
      stale: [leaseOf(runs[1] as ClaimedJob)],
      locked: [leaseOf(runs[0] as ClaimedJob)],
    });
  });

  it("does not keep other runs of a lost worker from being reaped", async () => {
    const { store, worker, runs } = await scene(await openQueue(SERVER), 4);
    const self = await signUp(store);
    const options = {
      store,
      system: realSystem,
      self,
      host: "host-b",
      isAlive: () => true,
      policyOf: () => retryPolicyOf(undefined),
      leaseMs: 10_000,
      hasLasted: () => false,
      onTold: () => undefined,
      report: () => undefined,
    };
    const evidence = new Map([[worker, { ...retry().failure }]]);
    expect(await inTime(() => reap(options, evidence))).toBe(3);
    expect(await statesOf(store, runs)).toEqual(["running", "queued", "queued", "queued"]);
  });

  it("is not cancelled, which is said soon and plainly", async () => {
    const { store, runs, tx } = await scene(await openQueue(SERVER), 2);
    const ids = runs.map(({ id }) => id);
    await expect(inTime(() => store.cancel(ids))).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringMatching(/another open transaction has changed.*Nothing was cancelled; try again/),
    });
    await tx.query("rollback");
    expect(await store.cancel(ids)).toEqual(["requested", "requested"]);
  });

  it("of a handler that timed out keeps its worker from nothing else", async () => {
    const held: { tx?: pg.PoolClient } = {};
    const pay = defineJob("pay", {
      timeout: 200,
      maxAttempts: 1,
      run: async (_input: null, ctx): Promise<void> => {
        held.tx = await openTransaction(queue);
        await ctx.complete("paid", { tx: held.tx });
        await new Promise(() => undefined);
      },
    });
    const quick = defineJob("quick", { run: (_input: null) => 1 });
    const queue = await openQueue(SERVER, { jobs: [pay, quick] });
    const { redrive } = queue;
    const { id } = await redrive.enqueue(pay, null);
    const worker = redrive.worker({ concurrency: 5, poll: 20, abortGrace: 50 });
    await worker.start();
    await expect.poll(() => held.tx).toBeDefined();
    await delay(400);
    await redrive.enqueueMany(
      quick,
      Array.from({ length: 100 }, () => null),
    );
    await expect.poll(() => worker.counts.completed, { timeout: SOON_MS }).toBe(100);
    await held.tx?.query("commit");
    await expect.poll(() => worker.counts.completed, { timeout: SOON_MS }).toBe(101);
    expect(await redrive.jobs.get(id)).toMatchObject({ state: "completed", result: '"paid"' });
    await worker.stop({ within: 0 });
  });
});

it("a key in an open transaction keeps only its own job from being forgotten, and nobody from cancelling it", async () => {
  const queue = await openQueue(SERVER);
  const { store } = queue;
  const keyed = newJob({ key: "k", digest: "d" });
  await store.enqueue([keyed, newJob({ key: "other", digest: "d" }), newJob()]);
  const runs = await take(store);
  const tx = await openTransaction(queue);
  const again = newJob({ key: "k", digest: "d" });
  expect(await store.within?.(tx).enqueue([again])).toMatchObject([{ kind: "duplicate" }]);
  const run = runs.find(({ id }) => id === keyed.id) as ClaimedJob;
  const answer = await inTime(() => settleAll(store, runs, () => forgotten()));
  expect(answer).toMatchObject({ stale: [], locked: [leaseOf(run)] });
  expect(await statesOf(store, runs)).toEqual(runs.map(({ id }) => (id === keyed.id ? "running" : null)));
  expect(await inTime(() => store.cancel([keyed.id]))).toEqual(["requested"]);
  await tx.query("commit");
  expect(await settleAll(store, [run], () => forgotten())).toMatchObject({ stale: [] });
  expect(await statesOf(store, [run])).toEqual([null]);
});
