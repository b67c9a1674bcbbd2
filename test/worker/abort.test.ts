// Runs that are asked to stop: timeouts, the stuck limit, cancels, and handlers that do not listen.
import { describe, expect, it } from "vitest";
import { fixed } from "../../src/core/backoff.ts";
import { defineJob, type JobContext } from "../../src/jobs/define-job.ts";
import { createBench, forever } from "../support/worker-bench.ts";

function listening(reasons: unknown[]) {
  return (_input: unknown, { signal }: JobContext): Promise<never> =>
    new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => {
        reasons.push(signal.reason);
        reject(signal.reason as Error);
      });
    });
}

describe("a timeout", () => {
  it("fires the signal with its reason, and counts as a failure of class timeout that is retried", async () => {
    const bench = createBench();
    const reasons: unknown[] = [];
    const job = defineJob("thumbnail", {
      timeout: "3s",
      maxAttempts: 2,
      backoff: fixed("1s"),
      run: listening(reasons),
    });
    const id = await bench.add(job);
    const { worker } = await bench.employ([job]);
    expect(await bench.until(() => worker.counts.retried === 1)).toBe(3_000);
    expect(await bench.read(id)).toMatchObject({
      state: "queued",
      attempts: 1,
      failure: { class: "timeout", name: "TimeoutError", message: "The run took longer than 3s." },
    });
    expect(await bench.until(() => worker.counts.dead === 1)).toBe(4_000);
    expect(reasons.map(String)).toEqual(Array(2).fill("TimeoutError: The run took longer than its timeout."));
  });

  it("is over when the handler completes all the same", async () => {
    const bench = createBench();
    const job = defineJob("thumbnail", {
      timeout: "3s",
      run: async (_input, { signal }) => {
        await bench.sleep(4_000);
        return signal.aborted;
      },
    });
    const id = await bench.add(job);
    const { worker } = await bench.employ([job]);
    expect(await bench.until(() => worker.counts.completed === 1)).toBe(4_000);
    expect(await bench.read(id)).toMatchObject({ state: "completed", attempts: 0, result: "true" });
  });

  it("is told to a handler that asks for the signal only afterwards", async () => {
    const bench = createBench();
    const seen: boolean[] = [];
    const job = defineJob("thumbnail", {
      timeout: "3s",
      run: async (_input, context) => {
        await bench.sleep(3_500);
        seen.push(context.signal.aborted);
      },
    });
    await bench.add(job);
    const { worker } = await bench.employ([job]);
    await bench.until(() => worker.counts.completed === 1);
    expect(seen).toEqual([true]);
  });

  it("counts from the start of each attempt and is taken back when the run ends", async () => {
    const bench = createBench();
    let runs = 0;
    const job = defineJob("thumbnail", {
      timeout: "3s",
      backoff: fixed("0s"),
      run: async () => {
        await bench.sleep(2_000);
        if (++runs < 3) throw new Error("again");
      },
    });
    const id = await bench.add(job);
    const { worker } = await bench.employ([job]);
    expect(await bench.until(() => worker.counts.completed === 1)).toBeLessThan(6_100);
    expect((await bench.store.history(id)).map(({ failure }) => failure.class)).toEqual(["transient", "transient"]);
  });
});

describe("the stuck limit", () => {
  it("ends a run with its words and brings it back after its own delay", async () => {
    const bench = createBench();
    const stuck = { after: "6m", retryAfter: "2m" };
    const job = defineJob("scrape", { stuck, maxAttempts: 2, run: listening([]) });
    const id = await bench.add(job);
    const { worker } = await bench.employ([job]);
    expect(await bench.until(() => worker.counts.retried === 1, 400_000)).toBe(360_000);
    const { failure, runAt } = await bench.read(id);
    expect(failure).toMatchObject({ class: "stuck", message: "Run stuck for 0.1h - retry 1/1 scheduled" });
    expect(runAt - bench.world.now).toBe(120_000);
    await bench.until(() => worker.counts.dead === 1, 500_000);
    expect((await bench.read(id)).failure?.message).toBe("Run stuck for 0.1h - permanently failed after 1 attempts");
  });
});

