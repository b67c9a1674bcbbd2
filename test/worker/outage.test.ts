// A store that is away for a while: nothing is restarted, nothing is charged, and the log stays readable.
import { describe, expect, it } from "vitest";
import { fixed } from "../../src/core/backoff.ts";
import { RedriveError } from "../../src/core/errors.ts";
import { resolveLimits } from "../../src/core/service.ts";
import { defineJob } from "../../src/jobs/define-job.ts";
import { openEvents } from "../../src/report/events.ts";
import { openWorker } from "../../src/redrive-worker.ts";
import { around, createBench, cuttable, type Line, recorder, unavailable } from "../support/worker-bench.ts";

/** The most lines of one text within any second. */
function mostInASecond(lines: readonly Line[], text: string): number {
  const at = lines.filter(({ message }) => message.includes(text)).map((line) => line.at);
  return Math.max(0, ...at.map((from) => at.filter((other) => other >= from && other < from + 1_000).length));
}

describe("a worker whose store is away", () => {
  it("starts when the store comes back", async () => {
    const bench = createBench();
    const line = cuttable(bench.store);
    line.away = true;
    const job = defineJob("thumbnail", { run: () => 1 });
    await bench.addMany(5, job);
    const { worker } = bench.hire([job], { through: line.store });
    const started = worker.start();
    await bench.advance(30_000);
    line.away = false;
    await bench.finish(started, 5_000);
    await bench.until(() => worker.counts.completed === 5, 5_000);
  });

  it("goes on by itself within three seconds of its return, and nothing was charged", async () => {
    const bench = createBench();
    const line = cuttable(bench.store);
    const job = defineJob("thumbnail", { maxAttempts: 1, backoff: fixed(0), run: () => bench.sleep(200) });
    const ids = await bench.addMany(400, job);
    const { worker } = await bench.employ([job], { concurrency: 10, through: line.store });
    for (const awayMs of [300, 2_000, 10_000, 60_000]) {
      await bench.advance(900);
      line.away = true;
      await bench.advance(awayMs);
      line.away = false;
      const before = worker.counts.completed;
      expect(await bench.until(() => worker.counts.completed > before)).toBeLessThanOrEqual(3_000);
    }
    await bench.until(() => worker.counts.completed === 400);
    for (const one of await bench.store.get(ids)) {
      expect(one).toMatchObject({ state: "completed", attempts: 0, crashes: 0 });
    }
    expect(worker.counts).toMatchObject({ stale: 0, dead: 0, retried: 0 });
  });

  it("waits for a store that is unusable too, because somebody may mend it", async () => {
    const bench = createBench();
    let broken = false;
    const through = around(bench.store, async (_verb, next) => {
      if (broken) throw new RedriveError("store_unusable", "The database file is damaged.");
      return next();
    });
    const job = defineJob("thumbnail", { run: () => 1 });
    const { worker } = await bench.employ([job], { through });
    broken = true;
    await bench.add(job);
    await bench.advance(20_000);
    broken = false;
    await bench.until(() => worker.counts.completed === 1, 3_000);
  });

  it("does not start on a store that is unusable from the start, and can be started once it was mended", async () => {
    const bench = createBench();
    let broken = true;
    const through = around(bench.store, async (verb, next) => {
      if (broken && verb === "register") throw new RedriveError("store_unusable", "permission denied for table worker");
      return next();
    });
    const job = defineJob("thumbnail", { run: () => 1 });
    await bench.add(job);
    const { worker } = bench.hire([job], { through });
    await expect(bench.finish(worker.start())).rejects.toMatchObject({ code: "store_unusable" });
    await expect(bench.finish(worker.drain({ graceMs: 0 }))).rejects.toMatchObject({ code: "store_unusable" });
    broken = false;
    await bench.finish(worker.start());
    await bench.until(() => worker.counts.completed === 1, 3_000);
    await bench.finish(worker.stop());
  });

  it("says so at most once a second, and once that it is back", async () => {
    const bench = createBench();
    const line = cuttable(bench.store);
    const job = defineJob("thumbnail", { run: () => bench.sleep(100) });
    await bench.addMany(100, job);
    const { lines, said } = await bench.employ([job], { concurrency: 5, through: line.store });
    await bench.advance(500);
    line.away = true;
    await bench.advance(30_000);
    line.away = false;
    await bench.advance(5_000);
    expect(mostInASecond(lines, "did not answer")).toBe(1);
    expect(said("did not answer").length).toBeGreaterThan(5);
    expect(said("the store is back")).toHaveLength(1);
  });

  it("says so at most once a second together with its upkeep, whatever the words", async () => {
    const bench = createBench();
    let away = false;
    const store = around(bench.store, async (verb, next) => {
      if (away) throw new RedriveError("store_unavailable", `${verb}: connection refused`);
      return next();
    });
    const { actor } = bench.hire([]);
    const lines: Line[] = [];
    const log = recorder(lines, () => bench.world.now);
    const worker = openWorker(
      { lease: "3s" },
      {
        store,
        system: actor.system,
        log,
        events: openEvents(log),
        jobs: [],
        defaults: {},
        limits: resolveLimits({}),
        process: { pid: 1, host: "here", isAlive: () => true },
        url: null,
        onBegin: () => () => undefined,
      },
    );
    await bench.finish(worker.start());
    await bench.advance(5_000);
    away = true;
    await bench.advance(20_000);
    const said = lines.filter((line) => JSON.stringify(line).includes("connection refused"));
    expect(said.length).toBeGreaterThan(10);
    expect(mostInASecond(said, "")).toBe(1);
    away = false;
    await bench.finish(worker.stop());
  });

  it("that can read but not write (a full disk) says each thing at most once a second", async () => {
    const bench = createBench();
    let full = false;
    const writes = new Set(["claim", "settle", "beat", "expired"]);
    const through = around(bench.store, async (verb, next) => {
      if (full && writes.has(verb)) throw unavailable();
      return next();
    });
    const job = defineJob("thumbnail", { run: () => bench.sleep(300) });
    await bench.addMany(5, job);
    const { worker, lines } = await bench.employ([job], { poll: "100ms", through });
    await bench.advance(200);
    full = true;
    for (let n = 0; n < 60; n++) {
      await bench.advance(100);
      await bench.add("theirs");
    }
    full = false;
    await bench.until(() => worker.counts.completed === 5, 5_000);
    expect(mostInASecond(lines, "did not answer")).toBe(1);
    expect(mostInASecond(lines, "the store is back")).toBeLessThanOrEqual(1);
  });

  it("keeps its slots: what runs goes on, and what ends is kept for later", async () => {
    const bench = createBench();
    const line = cuttable(bench.store);
    let running = 0;
    let most = 0;
    const job = defineJob("thumbnail", {
      run: async () => {
        most = Math.max(most, ++running);
        await bench.sleep(400);
        running -= 1;
      },
    });
    await bench.addMany(30, job);
    const { worker } = await bench.employ([job], { concurrency: 5, through: line.store });
    await bench.advance(300);
    line.away = true;
    await bench.advance(5_000);
    expect(running).toBe(0);
    line.away = false;
    await bench.until(() => worker.counts.completed === 30);
    expect(most).toBe(5);
  });
});

describe("an error that is no outage", () => {
  it("in the claim loop or the reaper does not end the worker", async () => {
    for (const verb of ["lanes", "workers", "beat"] as const) {
      const bench = createBench();
      let defect = false;
      const through = around(bench.store, async (asked, next) => {
        if (defect && asked === verb) throw new TypeError("a defect in the store");
        return next();
      });
      const job = defineJob("thumbnail", { run: () => 1 });
      const { worker } = await bench.employ([job], { through });
      defect = true;
      await bench.advance(8_000);
      defect = false;
      await bench.add(job);
      await bench.until(() => worker.counts.completed === 1, 5_000);
    }
  });
});
