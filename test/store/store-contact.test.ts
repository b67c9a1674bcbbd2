// Leases from the worker's side: being given up, losing contact, coming back.
import { describe, expect, it } from "vitest";
import { defineJob, type JobContext } from "../../src/jobs/define-job.ts";
import { notReadable } from "../../src/store/migrations.ts";
import { around, createBench, cuttable, forever } from "../support/worker-bench.ts";

const LEASE = { lease: "10s", heartbeat: "2s" } as const;

function polite(reasons: unknown[]) {
  return (_input: unknown, { signal }: JobContext): Promise<never> =>
    new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => {
        reasons.push(String(signal.reason));
        reject(signal.reason as Error);
      });
    });
}

describe("a worker that was given up", () => {
  it("aborts its runs, takes a new id and goes on working", async () => {
    const bench = createBench();
    const reasons: unknown[] = [];
    const long = defineJob("long", { run: polite(reasons) });
    const quick = defineJob("quick", { run: () => 1 });
    const id = await bench.add(long);
    const hired = await bench.employ([long, quick], LEASE);
    await bench.advance(1_000);
    const before = hired.worker.id;
    await bench.store.expired({ gone: [before], limit: 1 });
    await bench.until(() => hired.heard("worker.given_up").length === 1);
    await bench.advance(100);
    expect(reasons).toEqual([
      "AbortError: The lease was lost: another process ended this run, and its job may run elsewhere by now.",
    ]);
    expect(hired.worker.id).not.toBe(before);
    await bench.add(quick);
    await bench.until(() => hired.worker.counts.completed === 1, 2_000);
    // Nobody had judged the run yet, so it went back uncharged and runs again under the new id.
    expect(await bench.read(id)).toMatchObject({ state: "running", attempts: 0, crashes: 0, epoch: 2 });
  });

  it("hands back what was fetched ahead", async () => {
    const bench = createBench();
    const job = defineJob("quick", {
      run: async (input, { signal }) => {
        await bench.sleep(input === "long" ? 600_000 : 1, signal);
        signal.throwIfAborted();
      },
    });
    await bench.addMany(300, job, { payload: '"short"' });
    await bench.add(job, { payload: '"long"' });
    const ids = await bench.addMany(3, job, { payload: '"short"' });
    const hired = await bench.employ([job], { ...LEASE, concurrency: 1 });
    await bench.until(() => hired.worker.counts.claimed === 304 && hired.worker.counts.completed === 300);
    await bench.store.expired({ gone: [hired.worker.id], limit: 1 });
    await bench.until(() => hired.worker.counts.released === 4, 5_000);
    for (const id of ids) expect(await bench.read(id)).toMatchObject({ releases: 1, attempts: 0, crashes: 0 });
  });

  it("learns it from a refused claim too", async () => {
    const bench = createBench();
    const job = defineJob("quick", { run: () => 1 });
    const hired = await bench.employ([job], { lease: "10m", heartbeat: "3m" });
    await bench.advance(1_000);
    await bench.store.expired({ gone: [hired.worker.id], limit: 1 });
    await bench.add(job);
    await bench.until(() => hired.worker.counts.completed === 1, 2_000);
    expect(hired.heard("worker.given_up")).toHaveLength(1);
  });

  it("can neither complete nor fail the job that somebody else has by now", async () => {
    const bench = createBench();
    const results: string[] = [];
    const job = defineJob("slow", {
      run: async (_input, { job: { epoch } }) => {
        await bench.sleep(epoch === 1 ? 31_000 : 8_000);
        results.push(`epoch ${epoch}`);
        if (epoch === 1) throw new Error("the zombie fails");
        return epoch;
      },
    });
    const id = await bench.add(job);
    const zombie = await bench.employ([job], LEASE);
    const other = await bench.employ([job], LEASE);
    await bench.advance(100);
    zombie.actor.pause(30_000);
    await bench.until(() => other.worker.counts.completed === 1);
    await bench.advance(60_000);
    expect(await bench.read(id)).toMatchObject({ state: "completed", result: "2", epoch: 2, crashes: 1 });
    expect(zombie.worker.counts).toMatchObject({ completed: 0, retried: 0, dead: 0, stale: 1 });
  });
});

