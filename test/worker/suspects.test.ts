// Jobs that were in the hands of a worker that died: taken one at a time, at the last alone, or in a child process.
import { describe, expect, it } from "vitest";
import { defineJob } from "../../src/jobs/define-job.ts";
import type { ClaimAnswer } from "../../src/store/store.ts";
import { ALONE_DONE, evidenceOf, type Isolation } from "../../src/worker/isolation.ts";
import { around, type Bench, createBench } from "../support/worker-bench.ts";
import { claimBy } from "../support/runs.ts";
import { suspects } from "../support/suspects.ts";

function watched(bench: Bench, ms: number) {
  const seen = { suspects: 0, mostSuspects: 0, running: 0, beside: 0 };
  const job = defineJob("thumbnail", {
    run: async (_input, context) => {
      const suspect = context.job.crashes > 0;
      seen.running += 1;
      if (suspect) seen.mostSuspects = Math.max(seen.mostSuspects, ++seen.suspects);
      if (context.job.crashes === 2) seen.beside = Math.max(seen.beside, seen.running - 1);
      await bench.sleep(ms);
      if (context.job.crashes === 2) seen.beside = Math.max(seen.beside, seen.running - 1);
      seen.running -= 1;
      if (suspect) seen.suspects -= 1;
    },
  });
  return { job, seen };
}

describe("suspects", () => {
  it("are claimed one at a time and never fetched ahead", async () => {
    const bench = createBench();
    const { job, seen } = watched(bench, 50);
    await suspects(bench, 10, 1);
    await bench.addMany(50, job);
    const sizes: number[] = [];
    const through = around(bench.store, async (verb, next) => {
      const answer = await next();
      if (verb === "claim") {
        const { jobs } = answer as ClaimAnswer;
        if (jobs.some(({ crashes }) => crashes > 0)) sizes.push(jobs.length);
      }
      return answer;
    });
    const { worker } = await bench.employ([job], { concurrency: 10, through });
    await bench.until(() => worker.counts.completed === 60);
    expect(sizes).toEqual(Array(10).fill(1));
    expect(seen.mostSuspects).toBe(1);
  });

  it("follow one another without waiting for a poll", async () => {
    const bench = createBench();
    const { job } = watched(bench, 1);
    await suspects(bench, 100, 1);
    const { worker } = await bench.employ([job]);
    expect(await bench.until(() => worker.counts.completed === 100)).toBeLessThan(1_000);
  });

  it("are cleared by a run that ends well", async () => {
    const bench = createBench();
    const { job } = watched(bench, 1);
    const [id] = await suspects(bench, 1, 1);
    const { worker } = await bench.employ([job]);
    await bench.until(() => worker.counts.completed === 1);
    expect(await bench.read(id as string)).toMatchObject({ state: "completed", crashes: 1 });
  });
});

describe("a job with its last crash left, where there is no child process to be had", () => {
  it("runs when the hands are empty, and alone", async () => {
    const bench = createBench();
    const { job, seen } = watched(bench, 200);
    const ids = await suspects(bench, 3, 2);
    await bench.addMany(40, job);
    const { worker } = await bench.employ([job], { concurrency: 5 });
    await bench.until(() => worker.counts.completed === 43);
    expect(seen.beside).toBe(0);
    for (const id of ids) expect((await bench.read(id)).state).toBe("completed");
  });

  it("does not keep a worker from other work after somebody else has run it", async () => {
    const bench = createBench();
    const long = defineJob("long", { run: () => bench.sleep(3_600_000) });
    const quick = defineJob("quick", { run: () => 1 });
    const { job } = watched(bench, 10);
    await bench.add(long);
    const busy = await bench.employ([long, quick, job], { concurrency: 10 });
    await bench.advance(1_000);
    await suspects(bench, 1, 2);
    await bench.advance(1_500);
    const helper = await bench.employ([job]);
    await bench.until(() => helper.worker.counts.completed === 1);
    await bench.finish(helper.worker.stop());
    await bench.addMany(5, quick);
    await bench.until(() => busy.worker.counts.completed === 5, 10_000);
  });
});

