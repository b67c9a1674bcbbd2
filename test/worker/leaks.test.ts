// Handlers that ignore their abort and go on: they count against their type's limit, and a drain does not wait for the
// slots that they hold.
import { describe, expect, it } from "vitest";
import { defineJob } from "../../src/jobs/define-job.ts";
import { counting } from "../support/counting-job.ts";
import { type Bench, createBench, forever } from "../support/worker-bench.ts";

/** A type with a limit whose handlers take no notice of their abort. */
const deaf = (bench: Bench, concurrency: number, ms: number) =>
  counting(bench, "deaf", ms, { concurrency, timeout: "1s", maxAttempts: 1 });

describe("the limit of a type", () => {
  it("holds while its handlers leak: what was settled over their heads still runs", async () => {
    const bench = createBench();
    const { job, seen } = deaf(bench, 2, 30_000);
    await bench.addMany(10, job);
    const { worker } = await bench.employ([job], { concurrency: 10, abortGrace: "1s" });
    await bench.until(() => worker.counts.leaked === 2);
    await bench.advance(20_000);
    expect(seen).toEqual({ now: 2, most: 2, started: 2 });
    expect((await bench.store.count()).queued).toBe(8);
  });

  it("is free again as soon as a leaked handler returns, and is never exceeded to the end", async () => {
    const bench = createBench();
    const { job, seen } = deaf(bench, 2, 5_000);
    await bench.addMany(8, job);
    const { worker } = await bench.employ([job], { concurrency: 10, abortGrace: "1s", poll: "1m" });
    // Four rounds of 5 s, none of which waits for a poll.
    await bench.until(() => worker.counts.dead === 8, 18_000);
    expect(seen).toMatchObject({ most: 2, started: 8 });
  });

  it("leaves the slots beside it to the others", async () => {
    const bench = createBench();
    const { job } = deaf(bench, 2, 600_000);
    const quick = defineJob("quick", { run: () => bench.sleep(100) });
    await bench.addMany(10, job);
    const { worker } = await bench.employ([job, quick], { concurrency: 4, abortGrace: "1s" });
    await bench.until(() => worker.counts.leaked === 2);
    await bench.addMany(20, quick);
    expect(await bench.until(() => worker.counts.completed === 20)).toBeLessThan(2_000);
  });
});

describe("a drain", () => {
  const stubborn = defineJob("stubborn", { timeout: "2s", maxAttempts: 1, run: forever });

  it("ends with an error line when every slot is lost, and leaves what waits to others", async () => {
    const bench = createBench();
    await bench.addMany(5, stubborn);
    const { worker, said } = bench.hire([stubborn], { concurrency: 2, abortGrace: "1s" });
    const from = bench.world.now;
    const counts = await bench.finish(worker.drain({ graceMs: 1_000 }), 60_000);
    expect(bench.world.now - from).toBeLessThan(10_000);
    expect(counts).toMatchObject({ claimed: 2, dead: 2, leaked: 2 });
    expect(await bench.store.count()).toMatchObject({ queued: 3, running: 0, dead: 2 });
    expect(said("every slot is lost").map(({ level }) => level)).toEqual(["error"]);
    expect(await bench.store.workers()).toEqual([]);
  });

  it("goes on while one slot is left", async () => {
    const bench = createBench();
    const quick = defineJob("quick", { run: () => bench.sleep(100) });
    await bench.add(stubborn, { priority: 9 });
    await bench.addMany(100, quick);
    const { worker, said } = bench.hire([stubborn, quick], { concurrency: 2, abortGrace: "1s" });
    const counts = await bench.finish(worker.drain({ graceMs: 1_000 }), 60_000);
    expect(counts).toMatchObject({ completed: 100, dead: 1, leaked: 1 });
    expect(said("every slot is lost")).toEqual([]);
  });
});
