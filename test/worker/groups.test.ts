// Groups through the eyes of workers: order, places, and no time lost between one job of a group and the next.
import { describe, expect, it } from "vitest";
import { fixed } from "../../src/core/backoff.ts";
import { defineJob } from "../../src/jobs/define-job.ts";
import { around, type Bench, createBench, forever, type Hired } from "../support/worker-bench.ts";

interface Started {
  readonly id: string;
  readonly group: string | null;
  readonly at: number;
}

/** A job type that notes its starts and how many of each group run. */
function noted(bench: Bench, { runMs = 10, groupConcurrency = 1, failing = 0 } = {}) {
  const starts: Started[] = [];
  const now = new Map<string, number>();
  const most = new Map<string, number>();
  const job = defineJob("thumbnail", {
    groupConcurrency,
    backoff: fixed(1_000),
    async run(_input, { job: { id, group }, attempt }) {
      const name = group ?? "";
      starts.push({ id, group, at: bench.world.now });
      now.set(name, (now.get(name) ?? 0) + 1);
      most.set(name, Math.max(most.get(name) ?? 0, now.get(name) ?? 0));
      await bench.sleep(runMs);
      now.set(name, (now.get(name) ?? 0) - 1);
      if (attempt <= failing) throw new Error("again");
    },
  });
  return { job, starts, most };
}

const completed = (crew: readonly Hired[]): number =>
  crew.reduce((sum, { worker }) => sum + worker.counts.completed, 0);

describe.each(["memory", "sqlite"] as const)("a group on %s", (store) => {
  it("runs its jobs one after the other, in order and without a pause, in whichever worker", async () => {
    const bench = createBench(1, store);
    const { job, starts, most } = noted(bench);
    const crew = [await bench.employ([job], { poll: "1m" }), await bench.employ([job], { poll: "1m" })];
    const ids = await bench.addMany(50, job, { group: "a" });
    const tookMs = await bench.until(() => completed(crew) === 50);
    expect(starts.map(({ id }) => id)).toEqual(ids);
    expect(most.get("a")).toBe(1);
    expect(tookMs).toBeLessThan(50 * 15);
  });

  it("waits for the retry of its first job, and other groups do not", async () => {
    const bench = createBench(1, store);
    const { job, starts } = noted(bench, { failing: 2 });
    const crew = [await bench.employ([job], { poll: "1m" })];
    const [first, second] = await bench.addMany(2, job, { group: "a" });
    const [other] = await bench.addMany(1, job, { group: "b" });
    await bench.until(() => completed(crew) === 3);
    expect(starts.filter(({ group }) => group === "a").map(({ id }) => id)).toEqual([
      first,
      first,
      first,
      second,
      second,
      second,
    ]);
    expect(starts.filter(({ id }) => id === other).map(({ at }) => at - (starts[0]?.at ?? 0))).toEqual([
      0, 1_010, 2_020,
    ]);
  });

  it("runs as many at the same time as its type allows, in the whole fleet", async () => {
    const bench = createBench(1, store);
    const { job, most } = noted(bench, { runMs: 100, groupConcurrency: 3 });
    const crew = [await bench.employ([job], { poll: "1m" }), await bench.employ([job], { poll: "1m" })];
    await bench.addMany(30, job, { group: "a", groupConcurrency: 3 });
    await bench.addMany(30, job, { group: "b", groupConcurrency: 3 });
    const tookMs = await bench.until(() => completed(crew) === 60);
    expect([most.get("a"), most.get("b")]).toEqual([3, 3]);
    expect(tookMs).toBeLessThan(10 * 130);
  });

  it("goes on with the job of a worker that died, before those behind it", async () => {
    const bench = createBench(1, store);
    const { job, starts } = noted(bench);
    const stuck = defineJob("thumbnail", { run: forever });
    const dead = await bench.employ([stuck], { lease: "5s", heartbeat: "1s" });
    const ids = await bench.addMany(3, job, { group: "a" });
    await bench.until(() => dead.worker.counts.claimed === 1);
    const crew = [await bench.employ([job], { lease: "5s", heartbeat: "1s" })];
    await bench.advance(1_000);
    expect(starts).toEqual([]);
    dead.actor.crash();
    await bench.until(() => completed(crew) === 3);
    expect(starts.map(({ id }) => id)).toEqual(ids);
  });

  it("goes on at once when the job that holds it up is cancelled", async () => {
    const bench = createBench(1, store);
    const { job, starts } = noted(bench, { failing: 1 });
    const crew = [await bench.employ([job], { poll: "1m" })];
    const [first = "", second] = await bench.addMany(2, job, { group: "a" });
    await bench.until(() => crew[0]?.worker.counts.retried === 1);
    await bench.store.cancel([first]);
    await bench.advance(5);
    expect(starts.map(({ id }) => id)).toEqual([first, second]);
  });

  it("is drained to its end", async () => {
    const bench = createBench(1, store);
    const { job, starts } = noted(bench, { failing: 1 });
    const ids = await bench.addMany(5, job, { group: "a" });
    const { worker } = bench.hire([job]);
    await bench.finish(worker.drain({ graceMs: 2_000 }));
    expect(starts).toHaveLength(10);
    expect(worker.counts.completed).toBe(5);
    expect([...new Set(starts.map(({ id }) => id))]).toEqual(ids);
  });

  it("costs no calls while it is full", async () => {
    const bench = createBench(1, store);
    const job = defineJob("thumbnail", { run: forever });
    let calls = 0;
    const through = around(bench.store, (_verb, next) => {
      calls += 1;
      return next();
    });
    await bench.addMany(10, job, { group: "a" });
    await bench.employ([job], { through });
    await bench.advance(1_000);
    calls = 0;
    await bench.advance(60_000);
    expect(calls / 60).toBeLessThanOrEqual(5);
  });
});

describe("many groups", () => {
  it("with one job each are worked off as fast as there are slots", async () => {
    const bench = createBench(1, "sqlite");
    const { job } = noted(bench);
    for (let n = 0; n < 20; n++)
      await Promise.all(Array.from({ length: 100 }, (_, m) => bench.add(job, { group: `${n}-${m}` })));
    const crew = [await bench.employ([job], { concurrency: 50 }), await bench.employ([job], { concurrency: 50 })];
    expect(await bench.until(() => completed(crew) === 2_000)).toBeLessThan(2 * (2_000 / 100) * 10);
  });
});
