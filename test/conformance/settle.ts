// What each verdict leaves on a job, and that a set of verdicts is applied each for itself.
import { expect } from "vitest";
import { LANE_KINDS } from "../../src/core/lane.ts";
import { newJob } from "../support/new-job.ts";
import { dueLanes, end, finish, leaseOf, read, signUp, start, take, takeOne } from "../support/runs.ts";
import { cancel, complete, crashed, dead, failure, forgotten, release, retry } from "../support/verdicts.ts";
import type { Suite } from "./suite.ts";

/** Tests of settle with current leases. */
export function settleFacts({ fact, timed }: Suite): void {
  timed("completes a run with its result", async ({ store, clock }) => {
    const run = await start(store);
    clock.now += 40;
    const job = await end(store, run, complete('{"thumbnail_key":"a.png"}'));
    expect(job).toMatchObject({
      state: "completed",
      result: '{"thumbnail_key":"a.png"}',
      failure: null,
      finishedAt: clock.now,
      updatedAt: clock.now,
      startedAt: clock.now - 40,
      attempts: 0,
      epoch: run.epoch,
    });
    expect(await store.history(run.id)).toEqual([]);
    expect((await store.deadLetters({ limit: 10 })).items).toEqual([]);
  });

  fact("answers no job as locked that nobody holds in a transaction", async ({ store }) => {
    const [one, other] = [await start(store), await start(store)];
    const settlements = [one, other].map((run) => ({ ...leaseOf(run), verdict: complete() }));
    for (const stale of [0, 2]) {
      const answer = await store.settle({ settlements });
      expect([answer.stale.length, answer.locked ?? []]).toEqual([stale, []]);
    }
  });

  fact("keeps the failure and the stack of each run that is settled with others", async ({ store }) => {
    const worker = await signUp(store);
    const failures = [
      failure({ stack: "Error: a\n    at one" }),
      failure({ stack: "Error: a\n    at one" }),
      failure({ stack: "Error: a\n    at other" }),
      failure({ stack: null }),
      failure({ message: "another", stack: "Error: a\n    at one" }),
      failure({ stack: "Error: a\n    at one" }),
    ];
    for (const verdict of [retry, dead]) {
      const runs = [];
      for (const each of failures) runs.push({ run: await start(store, {}, worker), failure: each });
      const settlements = runs.map((each) => ({ ...leaseOf(each.run), verdict: verdict({ failure: each.failure }) }));
      expect((await store.settle({ settlements, worker })).stale).toEqual([]);
      for (const { run, failure: own } of runs) {
        expect((await read(store, run.id)).failure).toEqual(own);
        expect((await store.history(run.id)).map((record) => record.failure)).toEqual([own]);
      }
    }
  });

  fact("completes a run without a result", async ({ store }) => {
    expect(await finish(store, complete(null))).toMatchObject({ state: "completed", result: null });
  });

  fact("completes a run of which nothing is kept, and frees the lease and the counts with it", async ({ store }) => {
    const worker = await signUp(store);
    const [gone, stays] = [await start(store, {}, worker), await start(store, {}, worker)];
    const settlements = [
      { ...leaseOf(gone), verdict: forgotten() },
      { ...leaseOf(stays), verdict: complete() },
      { ...leaseOf(gone), verdict: complete() },
    ];
    expect((await store.settle({ settlements, worker, startedThrough: 1 })).stale).toEqual([leaseOf(gone)]);
    expect((await store.get([gone.id, stays.id])).map((job) => job?.state ?? null)).toEqual([null, "completed"]);
    expect(await store.count()).toEqual({ queued: 0, running: 0, completed: 1, dead: 0, cancelled: 0 });
    expect(await store.held(worker)).toEqual([]);
    const again = [{ ...leaseOf(stays), verdict: forgotten() }];
    expect((await store.settle({ settlements: again })).stale).toEqual([leaseOf(stays)]);
    expect((await read(store, stays.id)).state).toBe("completed");
  });

  fact("takes the history along where nothing is kept", async ({ store }) => {
    const run = await start(store);
    await end(store, run, retry());
    const again = await takeOne(store, run.id);
    expect((await store.settle({ settlements: [{ ...leaseOf(again), verdict: forgotten() }] })).stale).toEqual([]);
    expect(await store.get([run.id])).toEqual([null]);
    expect(await store.history(run.id)).toEqual([]);
  });

  fact("keeps the key of a job of which nothing else is kept", async ({ store }) => {
    const keyed = newJob({ key: "k", digest: "d" });
    await store.enqueue([keyed]);
    const run = await takeOne(store, keyed.id);
    await store.settle({ settlements: [{ ...leaseOf(run), verdict: forgotten() }] });
    const [same, other] = [newJob({ key: "k", digest: "d" }), newJob({ key: "k", digest: "e" })];
    const answers = await store.enqueue([same, other]);
    expect(answers).toEqual([
      { kind: "duplicate", id: keyed.id, state: null },
      { kind: "conflict", id: keyed.id },
    ]);
  });

  timed("retries a failed run after its delay", async ({ store, clock }) => {
    const run = await start(store);
    clock.now += 40;
    const why = failure({ class: "network", message: "no route", code: "ENETUNREACH" });
    const job = await end(store, run, retry({ delayMs: 5_000, failure: why }));
    expect(job).toMatchObject({
      state: "queued",
      runAt: clock.now + 5_000,
      lastDelayMs: 5_000,
      attempts: 1,
      crashes: 0,
      releases: 0,
      finishedAt: null,
      updatedAt: clock.now,
      dueAt: run.dueAt,
      epoch: run.epoch,
      generation: run.generation,
      result: null,
    });
    expect(job.failure).toStrictEqual(why);
    clock.now += 4_999;
    expect(await take(store)).toEqual([]);
    clock.now += 1;
    expect(await take(store)).toMatchObject([{ id: run.id, epoch: run.epoch + 1, attempts: 1 }]);
  });

  timed("records the failed run in the history", async ({ store, clock }) => {
    const worker = await signUp(store);
    const run = await start(store, {}, worker);
    clock.now += 40;
    await end(store, run, retry({ delayMs: 5_000 }));
    expect(await store.history(run.id)).toStrictEqual([
      {
        jobId: run.id,
        key: null,
        generation: run.generation,
        epoch: run.epoch,
        attempt: 1,
        worker,
        release: "1.2.3",
        startedAt: clock.now - 40,
        endedAt: clock.now,
        delayMs: 5_000,
        failure: failure(),
      },
    ]);
  });

  for (const kind of LANE_KINDS) {
    fact(`puts a retry into the ${kind} lane when the verdict says so`, async ({ store }) => {
      const job = await finish(store, retry({ lane: kind }), { priority: 3, tenant: "t" });
      expect(await dueLanes(store)).toMatchObject([{ type: job.type, kind, priority: 3, tenant: "t" }]);
    });
  }

  for (const attempts of [0, 1] as const) {
    fact(`charges ${attempts} attempts and one crash where the worker died`, async ({ store }) => {
      const run = await start(store);
      const job = await end(store, run, crashed({ charge: { attempts, crashes: 1 } }));
      expect(job).toMatchObject({ state: "queued", attempts, crashes: 1 });
      expect(await store.history(run.id)).toMatchObject([{ attempt: attempts, epoch: run.epoch }]);
    });
  }

  timed("releases a run uncharged", async ({ store, clock }) => {
    const run = await start(store);
    clock.now += 40;
    const job = await end(store, run, release({ delayMs: 700, reason: "breaker" }));
    expect(job).toMatchObject({
      state: "queued",
      runAt: clock.now + 700,
      releases: 1,
      attempts: 0,
      crashes: 0,
      failure: null,
      finishedAt: null,
    });
    expect(await store.history(run.id)).toEqual([]);
    clock.now += 700;
    expect(await dueLanes(store)).toMatchObject([{ kind: "first" }]);
  });

  fact("counts releases and keeps the charges of earlier runs", async ({ store }) => {
    const run = await start(store);
    await end(store, run, retry());
    await end(store, await takeOne(store, run.id), release());
    const job = await end(store, await takeOne(store, run.id), release());
    expect(job).toMatchObject({ releases: 2, attempts: 1, epoch: run.epoch + 2 });
    expect(job.failure).toStrictEqual(failure());
    expect(await dueLanes(store)).toMatchObject([{ kind: "retry" }]);
  });

  fact("keeps how small a batch with the job may be, until the job is redriven", async ({ store }) => {
    const run = await start(store, { maxAttempts: 3 });
    const split = await end(store, run, release({ reason: "split", batchMost: 5 }));
    expect(split).toMatchObject({ batchMost: 5, releases: 1 });
    const again = await takeOne(store, run.id);
    expect(again.batchMost).toBe(5);
    expect(await end(store, again, release())).toMatchObject({ batchMost: 5, releases: 2 });
    expect(await end(store, await takeOne(store, run.id), retry())).toMatchObject({ batchMost: 5, attempts: 1 });
    const alone = await end(store, await takeOne(store, run.id), retry({ batchMost: 1 }));
    expect(alone).toMatchObject({ batchMost: 1, attempts: 2 });
    await end(store, await takeOne(store, run.id), dead());
    await store.redrive([{ id: run.id, generation: 1, delayMs: 0 }]);
    expect(await read(store, run.id)).toMatchObject({ batchMost: null });
    expect((await takeOne(store, run.id)).batchMost).toBe(null);
  });

  timed("keeps the delay before the last try when a run is released", async ({ store, clock }) => {
    const run = await start(store);
    await end(store, run, retry({ delayMs: 5_000 }));
    clock.now += 5_000;
    const job = await end(store, await takeOne(store, run.id), release({ delayMs: 70 }));
    expect(job).toMatchObject({ lastDelayMs: 5_000, runAt: clock.now + 70 });
  });

  timed("buries a run with reason, failure and charges, all together", async ({ store, clock }) => {
    const run = await start(store, { maxAttempts: 1 });
    clock.now += 40;
    const why = failure({ class: "validation", severity: "error" });
    const job = await end(store, run, dead({ reason: "permanent", failure: why }));
    expect(job).toMatchObject({ state: "dead", attempts: 1, crashes: 0, finishedAt: clock.now });
    expect(job.failure).toStrictEqual(why);
    expect(await store.history(run.id)).toMatchObject([
      { attempt: 1, delayMs: null, endedAt: clock.now, failure: why },
    ]);
    expect((await store.deadLetters({ limit: 10 })).items).toStrictEqual([
      {
        job,
        generation: job.generation,
        reason: "permanent",
        failure: why,
        attempts: 1,
        crashes: 0,
        release: "1.2.3",
        diedAt: clock.now,
        redrivenAt: null,
        redrive: null,
        outcome: null,
        outcomeAt: null,
        supersededBy: null,
      },
    ]);
  });

  timed("cancels a run that stopped", async ({ store, clock }) => {
    const run = await start(store);
    clock.now += 40;
    const job = await end(store, run, cancel());
    expect(job).toMatchObject({ state: "cancelled", finishedAt: clock.now, attempts: 0 });
    expect((await store.deadLetters({ limit: 10 })).items).toEqual([]);
    expect(await store.history(run.id)).toEqual([]);
  });

  fact("names the worker that ran the job last", async ({ store }) => {
    for (const verdict of [complete(), retry(), release(), dead(), cancel()]) {
      const run = await start(store);
      expect(run.worker).not.toBeNull();
      expect((await end(store, run, verdict)).worker, verdict.kind).toBe(run.worker);
    }
  });

  fact("keeps the last failure on a job that completes in the end", async ({ store }) => {
    const run = await start(store);
    await end(store, run, retry());
    const job = await end(store, await takeOne(store, run.id), complete("1"));
    expect(job).toMatchObject({ state: "completed", attempts: 1, result: "1" });
    expect(job.failure).toStrictEqual(failure());
    expect(await store.history(run.id)).toHaveLength(1);
  });

  fact("adds up charges over runs", async ({ store }) => {
    const run = await start(store);
    await end(store, run, retry());
    await end(store, await takeOne(store, run.id), crashed({ charge: { attempts: 0, crashes: 1 } }));
    const charge = { attempts: 1, crashes: 1 } as const;
    const job = await end(store, await takeOne(store, run.id), dead({ reason: "crashed", charge }));
    expect(job).toMatchObject({ attempts: 2, crashes: 2 });
    expect((await store.history(run.id)).map(({ attempt, epoch }) => [attempt, epoch - run.epoch])).toEqual([
      [1, 0],
      [1, 1],
      [2, 2],
    ]);
  });

  timed("applies many verdicts together and answers its own time", async ({ store, clock }) => {
    const verdicts = [complete(), retry(), release(), dead(), cancel()];
    const runs = [];
    for (const verdict of verdicts) runs.push({ run: await start(store), verdict });
    const settlements = runs.map(({ run, verdict }) => ({ ...leaseOf(run), verdict }));
    expect(await store.settle({ settlements })).toEqual({ stale: [], now: clock.now });
    const states = (await store.get(runs.map(({ run }) => run.id))).map((job) => job?.state);
    expect(states).toEqual(["completed", "queued", "queued", "dead", "cancelled"]);
  });

  fact("applies a set of no verdicts", async ({ store }) => {
    expect((await store.settle({ settlements: [] })).stale).toEqual([]);
  });

  fact("applies nothing of a set with a delay out of range", async ({ store }) => {
    const run = await start(store);
    const other = await start(store);
    for (const delayMs of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      for (const verdict of [retry({ delayMs }), release({ delayMs })]) {
        const settlements = [
          { ...leaseOf(other), verdict: complete() },
          { ...leaseOf(run), verdict },
        ];
        await expect(store.settle({ settlements })).rejects.toMatchObject({ code: "invalid_argument" });
      }
    }
    expect(await read(store, other.id)).toMatchObject({ state: "running" });
    expect(await end(store, run, complete())).toMatchObject({ state: "completed" });
  });

  fact("settles a thousand runs at once", async ({ store }) => {
    await store.enqueue(Array.from({ length: 1_000 }, () => newJob()));
    const runs = await take(store);
    const settlements = runs.map((run) => ({ ...leaseOf(run), verdict: complete() }));
    expect((await store.settle({ settlements })).stale).toEqual([]);
    expect((await store.count()).completed).toBe(1_000);
  });
}
