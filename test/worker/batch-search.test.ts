// A batch of which nobody knows more than that it failed: the bad one is looked for half by half, and only that one pays.
import { describe, expect, it } from "vitest";
import type { RunBatch } from "../../src/jobs/batch-handler.ts";
import { allDone, drained, noted, sizes, spoiltBy } from "../support/noted-batches.ts";
import { createBench } from "../support/worker-bench.ts";

describe("a batch of unknown outcome", () => {
  it("of ten thousand finds seven bad ones within the bound", async () => {
    const bench = createBench(1, "sqlite");
    const bad = new Set<string>();
    const type = noted(spoiltBy(bad), { size: 100 });
    const ids: string[] = [];
    for (let at = 0; at < 10; at++) ids.push(...(await bench.addMany(1_000, type.job)));
    for (const at of [0, 99, 1_234, 1_235, 5_000, 7_777, 9_999]) bad.add(ids[at] as string);
    await drained(bench, type, 4);
    expect(await bench.store.count()).toMatchObject({ completed: 9_993, dead: 7 });
    const runs = sizes(type).length - bad.size;
    // The second try of each bad one is no part of the search. The slack: the run alone, and batches of who was put aside.
    expect(runs).toBeLessThanOrEqual(1.1 * (100 + 7 * Math.log2(100)));
  });

  it("of which every item is bad takes three runs for each at most, beside its second try", async () => {
    const bench = createBench(1, "sqlite");
    const type = noted(() => Promise.reject(new Error("spoilt")), { size: 64 });
    await bench.addMany(64, type.job);
    await drained(bench, type);
    expect(await bench.store.count()).toMatchObject({ dead: 64 });
    expect(sizes(type).length - 64).toBeLessThanOrEqual(3 * 64);
  });

  it("that failed once and would not fail again charges nobody, and is done in log2 runs more", async () => {
    const bench = createBench();
    let calls = 0;
    const type = noted(
      (items, context) => {
        if (++calls === 1) throw new Error("the network was down");
        return allDone(items, context);
      },
      { size: 64 },
    );
    const ids = await bench.addMany(64, type.job);
    await drained(bench, type);
    for (const id of ids) expect(await bench.read(id)).toMatchObject({ state: "completed", attempts: 0 });
    expect(sizes(type)).toEqual([64, 32, 16, 8, 4, 2, 1, 1]);
  });

  it("keeps one that failed alone alone", async () => {
    const bench = createBench();
    const bad = new Set<string>();
    const type = noted(spoiltBy(bad), { size: 4 });
    const [id] = (await bench.addMany(2, type.job)) as [string, string];
    bad.add(id);
    const { worker } = bench.hire([type.job], { concurrency: 1 });
    await bench.finish(worker.drain({ graceMs: 0 }), 1_000);
    expect(type.batches.filter((ids) => ids.includes(id)).map(({ length }) => length)).toEqual([2, 1, 1]);
    expect(await bench.read(id)).toMatchObject({ state: "dead", batchMost: 1 });
  });

  it("is searched no further by a worker that stops, and the next goes on in small ones", async () => {
    const bench = createBench(1, "sqlite");
    const bad = new Set<string>();
    const slowly: RunBatch = async (items, context) => {
      await bench.sleep(1_000);
      return spoiltBy(bad)(items, context);
    };
    const type = noted(slowly, { size: 16 });
    const ids = await bench.addMany(16, type.job);
    bad.add(ids[2] as string);
    const { worker } = await bench.employ([type.job], { concurrency: 1 });
    await bench.until(() => type.batches.length === 3);
    await bench.finish(worker.stop({ withinMs: 10_000 }), 20_000);
    expect(sizes(type)).toEqual([16, 8, 4]);
    for (const [at, id] of ids.entries())
      expect(await bench.read(id)).toMatchObject({ state: "queued", attempts: 0, batchMost: at < 4 ? 2 : 8 });
    await drained(bench, type);
    expect(await bench.store.count()).toMatchObject({ completed: 15, dead: 1 });
    expect(Math.max(...sizes(type).slice(3))).toBe(8);
  });

  it("whose half takes too long goes back by halves of that", async () => {
    const bench = createBench();
    const hanging = new Set<string>();
    const type = noted(
      async (items, context) => {
        if (items.length === 8) throw new Error("spoilt");
        for (const { id, signal } of items) {
          if (hanging.has(id)) await bench.sleep(3_600_000, signal);
          if (signal.aborted) throw signal.reason;
        }
        return allDone(items, context);
      },
      { size: 8 },
      { timeout: "1s" },
    );
    const ids = await bench.addMany(8, type.job);
    hanging.add(ids[1] as string);
    await drained(bench, type);
    expect(await bench.store.count()).toMatchObject({ completed: 7, dead: 1 });
    expect((await bench.read(ids[1] as string)).failure).toMatchObject({ name: "TimeoutError" });
    const tries = type.batches.filter((batch) => batch.includes(ids[1] as string));
    expect(tries.map(({ length }) => length)).toEqual([8, 4, 2, 1, 1]);
  });

  it("whose half answers after its time is searched no further, and those put aside pay nothing", async () => {
    const bench = createBench();
    const type = noted(
      async (items, context) => {
        if (items.length === 4) throw new Error("spoilt");
        // Deaf to the signal, and in time for its grace.
        if (type.batches.length === 2) await bench.sleep(1_500);
        else if (context.signal.aborted) throw new Error("called with a signal that has fired");
        return allDone(items, context);
      },
      { size: 4 },
      { timeout: "1s" },
    );
    const ids = await bench.addMany(4, type.job);
    await drained(bench, type);
    expect(await bench.store.count()).toMatchObject({ completed: 4, dead: 0 });
    for (const id of ids) expect(await bench.read(id)).toMatchObject({ attempts: 0 });
  });

  it("charges nobody for what a cancelled neighbour may have done", async () => {
    const bench = createBench();
    const type = noted(
      async (items, context) => {
        if (items.length === 1) return allDone(items, context);
        await bench.sleep(10_000);
        throw new Error("spoilt");
      },
      { size: 2 },
    );
    const [first, second] = (await bench.addMany(2, type.job)) as [string, string];
    await bench.employ([type.job], { heartbeat: "1s", lease: "6s" });
    await bench.advance(500);
    await bench.store.cancel([second]);
    await bench.advance(20_000);
    expect(await bench.read(first)).toMatchObject({ state: "completed", attempts: 0, batchMost: 1 });
    expect(await bench.read(second)).toMatchObject({ state: "cancelled" });
  });

  it("goes on in small batches in another worker, because the job remembers", async () => {
    const bench = createBench(1, "sqlite");
    const bad = new Set<string>();
    const type = noted(spoiltBy(bad), { size: 8 });
    const ids = await bench.addMany(8, type.job);
    bad.add(ids[0] as string);
    const first = await bench.employ([type.job], { concurrency: 1 });
    await bench.until(() => type.batches.length >= 1);
    await bench.finish(first.worker.stop());
    await drained(bench, type);
    expect(Math.max(...sizes(type).slice(1))).toBeLessThanOrEqual(4);
  });

  it("stays together where its service is to blame: the breaker hears of it and opens", async () => {
    const bench = createBench();
    let isDown = true;
    const type = noted(
      (items, context) => {
        if (isDown) throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
        return allDone(items, context);
      },
      { size: 8 },
      { service: "labels" },
    );
    const ids = await bench.addMany(8, type.job);
    const services = { labels: { breaker: { failures: 1, openFor: "30s" } } };
    await bench.employ([type.job], { concurrency: 1, services });
    await bench.advance(10_000);
    expect(sizes(type)).toEqual([8]);
    for (const id of ids) expect(await bench.read(id)).toMatchObject({ state: "queued", attempts: 0, batchMost: null });
    isDown = false;
    await bench.advance(120_000);
    expect(await bench.store.count()).toMatchObject({ completed: 8, dead: 0 });
  });
});
