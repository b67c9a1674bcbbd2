// Batches: jobs are put together, judged one by one, and a batch of unknown outcome is split until the guilty are alone.
import { describe, expect, it } from "vitest";
import { done, permanent, transient } from "../../src/core/item-outcome.ts";
import type { RunBatch } from "../../src/jobs/batch-handler.ts";
import { defineJob } from "../../src/jobs/define-job.ts";
import { allDone, drained, noted, sizes, spoiltBy, sum } from "../support/noted-batches.ts";
import { deaths, openByHand, QUICK } from "../support/pricing-scene.ts";
import { createBench } from "../support/worker-bench.ts";

describe.each(["memory", "sqlite"] as const)("a batch on %s", (store) => {
  it("holds up to its size, in the order of the jobs, one slot for each batch", async () => {
    const bench = createBench(1, store);
    let running = 0;
    let most = 0;
    const type = noted(
      async (items, context) => {
        most = Math.max(most, ++running);
        await bench.sleep(100);
        running -= 1;
        return allDone(items, context);
      },
      { size: 10 },
    );
    const ids = await bench.addMany(95, type.job);
    await drained(bench, type, 3);
    expect(sum(sizes(type))).toBe(95);
    expect(sizes(type).filter((size) => size === 10).length).toBeGreaterThanOrEqual(9);
    expect(type.batches.flat()).toEqual(ids);
    expect(most).toBe(3);
    expect(await bench.read(ids[94] as string)).toMatchObject({ state: "completed", result: JSON.stringify(ids[94]) });
  });

  it("settles each item by its own outcome and runs no good one again", async () => {
    const bench = createBench(1, store);
    const type = noted(
      (items) =>
        new Map(
          items.map(({ id, input, attempt }) => {
            if (input === "bad") return [id, permanent(new TypeError("no such code"))];
            if (input === "busy" && attempt === 1) return [id, transient("busy", { delay: "5s" })];
            return [id, done()];
          }),
        ),
      { size: 100 },
    );
    const good = await bench.addMany(20, type.job, { payload: '"good"' });
    const bad = await bench.add(type.job, { payload: '"bad"' });
    const busy = await bench.add(type.job, { payload: '"busy"' });
    await drained(bench, type);
    await bench.advance(5_000);
    await drained(bench, type);
    expect(type.batches).toEqual([[...good, bad, busy], [busy]]);
    expect(await bench.read(bad)).toMatchObject({
      state: "dead",
      attempts: 1,
      failure: { class: "permanent", name: "TypeError", message: "no such code" },
    });
    expect(await bench.read(busy)).toMatchObject({ state: "completed", attempts: 1, lastDelayMs: 5_000 });
  });

  it("keeps what was said on the way when it throws, and charges the only one left", async () => {
    const bench = createBench(1, store);
    const type = noted((items, context) => {
      for (const { id } of items.slice(0, -1)) context.done(id, "early");
      throw new Error("the last one");
    });
    const ids = await bench.addMany(5, type.job);
    await drained(bench, type);
    expect(await bench.read(ids[0] as string)).toMatchObject({ state: "completed", result: '"early"' });
    expect(await bench.read(ids[4] as string)).toMatchObject({
      state: "dead",
      attempts: 2,
      failure: { message: "the last one" },
    });
    expect(sizes(type)).toEqual([5, 1]);
  });

  it("suspects only what was started, and hands the others back", async () => {
    const bench = createBench(1, store);
    const bad = new Set<string>();
    const type = noted((items, context) => {
      for (const { id } of items) {
        context.started(id);
        if (bad.has(id)) throw new Error("died");
        context.done(id);
      }
    });
    const ids = await bench.addMany(10, type.job);
    bad.add(ids[3] as string);
    await drained(bench, type);
    const jobs = await Promise.all(ids.map((id) => bench.read(id)));
    expect(jobs.map(({ state }) => state).filter((state) => state === "completed")).toHaveLength(9);
    expect(jobs[3]).toMatchObject({ state: "dead", attempts: 2 });
    expect(jobs[9]).toMatchObject({ attempts: 0, batchMost: null });
    expect(type.batches.flat().filter((id) => id === ids[0])).toHaveLength(1);
  });

  it.each(["bisect", "single"] as const)("of unknown outcome charges nobody and is split: %s", async (onUnknown) => {
    const bench = createBench(1, store);
    const bad = new Set<string>();
    const slowly: RunBatch = async (items, context) => {
      await bench.sleep(1);
      return spoiltBy(bad)(items, context);
    };
    const type = noted(slowly, { size: 16, onUnknown });
    const ids = await bench.addMany(32, type.job);
    bad.add(ids[5] as string);
    await drained(bench, type);
    for (const [at, job] of (await Promise.all(ids.map((id) => bench.read(id)))).entries()) {
      expect(job).toMatchObject(at === 5 ? { state: "dead", attempts: 2 } : { state: "completed", attempts: 0 });
    }
    // Half by half until the sixth is alone, then the second batch, then whoever was put aside, and the sixth once more.
    const bisected = [16, 8, 4, 2, 1, 1, 16, 8, 2, 1];
    expect(sizes(type)).toEqual(onUnknown === "single" ? [16, 16, ...Array<number>(17).fill(1)] : bisected);
  });
});

