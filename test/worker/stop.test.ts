// The end of a worker: what runs may finish, what waits goes back, nothing is charged, no row is left.
import { describe, expect, it } from "vitest";
import { defineJob, type JobContext } from "../../src/jobs/define-job.ts";
import { around, createBench, cuttable, forever, unavailable } from "../support/worker-bench.ts";

function polite(_input: unknown, { signal }: JobContext): Promise<never> {
  return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
}

describe("a stop", () => {
  it("does not wait for a worker that cannot register", async () => {
    const bench = createBench();
    const through = around(bench.store, async (verb, next) => {
      if (verb === "register") throw unavailable();
      return next();
    });
    const { worker, heard } = bench.hire([], { through });
    const started = worker.start();
    await bench.advance(30_000);
    const from = bench.world.now;
    await bench.finish(worker.stop());
    await bench.finish(started);
    expect(bench.world.now - from).toBeLessThanOrEqual(1_000);
    expect(heard("worker.started")).toEqual([]);
  });

  it("lets running work finish within its time and claims no more", async () => {
    const bench = createBench();
    const job = defineJob("thumbnail", { run: () => bench.sleep(5_000) });
    await bench.addMany(8, job);
    const { worker, events } = await bench.employ([job], { concurrency: 3 });
    await bench.advance(1_000);
    const from = bench.world.now;
    await bench.finish(worker.stop({ withinMs: 25_000 }));
    expect(bench.world.now - from).toBe(4_000);
    expect(worker.counts).toMatchObject({ completed: 3, claimed: 3 });
    expect(await bench.store.count()).toMatchObject({ completed: 3, queued: 5, running: 0 });
    expect(await bench.store.workers()).toEqual([]);
    expect(events.at(-1)).toEqual({ kind: "worker.stopped", worker: worker.id });
  });

  it("gives back at once, uncharged, what was fetched ahead", async () => {
    const bench = createBench();
    const job = defineJob("mixed", { run: (input) => bench.sleep(input === "long" ? 5_000 : 1) });
    await bench.addMany(300, job, { payload: '"short"' });
    await bench.add(job, { payload: '"long"' });
    const ids = await bench.addMany(5, job, { payload: '"short"' });
    const { worker } = await bench.employ([job], { concurrency: 1 });
    await bench.until(() => worker.counts.claimed === 306 && worker.counts.completed === 300);
    const stopped = worker.stop();
    await bench.advance(1);
    for (const id of ids) {
      expect(await bench.read(id)).toMatchObject({ state: "queued", attempts: 0, crashes: 0, releases: 1 });
    }
    await bench.finish(stopped);
    expect(await bench.store.count()).toMatchObject({ completed: 301, queued: 5, running: 0 });
  });

  it("aborts what still runs after its time and releases it uncharged", async () => {
    const bench = createBench();
    const reasons: unknown[] = [];
    const job = defineJob("long", {
      run: (input, context) => {
        context.signal.addEventListener("abort", () => reasons.push(String(context.signal.reason)));
        return polite(input, context);
      },
    });
    const ids = await bench.addMany(3, job);
    const { worker } = await bench.employ([job]);
    await bench.advance(1_000);
    const from = bench.world.now;
    await bench.finish(worker.stop({ withinMs: 10_000 }));
    expect(bench.world.now - from).toBe(10_000);
    expect(reasons).toEqual(Array(3).fill("AbortError: The worker is stopping."));
    for (const id of ids) expect(await bench.read(id)).toMatchObject({ state: "queued", attempts: 0, crashes: 0 });
    expect(worker.counts.released).toBe(3);
    expect(await bench.store.workers()).toEqual([]);
  });

  it("releases over its head, uncharged, what ignores the abort", async () => {
    const bench = createBench();
    const job = defineJob("stubborn", { run: forever });
    const id = await bench.add(job);
    const { worker } = await bench.employ([job]);
    await bench.advance(1_000);
    const from = bench.world.now;
    await bench.finish(worker.stop({ withinMs: 2_000 }));
    expect(bench.world.now - from).toBeLessThanOrEqual(4_000);
    expect(await bench.read(id)).toMatchObject({ state: "queued", attempts: 0, crashes: 0 });
    expect(await bench.store.workers()).toEqual([]);
  });

  it.each(["alone", "in a batch"])("settles once what returns after it was released, %s", async (how) => {
    const bench = createBench();
    const late = (): Promise<never> => bench.sleep(10_000).then(() => Promise.reject(new Error("too late")));
    const job =
      how === "alone" ? defineJob("late", { run: late }) : defineJob("late", { batch: { size: 2 }, runBatch: late });
    const ids = await bench.addMany(2, job);
    const hired = await bench.employ([job]);
    await bench.advance(1_000);
    await bench.finish(hired.worker.stop({ withinMs: 2_000 }));
    const { lines } = hired;
    const [counts, told] = [{ ...hired.worker.counts }, lines.length];
    await bench.advance(20_000);
    expect({ counts: hired.worker.counts, lines: lines.slice(told) }).toEqual({ counts, lines: [] });
    for (const id of ids) expect(await bench.read(id)).toMatchObject({ state: "queued", attempts: 0, releases: 1 });
  });

  it("counts a handler that completes after the abort as completed", async () => {
    const bench = createBench();
    const job = defineJob("last-words", {
      run: async (_input, { signal }) => {
        await bench.sleep(60_000, signal);
        await bench.sleep(500);
        return "done";
      },
    });
    const id = await bench.add(job);
    const { worker } = await bench.employ([job]);
    await bench.advance(1_000);
    await bench.finish(worker.stop({ withinMs: 2_000 }));
    expect(await bench.read(id)).toMatchObject({ state: "completed", result: '"done"' });
  });

  it("keeps the heartbeat until the end", async () => {
    const bench = createBench();
    const job = defineJob("long", { run: () => bench.sleep(20_000) });
    const id = await bench.add(job);
    const { worker } = await bench.employ([job], { lease: "3s" });
    await bench.employ([job], { lease: "3s" });
    await bench.advance(1_000);
    await bench.finish(worker.stop({ withinMs: 25_000 }));
    expect(await bench.read(id)).toMatchObject({ state: "completed", epoch: 1, crashes: 0 });
  });

  it("may be called twice, and of a worker that was never started", async () => {
    const bench = createBench();
    const job = defineJob("long", { run: () => bench.sleep(3_000) });
    await bench.add(job);
    const hired = await bench.employ([job]);
    await bench.advance(100);
    await bench.finish(Promise.all([hired.worker.stop(), hired.worker.stop()]));
    await bench.finish(hired.worker.stop());
    expect(hired.heard("worker.stopped")).toHaveLength(1);
    await bench.finish(bench.hire([job]).worker.stop());
    expect(await bench.store.workers()).toEqual([]);
  });

  it("asked for a second time with less time hurries", async () => {
    const bench = createBench();
    const job = defineJob("long", { run: polite });
    const id = await bench.add(job);
    const { worker } = await bench.employ([job]);
    await bench.advance(1_000);
    const first = worker.stop({ withinMs: 25_000 });
    await bench.advance(1_000);
    const from = bench.world.now;
    await bench.finish(Promise.all([first, worker.stop({ withinMs: 0 })]));
    expect(bench.world.now - from).toBeLessThanOrEqual(2_000);
    expect(await bench.read(id)).toMatchObject({ state: "queued", attempts: 0, crashes: 0 });
  });

  it("in the middle of a claim gives back what the claim brings, uncharged and uncalled", async () => {
    const bench = createBench();
    let called = 0;
    const job = defineJob("thumbnail", {
      run: () => {
        called += 1;
        return forever();
      },
    });
    const through = around(bench.store, async (verb, next) => {
      const answer = await next();
      if (verb === "claim") await bench.sleep(50);
      return answer;
    });
    const ids = await bench.addMany(3, job);
    const { worker } = await bench.employ([job], { through });
    await bench.advance(20);
    expect((await bench.store.count()).running).toBe(3);
    await bench.finish(worker.stop());
    await bench.employ([defineJob("somebody-else", { run: () => 1 })], { lease: "2s" });
    await bench.advance(10_000);
    expect(called).toBe(0);
    for (const id of ids) expect(await bench.read(id)).toMatchObject({ state: "queued", attempts: 0, crashes: 0 });
    expect(await bench.store.workers()).toHaveLength(1);
  });

  it("right after the start leaves nothing behind, and no life afterwards", async () => {
    const bench = createBench();
    const through = around(bench.store, async (verb, next) => {
      if (verb === "register") await bench.sleep(50);
      return next();
    });
    const hired = bench.hire([defineJob("thumbnail", { run: () => 1 })], { through });
    const started = hired.worker.start();
    await bench.advance(10);
    await bench.finish(Promise.all([hired.worker.stop(), started]));
    await bench.advance(60_000);
    expect(await bench.store.workers()).toEqual([]);
    expect(hired.heard("worker.given_up")).toEqual([]);
    expect(hired.events.at(-1)?.kind ?? "worker.stopped").toBe("worker.stopped");
  });
});

