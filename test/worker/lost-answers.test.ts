// Verdicts that counted although their answer was lost: whoever repeats them is told that the lease is over, and has to
// find out that it was its own doing.
import { describe, expect, it } from "vitest";
import { fixed } from "../../src/core/backoff.ts";
import { PermanentError } from "../../src/core/errors.ts";
import { defineJob } from "../../src/jobs/define-job.ts";
import type { SettleRequest, Store } from "../../src/store/store.ts";
import { around, type Bench, createBench, unavailable } from "../support/worker-bench.ts";

/** A store that carries out the first settle and loses its answer. */
function losing(store: Store): Store {
  let lost = false;
  return around(store, async (verb, next) => {
    if (verb !== "settle" || lost) return next();
    lost = true;
    await next();
    throw unavailable();
  });
}

/** Nothing is said to be lost. */
function expectTruth(hired: Awaited<ReturnType<Bench["employ"]>>): void {
  expect(hired.worker.counts.stale).toBe(0);
  expect(hired.heard("job.stale")).toEqual([]);
  expect(hired.said("lease lost")).toEqual([]);
}

describe("a verdict whose answer was lost", () => {
  it("is reported as what it was: completed, once each", async () => {
    const bench = createBench();
    const job = defineJob("quick", { run: () => "result" });
    const ids = await bench.addMany(20, job);
    const hired = await bench.employ([job], { through: losing(bench.store) });
    await bench.advance(10_000);
    for (const id of ids)
      expect(await bench.read(id)).toMatchObject({ state: "completed", epoch: 1, result: '"result"' });
    expect(hired.worker.counts).toMatchObject({ completed: 20 });
    expect(hired.heard("job.completed")).toHaveLength(20);
    expectTruth(hired);
  });

  it("is not known where it left nothing of the job: neither counted nor told as lost", async () => {
    const bench = createBench();
    const job = defineJob("quick", { keep: { finished: 0 }, run: () => "result" });
    const ids = await bench.addMany(3, job);
    const hired = await bench.employ([job], { through: losing(bench.store) });
    await bench.advance(10_000);
    expect(await bench.store.get(ids)).toEqual([null, null, null]);
    expect(hired.worker.counts).toMatchObject({ claimed: 3, completed: 0 });
    expect(hired.said("the answer to the complete of this run was lost")).toHaveLength(3);
    expectTruth(hired);
  });

  it("is told as lost where the job is there, and somebody else has it", async () => {
    const bench = createBench();
    const job = defineJob("quick", { keep: { finished: 0 }, run: () => "result" });
    await bench.add(job);
    let asked = 0;
    const taken = around(bench.store, async (verb, next, [request]) => {
      if (verb !== "settle" || ++asked > 1) return next();
      const verdict = { kind: "release", reason: "shutdown", delayMs: 3_600_000 } as const;
      await bench.store.settle({
        settlements: (request as SettleRequest).settlements.map((one) => ({ ...one, verdict })),
      });
      throw unavailable();
    });
    const hired = await bench.employ([job], { through: taken });
    await bench.until(() => hired.worker.counts.stale === 1);
    expect(hired.said("lease lost")).toHaveLength(1);
  });

  it("calls onDead for a job that died", async () => {
    const bench = createBench();
    const died: string[] = [];
    const run = (): never => {
      throw new PermanentError("no such file");
    };
    const job = defineJob("broken", { run, onDead: ({ id }) => void died.push(id) });
    const id = await bench.add(job);
    const hired = await bench.employ([job], { through: losing(bench.store) });
    await bench.advance(10_000);
    expect(died).toEqual([id]);
    expect(hired.heard("job.dead")).toHaveLength(1);
    expectTruth(hired);
  });

  it("is a retry that waits for its turn", async () => {
    const bench = createBench();
    let runs = 0;
    const run = (): void => {
      if (++runs === 1) throw new Error("not yet");
    };
    const job = defineJob("flaky", { maxAttempts: 2, backoff: fixed("5s"), run });
    await bench.add(job);
    const hired = await bench.employ([job], { through: losing(bench.store) });
    await bench.advance(10_000);
    expect(hired.worker.counts).toMatchObject({ retried: 1, completed: 1 });
    expectTruth(hired);
  });

  it("is a retry of a job that was cancelled meanwhile", async () => {
    const bench = createBench();
    const job = defineJob("flaky", {
      run: async (_input, { job: { id } }) => {
        await bench.store.cancel([id]);
        throw new Error("not yet");
      },
    });
    const id = await bench.add(job);
    const hired = await bench.employ([job], { through: losing(bench.store) });
    await bench.advance(10_000);
    expect(await bench.read(id)).toMatchObject({ state: "cancelled", attempts: 1 });
    expectTruth(hired);
  });

  it("asks for the truth until the store says it", async () => {
    const bench = createBench();
    let away = 0;
    const through = around(losing(bench.store), async (verb, next) => {
      if (verb === "get" && ++away <= 3) throw unavailable();
      return next();
    });
    const job = defineJob("quick", { run: () => 1 });
    await bench.add(job);
    const hired = await bench.employ([job], { through });
    await bench.advance(10_000);
    expect(away).toBe(4);
    expect(hired.worker.counts).toMatchObject({ completed: 1 });
    expectTruth(hired);
  });
});

describe("a verdict that was refused", () => {
  it("stays refused where somebody else had judged the run when its answer was lost", async () => {
    const bench = createBench();
    const verdict = { kind: "release", reason: "shutdown", delayMs: 3_600_000 } as const;
    let lost = false;
    const through = around(bench.store, async (verb, next, [request]) => {
      if (verb !== "settle" || lost) return next();
      lost = true;
      const { settlements } = request as SettleRequest;
      await bench.store.settle({ settlements: settlements.map((one) => ({ ...one, verdict })) });
      throw unavailable();
    });
    const job = defineJob("quick", { run: () => 1 });
    await bench.add(job);
    const hired = await bench.employ([job], { through });
    await bench.advance(10_000);
    expect(hired.worker.counts).toMatchObject({ completed: 0, stale: 1 });
    expect(hired.heard("job.stale")).toHaveLength(1);
  });

  it("costs no question where every answer came", async () => {
    const bench = createBench();
    let asked = 0;
    let stolen = false;
    const verdict = { kind: "release", reason: "shutdown", delayMs: 3_600_000 } as const;
    const through = around(bench.store, async (verb, next, [request]) => {
      if (verb === "get") asked += 1;
      if (verb === "settle" && !stolen) {
        stolen = true;
        const { settlements } = request as SettleRequest;
        await bench.store.settle({ settlements: settlements.map((one) => ({ ...one, verdict })) });
      }
      return next();
    });
    const job = defineJob("quick", { run: () => 1 });
    await bench.add(job);
    const hired = await bench.employ([job], { through });
    await bench.advance(10_000);
    expect(hired.worker.counts).toMatchObject({ completed: 0, stale: 1 });
    expect(asked).toBe(0);
  });
});