describe("a batch", () => {
  it("waits for more jobs until it is full or its time is over", async () => {
    const bench = createBench();
    const type = noted(allDone, { size: 4, wait: "10s" });
    const { worker } = await bench.employ([type.job], { concurrency: 1 });
    await bench.addMany(3, type.job);
    await bench.advance(9_000);
    expect(type.batches).toEqual([]);
    await bench.add(type.job);
    await bench.advance(100);
    expect(sizes(type)).toEqual([4]);
    await bench.addMany(2, type.job);
    expect(await bench.until(() => worker.counts.completed === 6)).toBeGreaterThanOrEqual(9_900);
    expect(sizes(type)).toEqual([4, 2]);
  });

  it("gives back what waits for more when the worker stops", async () => {
    const bench = createBench();
    const type = noted(allDone, { size: 4, wait: "1m" });
    const { worker } = await bench.employ([type.job]);
    const id = await bench.add(type.job);
    await bench.advance(1_000);
    await bench.finish(worker.stop());
    expect(await bench.read(id)).toMatchObject({ state: "queued", attempts: 0, releases: 1 });
  });

  it("keeps to the concurrency of its type, counted in batches, also when it is split", async () => {
    const bench = createBench();
    const bad = new Set<string>();
    let running = 0;
    let most = 0;
    const type = noted(
      async (items, context) => {
        most = Math.max(most, ++running);
        await bench.sleep(50);
        running -= 1;
        return spoiltBy(bad)(items, context);
      },
      { size: 20, onUnknown: "single" },
      { concurrency: 2 },
    );
    const ids = await bench.addMany(100, type.job);
    bad.add(ids[0] as string);
    await drained(bench, type, 10);
    expect(most).toBe(2);
    expect(await bench.store.count()).toMatchObject({ completed: 99, dead: 1 });
  });

  it("has one timeout; who did not answer by then is run in smaller ones", async () => {
    const bench = createBench();
    const hanging = new Set<string>();
    const type = noted(
      async (items, context) => {
        for (const { id, signal } of items) {
          if (hanging.has(id)) await bench.sleep(3_600_000, signal);
          if (signal.aborted) throw signal.reason;
          context.done(id);
        }
      },
      { size: 4 },
      { timeout: "1s" },
    );
    const ids = await bench.addMany(4, type.job);
    hanging.add(ids[1] as string);
    await drained(bench, type);
    expect(await bench.store.count()).toMatchObject({ completed: 3, dead: 1 });
    expect((await bench.read(ids[1] as string)).failure).toMatchObject({ class: "timeout", name: "TimeoutError" });
    expect((await bench.read(ids[0] as string)).attempts).toBe(0);
  });

  it("tells one item that it was cancelled, and goes on with the others", async () => {
    const bench = createBench();
    const told: string[] = [];
    const type = noted(async (items) => {
      for (const { id, signal } of items) signal.addEventListener("abort", () => told.push(id));
      await bench.sleep(10_000);
      return new Map(items.filter(({ signal }) => !signal.aborted).map(({ id }) => [id, done()]));
    });
    const ids = await bench.addMany(3, type.job);
    await bench.employ([type.job], { heartbeat: "1s", lease: "6s" });
    await bench.advance(500);
    await bench.store.cancel([ids[1] as string]);
    await bench.advance(20_000);
    expect(told).toEqual([ids[1]]);
    expect(await bench.store.count()).toMatchObject({ completed: 2, cancelled: 1 });
  });

  it("tells its handler when none of its items is needed any more, and waits no longer for one that ignores it", async () => {
    const bench = createBench();
    const aborted: boolean[] = [];
    const type = noted(async (_items, { signal }) => {
      signal.addEventListener("abort", () => aborted.push(true));
      await bench.sleep(3_600_000);
    });
    const ids = await bench.addMany(2, type.job);
    await bench.employ([type.job], { heartbeat: "1s", lease: "6s" });
    await bench.advance(500);
    await bench.store.cancel([ids[0] as string]);
    await bench.advance(10_000);
    expect(aborted).toEqual([]);
    await bench.store.cancel([ids[1] as string]);
    await bench.advance(120_000);
    expect(aborted).toEqual([true]);
    expect(await bench.store.count()).toMatchObject({ cancelled: 2, running: 0 });
  });

  it("never holds two jobs of one group", async () => {
    const bench = createBench();
    const type = noted(allDone, { size: 10 });
    await bench.addMany(3, type.job, { group: "a", groupConcurrency: 3 });
    await bench.addMany(3, type.job, { group: "b", groupConcurrency: 3 });
    await drained(bench, type);
    expect(Math.max(...sizes(type))).toBeLessThanOrEqual(2);
    expect(sum(sizes(type))).toBe(6);
  });

  it("shares a worker with other types", async () => {
    const bench = createBench();
    const type = noted(allDone, { size: 10 });
    const plain = defineJob("plain", { run: () => "ok" });
    for (let at = 0; at < 10; at++) {
      await bench.addMany(20, type.job);
      await bench.addMany(20, plain);
    }
    const { worker } = bench.hire([type.job, plain], { concurrency: 4 });
    await bench.finish(worker.drain({ graceMs: 0 }));
    expect(worker.counts).toMatchObject({ completed: 400, released: 0 });
    expect(sizes(type).length).toBeLessThanOrEqual(30);
  });

  it("that died with its worker leaves suspects, which are run alone", async () => {
    const bench = createBench();
    const type = noted(() => new Promise<never>(() => undefined), { size: 5 });
    const ids = await bench.addMany(5, type.job);
    const victim = await bench.employ([type.job], { lease: "2s" });
    await bench.until(() => type.batches.length === 1);
    victim.actor.crash();
    const healthy = noted(allDone, { size: 5 });
    const { worker } = await bench.employ([healthy.job], { lease: "2s" });
    await bench.until(() => worker.counts.completed === 5);
    expect(sizes(healthy)).toEqual([1, 1, 1, 1, 1]);
    expect(await bench.read(ids[0] as string)).toMatchObject({ state: "completed", attempts: 1, crashes: 1 });
  });

  it("runs without the items that its open breaker does not let through, and these end as they are to end", async () => {
    const bench = createBench();
    const type = noted(allDone, { size: 4 }, { service: "pricing" });
    await openByHand(bench, null);
    const ids = await bench.addMany(4, type.job);
    const services = { pricing: { ...QUICK.pricing, whenOpen: "dead-letter" } } as const;
    const hired = await bench.employ([type.job], { services });
    await bench.advance(2_000);
    expect(deaths(hired)).toEqual(ids.map(() => "breaker"));
    expect(await bench.store.count()).toMatchObject({ dead: 4, running: 0 });
    expect(sum(sizes(type))).toBe(0);
  });

  it("says what is wrong with its definition and with what its handler returned", async () => {
    const runBatch = (): void => undefined;
    expect(() => defineJob("label", { batch: { size: 0 }, runBatch })).toThrow("label.batch.size: expected");
    expect(() => defineJob("label", { batch: { wait: "2m" }, runBatch })).toThrow("label.batch.wait: expected");
    expect(() => defineJob("label", { batch: { sise: 3 } as object, runBatch })).toThrow('did you mean "size"?');
    expect(() => defineJob("label", { run: () => 1, runBatch } as never)).toThrow("either run or runBatch");
    const bench = createBench();
    const type = noted((items) => [...items.map(() => done()), done()]);
    const id = await bench.add(type.job);
    const silent = noted(() => undefined);
    await drained(bench, type);
    expect((await bench.read(id)).failure?.message).toContain("runBatch: expected 1 outcomes");
    const other = await bench.add(silent.job);
    await drained(bench, silent);
    expect((await bench.read(other)).failure).toMatchObject({ name: "NoOutcome" });
  });
});
