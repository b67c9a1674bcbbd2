// Drain: works until there is nothing left to do, and then stops by itself.
import { describe, expect, it } from "vitest";
import { fixed } from "../../src/core/backoff.ts";
import { defineJob } from "../../src/jobs/define-job.ts";
import { createBench, cuttable, forever } from "../support/worker-bench.ts";

const GRACE = { graceMs: 1_000 };

describe("a drain", () => {
  it("returns soon when there is nothing to do", async () => {
    const bench = createBench();
    const hired = bench.hire([defineJob("thumbnail", { run: () => 1 })]);
    const from = bench.world.now;
    const counts = await bench.finish(hired.worker.drain(GRACE));
    expect(bench.world.now - from).toBeLessThan(1_000);
    expect(counts).toMatchObject({ claimed: 0, completed: 0, retried: 0, dead: 0, released: 0 });
    expect(await bench.store.workers()).toEqual([]);
  });

  it("runs everything that is due and counts it", async () => {
    const bench = createBench();
    const fine = defineJob("fine", { run: () => bench.sleep(100) });
    const failing = defineJob("failing", {
      maxAttempts: 2,
      backoff: fixed(500),
      run: () => {
        throw new Error("never");
      },
    });
    await bench.addMany(25, fine);
    await bench.addMany(3, failing);
    const { worker } = bench.hire([fine, failing], { concurrency: 4 });
    const counts = await bench.finish(worker.drain(GRACE));
    expect(counts).toMatchObject({ claimed: 31, completed: 25, retried: 3, dead: 3, released: 0, stale: 0 });
    expect(await bench.store.count()).toMatchObject({ queued: 0, running: 0, completed: 25, dead: 3 });
  });

  it("waits for what falls due within the grace, and not for what comes later", async () => {
    const bench = createBench();
    const job = defineJob("thumbnail", { run: () => 1 });
    await bench.add(job, { delayMs: 900 });
    await bench.add(job, { delayMs: 1_700 });
    const late = await bench.add(job, { delayMs: 60_000 });
    const { worker } = bench.hire([job]);
    const counts = await bench.finish(worker.drain(GRACE));
    expect(counts.completed).toBe(2);
    expect((await bench.read(late)).state).toBe("queued");
  });

  it("sees a retry that a run leaves behind at the very end", async () => {
    const bench = createBench();
    const job = defineJob("thumbnail", {
      backoff: fixed(900),
      run: (_input, { attempt }) => {
        if (attempt < 6) throw new Error("again");
      },
    });
    await bench.add(job);
    const { worker } = bench.hire([job], { poll: "10s" });
    expect(await bench.finish(worker.drain(GRACE))).toMatchObject({ completed: 1, retried: 5 });
  });

  it("leaves alone what is paused, what others serve, and what is in the hands of living workers", async () => {
    const bench = createBench();
    const job = defineJob("thumbnail", { run: () => 1 });
    const paused = defineJob("paused", { run: () => 1 });
    const held = defineJob("held", { run: forever });
    await bench.add(held);
    await bench.employ([held]);
    await bench.store.pause({ kind: "type", name: "paused" }, { forMs: null, reason: "test" });
    await bench.add(paused);
    await bench.add("theirs");
    await bench.addMany(3, job);
    const { worker } = bench.hire([job, paused]);
    const from = bench.world.now;
    expect(await bench.finish(worker.drain(GRACE))).toMatchObject({ completed: 3, claimed: 3 });
    expect(bench.world.now - from).toBeLessThan(2_000);
  });

  it("takes over the runs of a worker that died long ago, waiting at most a lease and saying so", async () => {
    const bench = createBench();
    const ids: string[] = [];
    const dying = defineJob("thumbnail", { run: forever });
    const job = defineJob("thumbnail", { run: () => "taken over" });
    ids.push(...(await bench.addMany(3, job)));
    const victim = await bench.employ([dying], { lease: "10s", heartbeat: "2s" });
    await bench.advance(3_000);
    victim.actor.crash();
    await bench.advance(8_000);
    const hired = bench.hire([job], { lease: "10s", heartbeat: "2s" });
    const from = bench.world.now;
    const counts = await bench.finish(hired.worker.drain(GRACE));
    expect(counts.completed).toBe(3);
    expect(bench.world.now - from).toBeLessThanOrEqual(12_500);
    // At a level that is heard where a line for every record is not.
    expect(hired.said("waiting for runs whose worker seems to have died")).toMatchObject([{ level: "warn" }]);
    for (const id of ids) expect(await bench.read(id)).toMatchObject({ state: "completed", crashes: 1 });
  });

  it("waits for as long as the lease of the worker that died, where its own is shorter", async () => {
    const bench = createBench();
    const dying = defineJob("thumbnail", { run: forever });
    const job = defineJob("thumbnail", { run: () => "taken over" });
    await bench.addMany(3, job);
    const victim = await bench.employ([dying], { lease: "30s", heartbeat: "10s" });
    await bench.advance(100);
    victim.actor.crash();
    await bench.advance(40_000);
    const { worker } = bench.hire([job], { lease: "3s" });
    const counts = await bench.finish(worker.drain(GRACE));
    expect(counts.completed).toBe(3);
  });

  it("does not wait for a worker that beats as seldom as its long lease lets it", async () => {
    const bench = createBench();
    await bench.add("elsewhere");
    await bench.employ([defineJob("elsewhere", { run: forever })], { lease: "60s", heartbeat: "20s" });
    await bench.advance(19_000);
    const { worker } = bench.hire([defineJob("thumbnail", { run: () => 1 })], { lease: "3s" });
    const from = bench.world.now;
    await bench.finish(worker.drain(GRACE));
    expect(bench.world.now - from).toBeLessThan(1_000);
  });

  it("takes over the runs of a process of this host that died a moment ago", async () => {
    const bench = createBench();
    const dying = defineJob("thumbnail", { run: forever });
    const job = defineJob("thumbnail", { run: () => "taken over" });
    await bench.addMany(3, job);
    const victim = await bench.employ([dying], { host: "here" });
    await bench.advance(100);
    victim.actor.crash();
    const { worker } = bench.hire([job], { host: "here" });
    const counts = await bench.finish(worker.drain(GRACE));
    expect(counts.completed).toBe(3);
    expect(await bench.store.count()).toMatchObject({ completed: 3, running: 0 });
  });

  it("gives up waiting for a worker that is only late, after a lease and two seconds", async () => {
    const bench = createBench();
    const job = defineJob("thumbnail", { run: forever });
    await bench.add(job);
    const slow = await bench.employ([job], { lease: "5m", heartbeat: "1m" });
    await bench.advance(50_000);
    const { worker } = bench.hire([job], { lease: "10s", heartbeat: "2s" });
    const from = bench.world.now;
    await bench.finish(worker.drain(GRACE));
    expect(bench.world.now - from).toBeLessThanOrEqual(13_000);
    expect((await bench.store.list({ limit: 1 })).items[0]?.worker).toBe(slow.worker.id);
  });

  it("waits for a store that is away and goes on by itself", async () => {
    const bench = createBench();
    const line = cuttable(bench.store);
    const job = defineJob("thumbnail", { run: () => bench.sleep(100) });
    await bench.addMany(50, job);
    const { worker } = bench.hire([job], { concurrency: 2, through: line.store });
    const drained = worker.drain(GRACE);
    await bench.advance(500);
    line.away = true;
    await bench.advance(10_000);
    line.away = false;
    expect(await bench.finish(drained)).toMatchObject({ completed: 50, stale: 0 });
  });

  it("that is stopped returns", async () => {
    const bench = createBench();
    const job = defineJob("thumbnail", { run: () => bench.sleep(1_000) });
    await bench.addMany(50, job);
    const { worker } = bench.hire([job], { concurrency: 2 });
    const drained = worker.drain(GRACE);
    await bench.advance(2_500);
    await bench.finish(worker.stop());
    expect((await bench.finish(drained, 30_000)).completed).toBeLessThan(10);
    expect(await bench.store.count()).toMatchObject({ running: 0 });
  });
});