describe("a cancel", () => {
  it("reaches the handler with the next heartbeat and ends the job as cancelled, uncharged", async () => {
    const bench = createBench();
    const reasons: unknown[] = [];
    const job = defineJob("thumbnail", { run: listening(reasons) });
    const id = await bench.add(job);
    const { worker } = await bench.employ([job], { heartbeat: "5s" });
    await bench.advance(1_000);
    expect(await bench.store.cancel([id])).toEqual(["requested"]);
    expect(await bench.until(() => worker.counts.cancelled === 1)).toBeLessThanOrEqual(5_000);
    expect(await bench.read(id)).toMatchObject({ state: "cancelled", attempts: 0 });
    expect(reasons.map(String)).toEqual(["AbortError: The job was cancelled."]);
  });

  it("stops the run it names and no other", async () => {
    const bench = createBench();
    const reasons: unknown[] = [];
    const job = defineJob("thumbnail", { run: listening(reasons) });
    const [id] = await bench.addMany(3, job);
    const { worker } = await bench.employ([job]);
    await bench.advance(1_000);
    await bench.store.cancel([id as string]);
    await bench.advance(20_000);
    expect(worker.counts.cancelled).toBe(1);
    expect(reasons).toHaveLength(1);
    expect((await bench.store.count()).running).toBe(2);
  });
});

describe("a handler that ignores its abort", () => {
  const stubborn = defineJob("stubborn", { timeout: "2s", maxAttempts: 1, run: forever });

  it("is settled after timeout and grace, and its slot counts as leaked", async () => {
    const bench = createBench();
    const id = await bench.add(stubborn);
    const { worker, said } = await bench.employ([stubborn], { concurrency: 4, abortGrace: "5s" });
    expect(await bench.until(() => worker.counts.dead === 1)).toBe(7_000);
    expect(await bench.read(id)).toMatchObject({ state: "dead", attempts: 1, failure: { class: "timeout" } });
    expect(worker.counts.leaked).toBe(1);
    expect(said("ignored its abort")).toHaveLength(1);
  });

  it("asks to be replaced when half of the slots are leaked, and not before", async () => {
    const bench = createBench();
    await bench.addMany(2, stubborn);
    const hired = await bench.employ([stubborn], { concurrency: 5, abortGrace: "1s" });
    await bench.advance(5_000);
    expect(hired.worker.counts.leaked).toBe(2);
    expect(hired.heard("worker.spent")).toEqual([]);
    await bench.add(stubborn);
    await bench.advance(5_000);
    expect(hired.heard("worker.spent")).toEqual([{ kind: "worker.spent", worker: hired.worker.id, leaked: 3 }]);
  });

  it("leaves the other slots at work", async () => {
    const bench = createBench();
    const quick = defineJob("quick", { run: () => bench.sleep(10) });
    await bench.addMany(1, stubborn);
    const { worker } = await bench.employ([stubborn, quick], { concurrency: 2, abortGrace: "1s" });
    await bench.advance(5_000);
    await bench.addMany(20, quick);
    await bench.until(() => worker.counts.completed === 20, 1_000);
  });

  it("gives its slot back when it returns at last, and a late answer changes nothing", async () => {
    const bench = createBench();
    let most = 0;
    let running = 0;
    const late = defineJob("late", { timeout: "1s", maxAttempts: 1, run: () => bench.sleep(60_000) });
    const quick = defineJob("quick", {
      run: async () => {
        most = Math.max(most, ++running);
        await bench.sleep(100);
        running -= 1;
      },
    });
    const id = await bench.add(late);
    const { worker } = await bench.employ([late, quick], { concurrency: 2, abortGrace: "1s" });
    await bench.advance(10_000);
    await bench.addMany(6, quick);
    await bench.until(() => worker.counts.completed === 6);
    expect(most).toBe(1);
    await bench.advance(60_000);
    await bench.addMany(6, quick);
    await bench.until(() => worker.counts.completed === 12);
    expect(most).toBe(2);
    expect(await bench.read(id)).toMatchObject({ state: "dead", attempts: 1, epoch: 1 });
    expect(worker.counts).toMatchObject({ dead: 1, stale: 0 });
  });

  it("does not hold back for ever what was fetched ahead for its slot", async () => {
    const bench = createBench();
    const late = defineJob("quick", {
      timeout: "1s",
      maxAttempts: 1,
      run: (input) => bench.sleep(input === "late" ? 30_000 : 1),
    });
    // Many quick ones make a pace, so that work is fetched ahead; the late one blocks the only slot.
    await bench.addMany(300, late, { payload: '"quick"' });
    await bench.add(late, { payload: '"late"' });
    await bench.addMany(3, late, { payload: '"quick"' });
    const { worker } = await bench.employ([late], { concurrency: 1, abortGrace: "1s" });
    await bench.until(() => worker.counts.leaked === 1, 10_000);
    await bench.until(() => worker.counts.completed === 303, 40_000);
  });
});