describe("a job with its last crash left, where there is a child process", () => {
  /** A child in small: takes one job of the lane under its id and ends as told. */
  function child(bench: Bench, ends: { code: number | null; signal: string | null; output: string }): Isolation {
    return async ({ worker, lane }) => {
      await bench.store.register({ id: worker, leaseMs: 30_000, pid: 9_999, host: "child", release: null });
      await claimBy(bench.store, worker, { only: (found) => found.lane === lane, limit: 1, ticket: 0 });
      await bench.sleep(300);
      return ends;
    };
  }

  it("dies with the child's signal and last words as evidence, and nobody else is charged", async () => {
    const bench = createBench();
    const { job } = watched(bench, 50);
    const [id] = await suspects(bench, 1, 2);
    const bystanders = await bench.addMany(20, job);
    const isolation = child(bench, { code: null, signal: "SIGKILL", output: "about to allocate\n" });
    const { worker } = await bench.employ([job], { isolation });
    await bench.until(() => worker.counts.dead === 1 && worker.counts.completed === 20);
    expect((await bench.store.deadLetters({ limit: 1 })).items).toMatchObject([
      {
        job: { id },
        reason: "crashed",
        crashes: 3,
        failure: {
          class: "crashed",
          code: "SIGKILL",
          message: "The child process of the job died with signal SIGKILL.",
          stack: "Last output:\nabout to allocate",
        },
      },
    ]);
    for (const one of await bench.store.get(bystanders)) expect(one).toMatchObject({ crashes: 0, attempts: 0 });
  });

  it("does not stop the other work meanwhile", async () => {
    const bench = createBench();
    const { job } = watched(bench, 10);
    await suspects(bench, 1, 2);
    const isolation = child(bench, { code: 1, signal: null, output: "" });
    const { worker } = await bench.employ([job], { isolation, concurrency: 2 });
    await bench.addMany(20, job);
    await bench.until(() => worker.counts.completed === 20, 290);
  });

  it("is tried again with patience, and people are told, when the child cannot even begin", async () => {
    const bench = createBench();
    const { job } = watched(bench, 10);
    const [id] = await suspects(bench, 1, 2);
    let started = 0;
    const isolation: Isolation = async () => {
      started += 1;
      await bench.sleep(10);
      return { code: 1, signal: null, output: "Error: Cannot find module jobs.js" };
    };
    const hired = await bench.employ([job], { isolation });
    await bench.advance(10_000);
    expect(await bench.read(id as string)).toMatchObject({ state: "queued", crashes: 2 });
    expect(hired.lines.some(({ level }) => level === "warn" || level === "error")).toBe(true);
    expect(started).toBeLessThanOrEqual(20);
  });
});

describe("a stop", () => {
  it("waits for the child of a last chance within its time, so that its end is not lost", async () => {
    const bench = createBench();
    const { job } = watched(bench, 10);
    const [id] = await suspects(bench, 1, 2);
    const isolation: Isolation = async ({ worker, lane }) => {
      await bench.store.register({ id: worker, leaseMs: 30_000, pid: 9_999, host: "child", release: null });
      await claimBy(bench.store, worker, { only: (found) => found.lane === lane, limit: 1, ticket: 0 });
      await bench.sleep(3_000);
      return { code: null, signal: "SIGKILL", output: "" };
    };
    const hired = await bench.employ([job], { isolation });
    await bench.advance(1_000);
    await bench.finish(hired.worker.stop({ withinMs: 10_000 }));
    expect((await bench.store.deadLetters({ limit: 1 })).items).toMatchObject([
      { job: { id }, reason: "crashed", failure: { code: "SIGKILL" } },
    ]);
  });
});

describe("the evidence of a child's end", () => {
  it("is its exit code or signal, and its last output", () => {
    expect(evidenceOf({ code: 0, signal: null, output: "fine", told: [ALONE_DONE] })).toBeNull();
    expect(evidenceOf({ code: 0, signal: null, output: "bye" })).toMatchObject({
      code: "0",
      stack: "Last output:\nbye",
    });
    expect(evidenceOf({ code: 7, signal: null, output: "" })).toMatchObject({ code: "7", stack: null });
    expect(evidenceOf({ code: 7, signal: null, output: "" })?.message).toContain("exit code 7");
    expect(evidenceOf({ code: null, signal: "SIGSEGV", output: " x " })).toMatchObject({
      code: "SIGSEGV",
      stack: "Last output:\nx",
    });
  });
});
