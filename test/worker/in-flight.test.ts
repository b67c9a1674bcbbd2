// How much work is taken: by slots, by pace, by type, by queue and by priority.
import { describe, expect, it } from "vitest";
import { defineJob } from "../../src/jobs/define-job.ts";
import type { ClaimAnswer } from "../../src/store/store.ts";
import { counting } from "../support/counting-job.ts";
import { around, createBench, forever } from "../support/worker-bench.ts";

describe("concurrency", () => {
  it("is filled and never exceeded", async () => {
    const bench = createBench();
    const { job, seen } = counting(bench, "thumbnail", 100);
    await bench.addMany(50, job);
    const { worker } = await bench.employ([job], { concurrency: 7 });
    await bench.until(() => worker.counts.completed === 50);
    expect(seen.most).toBe(7);
  });

  it("of one means one at a time, suspects included", async () => {
    const bench = createBench();
    const { job, seen } = counting(bench, "thumbnail", 1_000);
    const victim = await bench.employ([defineJob("thumbnail", { run: forever })], { lease: "2s", concurrency: 1 });
    await bench.add(job);
    await bench.advance(100);
    victim.actor.crash();
    await bench.addMany(10, job);
    const { worker } = await bench.employ([job], { concurrency: 1, lease: "2s" });
    await bench.until(() => worker.counts.completed === 11);
    expect(seen.most).toBe(1);
  });

  it("per type holds for that type alone, and its slots are filled again as soon as they are free", async () => {
    const bench = createBench();
    const narrow = counting(bench, "narrow", 100, { concurrency: 2 });
    const wide = counting(bench, "wide", 100);
    await bench.addMany(20, narrow.job);
    await bench.addMany(20, wide.job);
    const { worker } = await bench.employ([narrow.job, wide.job], { concurrency: 10 });
    const took = await bench.until(() => worker.counts.completed === 40);
    expect(narrow.seen.most).toBe(2);
    expect(wide.seen.most).toBeGreaterThanOrEqual(8);
    // Ten rounds of 100 ms; a free slot must not wait for the next poll.
    expect(took).toBeLessThan(2_000);
  });
});

describe("prefetch", () => {
  it("takes nothing ahead of slow work: two workers share it evenly", async () => {
    const bench = createBench();
    const { job } = counting(bench, "slow", 5_000);
    await bench.addMany(40, job);
    const first = await bench.employ([job], { concurrency: 5 });
    const second = await bench.employ([job], { concurrency: 5 });
    const took = await bench.until(() => first.worker.counts.completed + second.worker.counts.completed === 40);
    expect(first.worker.counts.completed).toBe(20);
    expect(took).toBeLessThan(21_000);
  });

  it("grows with the pace of quick work, so that claims are few", async () => {
    const bench = createBench();
    let claims = 0;
    let most = 0;
    const through = around(bench.store, async (verb, next) => {
      const answer = await next();
      if (verb === "claim") {
        claims += 1;
        most = Math.max(most, (answer as ClaimAnswer).jobs.length);
      }
      return answer;
    });
    const { job } = counting(bench, "quick", 2);
    await bench.addMany(5_000, job);
    const { worker } = await bench.employ([job], { concurrency: 10, through });
    await bench.until(() => worker.counts.completed === 5_000);
    expect(claims).toBeLessThan(250);
    expect(most).toBeLessThanOrEqual(10 + 10 * 20);
  });

  it("is bounded by concurrency and not by the backlog", async () => {
    const bench = createBench();
    const { job } = counting(bench, "quick", 1);
    await bench.addMany(5_000, job);
    const { worker } = await bench.employ([job], { concurrency: 3 });
    let most = 0;
    await bench.until(() => {
      const { claimed, completed } = worker.counts;
      most = Math.max(most, claimed - completed);
      return completed === 5_000;
    });
    expect(most).toBeLessThanOrEqual(3 + 3 * 20);
  });

  it("made for quick work does not hoard the slow work behind it", async () => {
    const bench = createBench();
    const job = defineJob("mixed", { run: (input) => bench.sleep(input as number) });
    await bench.addMany(2_000, job, { payload: "1" });
    await bench.addMany(40, job, { payload: "30000" });
    const first = await bench.employ([job], { concurrency: 10 });
    await bench.until(() => first.worker.counts.completed === 2_000);
    const second = await bench.employ([job], { concurrency: 10 });
    await bench.advance(31_000);
    // Twenty slots, forty jobs: after the first half minute both have finished ten.
    expect(second.worker.counts.completed).toBe(10);
  });
});

describe("the choice of work", () => {
  it("leaves types that nobody here serves in the queue", async () => {
    const bench = createBench();
    const { job } = counting(bench, "ours", 1);
    await bench.addMany(3, "theirs");
    await bench.addMany(3, job);
    const { worker } = await bench.employ([job]);
    await bench.advance(10_000);
    expect(worker.counts).toMatchObject({ claimed: 3, completed: 3 });
    expect(await bench.store.count()).toMatchObject({ queued: 3, completed: 3 });
  });

  it("keeps to the queues it was given", async () => {
    const bench = createBench();
    const media = counting(bench, "media", 1, { queue: "media" });
    const mail = counting(bench, "mail", 1, { queue: "mail" });
    await bench.addMany(3, media.job);
    await bench.addMany(3, mail.job);
    await bench.employ([media.job, mail.job], { queues: ["mail"] });
    await bench.advance(10_000);
    expect([media.seen.started, mail.seen.started]).toEqual([0, 3]);
  });

  it("is by strict priority", async () => {
    const bench = createBench();
    const order: number[] = [];
    const job = defineJob("thumbnail", {
      run: async (_input, context) => {
        order.push(context.job.priority);
        await bench.sleep(500);
      },
    });
    for (const priority of [0, 9, 5, 0, 9, 5, 1]) await bench.add(job, { priority });
    const { worker } = await bench.employ([job], { concurrency: 1 });
    await bench.until(() => worker.counts.completed === 7);
    expect(order).toEqual([9, 9, 5, 5, 1, 0, 0]);
  });

  it("lets a job of high priority pass as soon as a slot is free", async () => {
    const bench = createBench();
    const order: number[] = [];
    const job = defineJob("thumbnail", {
      run: async (_input, context) => {
        order.push(context.job.priority);
        await bench.sleep(300);
      },
    });
    await bench.addMany(10, job);
    const { worker } = await bench.employ([job], { concurrency: 1 });
    await bench.advance(700);
    await bench.add(job, { priority: 9 });
    await bench.until(() => worker.counts.completed === 11);
    expect(order.indexOf(9)).toBeLessThanOrEqual(4);
  });
});