describe("a stop while the store is away", () => {
  it("writes everything when the store comes back in time, and nothing is charged", async () => {
    const bench = createBench();
    const line = cuttable(bench.store);
    const quick = defineJob("quick", { run: () => bench.sleep(2_000) });
    const long = defineJob("long", { run: polite });
    const [done, back] = [await bench.add(quick), await bench.add(long)];
    const { worker } = await bench.employ([quick, long], { through: line.store });
    await bench.advance(1_000);
    line.away = true;
    const stopped = worker.stop({ withinMs: 5_000 });
    await bench.advance(8_000);
    line.away = false;
    await bench.finish(stopped);
    expect(await bench.read(done)).toMatchObject({ state: "completed", attempts: 0 });
    expect(await bench.read(back)).toMatchObject({ state: "queued", attempts: 0, crashes: 0 });
    expect(await bench.store.workers()).toEqual([]);
  });

  it("ends in the end when the store does not come back, and says what was not written", async () => {
    const bench = createBench();
    const line = cuttable(bench.store);
    const job = defineJob("quick", { run: () => bench.sleep(2_000) });
    await bench.add(job);
    const { worker, lines } = await bench.employ([job], { through: line.store });
    await bench.advance(1_000);
    line.away = true;
    const from = bench.world.now;
    await bench.finish(worker.stop({ withinMs: 5_000 }));
    expect(bench.world.now - from).toBeLessThanOrEqual(12_000);
    // Nobody has the job but us; a line that says so would send people on the wrong track.
    expect(lines.filter(({ message }) => message.includes("lease lost"))).toEqual([]);
  });
});