describe("contact that is lost", () => {
  it("aborts the runs at lease minus margin, and releases them uncharged on reconnect", async () => {
    const bench = createBench();
    const line = cuttable(bench.store);
    const reasons: unknown[] = [];
    const job = defineJob("long", { run: polite(reasons) });
    const id = await bench.add(job);
    const hired = await bench.employ([job], { ...LEASE, through: line.store });
    await bench.advance(4_100);
    line.away = true;
    // The last beat was at 4 s, so the lease ends at 14 s.
    const took = await bench.until(() => reasons.length === 1);
    expect(took).toBeGreaterThan(6_000);
    expect(took).toBeLessThanOrEqual(8_000);
    expect(reasons).toEqual(["AbortError: Contact with the store was lost for too long."]);
    await bench.advance(2_000);
    line.away = false;
    await bench.until(() => hired.worker.counts.released === 1, 3_000);
    await bench.advance(3_000);
    expect(await bench.read(id)).toMatchObject({ state: "running", attempts: 0, crashes: 0, epoch: 2, releases: 1 });
  });

  it("before the first heartbeat counts from the registration", async () => {
    const bench = createBench();
    const line = cuttable(bench.store);
    const reasons: unknown[] = [];
    const job = defineJob("long", { run: polite(reasons) });
    await bench.add(job);
    await bench.employ([job], { ...LEASE, through: line.store });
    await bench.advance(100);
    line.away = true;
    const took = await bench.until(() => reasons.length === 1);
    expect(took).toBeGreaterThan(6_000);
    expect(took).toBeLessThanOrEqual(8_000);
  });

  it("is over when the handler completes in time: the result counts on reconnect", async () => {
    const bench = createBench();
    const line = cuttable(bench.store);
    const job = defineJob("long", { run: () => bench.sleep(9_000) });
    const id = await bench.add(job);
    const hired = await bench.employ([job], { ...LEASE, through: line.store });
    await bench.advance(100);
    line.away = true;
    await bench.advance(15_000);
    line.away = false;
    await bench.until(() => hired.worker.counts.completed === 1, 3_000);
    expect(await bench.read(id)).toMatchObject({ state: "completed", attempts: 0, epoch: 1 });
  });

  it("with onContactLost continue keeps running and settles on reconnect", async () => {
    const bench = createBench();
    const line = cuttable(bench.store);
    const aborted: boolean[] = [];
    const job = defineJob("long", {
      run: async (_input, { signal }) => {
        await bench.sleep(25_000);
        aborted.push(signal.aborted);
      },
    });
    const id = await bench.add(job);
    const hired = await bench.employ([job], { ...LEASE, through: line.store, onContactLost: "continue" });
    await bench.advance(1_000);
    line.away = true;
    await bench.advance(30_000);
    line.away = false;
    await bench.until(() => hired.worker.counts.completed === 1, 3_000);
    expect(aborted).toEqual([false]);
    expect(await bench.read(id)).toMatchObject({ state: "completed", attempts: 0, epoch: 1 });
  });

  it("with onContactLost continue is refused if somebody else had the job meanwhile", async () => {
    const bench = createBench();
    const line = cuttable(bench.store);
    const job = defineJob("long", { run: (_input, context) => bench.sleep(context.job.epoch === 1 ? 40_000 : 100) });
    const id = await bench.add(job);
    const cut = await bench.employ([job], { ...LEASE, through: line.store, onContactLost: "continue" });
    const other = await bench.employ([job], LEASE);
    await bench.advance(1_000);
    expect((await bench.read(id)).worker).toBe(cut.worker.id);
    line.away = true;
    await bench.until(() => other.worker.counts.completed === 1);
    line.away = false;
    await bench.until(() => cut.worker.counts.stale === 1);
    expect(await bench.read(id)).toMatchObject({ state: "completed", epoch: 2, crashes: 1 });
  });

  it("for a moment aborts nothing", async () => {
    const bench = createBench();
    const line = cuttable(bench.store);
    const reasons: unknown[] = [];
    const job = defineJob("long", { run: polite(reasons) });
    await bench.add(job);
    const hired = await bench.employ([job], { ...LEASE, through: line.store });
    for (let n = 0; n < 10; n++) {
      await bench.advance(2_500);
      line.away = true;
      await bench.advance(4_000);
      line.away = false;
    }
    expect(reasons).toEqual([]);
    expect(hired.heard("worker.given_up")).toEqual([]);
  });
});

describe("a store that refuses this program", () => {
  it("is said once a minute at most, and at once when it begins", async () => {
    const bench = createBench();
    const refusal = notReadable({ version: 3, readableBy: 3 }, 2, "The store");
    let isRefused = false;
    const through = around(bench.store, async (_verb, next) => {
      if (isRefused) throw refusal;
      return next();
    });
    const job = defineJob("quick", { run: () => 1 });
    const hired = await bench.employ([job], { ...LEASE, through });
    await bench.advance(5_000);
    isRefused = true;
    await bench.advance(10_000);
    expect(hired.said("Update redrive")).toMatchObject([{ level: "warn", fields: { code: "store_unusable" } }]);
    await bench.advance(290_000);
    const said = hired.said("Update redrive");
    expect(said.length).toBeGreaterThanOrEqual(4);
    expect(said.length).toBeLessThanOrEqual(6);
    expect(said.at(-1)?.fields).toMatchObject({ heldBack: expect.any(Number) as number });
  });
});

describe("a heartbeat", () => {
  it("keeps the lease of a worker with a long run", async () => {
    const bench = createBench();
    const job = defineJob("long", { run: forever });
    const id = await bench.add(job);
    const hired = await bench.employ([job], LEASE);
    await bench.employ([job], LEASE);
    const holder = hired.worker.id;
    await bench.advance(300_000);
    expect(await bench.read(id)).toMatchObject({ state: "running", epoch: 1, crashes: 0, worker: holder });
  });
});
