// One tenant floods the queue, and the others do not notice. On virtual time.
import { describe, expect, it } from "vitest";
import { defineJob, type JobDefinition } from "../../src/jobs/define-job.ts";
import { isShort, openBench, SHORT_STORES } from "../support/virtual-bench.ts";
import type { Bench } from "../support/worker-bench.ts";

const TOOK_MS = 50;

interface Start {
  readonly tenant: string | null;
  readonly at: number;
  readonly waitedMs: number;
}

function slow(bench: Bench, starts: Start[], tookMs = TOOK_MS): JobDefinition {
  return defineJob("slow", {
    async run(_, { job: { tenant, createdAt } }) {
      starts.push({ tenant, at: bench.world.now, waitedMs: bench.world.now - createdAt });
      await bench.sleep(tookMs);
    },
  });
}

/** The share of a tenant among the starts in a time. */
function share(starts: readonly Start[], tenant: string, from: number, to: number): number {
  const inside = starts.filter(({ at }) => at >= from && at < to);
  return inside.filter((start) => start.tenant === tenant).length / inside.length;
}

describe.each(SHORT_STORES)("a tenant that floods the queue, on %s", (store) => {
  it("keeps nobody else waiting", { timeout: 120_000 }, async () => {
    const bench = await openBench(3, store);
    const starts: Start[] = [];
    const job = slow(bench, starts);
    // Memory is the reference, not the fast one.
    const chunks = store === "memory" || isShort(store) ? 1 : 10;
    for (let chunk = 0; chunk < chunks; chunk++)
      await bench.addMany(isShort(store) ? 2_000 : 10_000, job, { tenant: "a" });
    for (const _ of [1, 2]) await bench.employ([job], { concurrency: 10 });
    const arrivals = isShort(store) ? 5 : 20;
    for (let arrival = 0; arrival < arrivals; arrival++) {
      await bench.advance(500 + arrival * 7);
      await bench.add(job, { tenant: "b" });
    }
    await bench.advance(1_000);
    const waits = starts.filter(({ tenant }) => tenant === "b").map(({ waitedMs }) => waitedMs);
    expect(waits.length).toBe(arrivals);
    expect(Math.max(...waits)).toBeLessThanOrEqual(250);
    // Meanwhile a kept all slots busy.
    expect(starts.length).toBeGreaterThan(0.95 * ((bench.world.now - (starts[0] as Start).at) / TOOK_MS) * 20 - 40);
  });

  it("shares with one that has as much", { timeout: 120_000 }, async () => {
    const bench = await openBench(4, store);
    const starts: Start[] = [];
    const job = slow(bench, starts);
    const many = isShort(store) ? 800 : 1_000;
    await bench.addMany(many, job, { tenant: "a" });
    for (const _ of [1, 2]) await bench.employ([job], { concurrency: 10 });
    await bench.advance(isShort(store) ? 250 : 1_000);
    await bench.addMany(many, job, { tenant: "b" });
    const from = bench.world.now + 250;
    await bench.advance(2_250);
    expect(share(starts, "b", from, bench.world.now)).toBeGreaterThanOrEqual(0.45);
    expect(share(starts, "b", from, bench.world.now)).toBeLessThanOrEqual(0.55);
  });

  it.skipIf(isShort(store))("gets three times as much with three times the weight", { timeout: 120_000 }, async () => {
    for (const concurrency of [1, 12]) {
      const bench = await openBench(5, store);
      const starts: Start[] = [];
      const job = slow(bench, starts);
      for (const tenant of ["a", "b"]) await bench.addMany(2_000, job, { tenant });
      await bench.employ([job], { concurrency, tenants: { a: { weight: 3 } } });
      await bench.advance(500);
      const from = bench.world.now;
      await bench.advance(5_000);
      expect(share(starts, "a", from, bench.world.now), `${concurrency} slots`).toBeGreaterThan(0.68);
      expect(share(starts, "a", from, bench.world.now), `${concurrency} slots`).toBeLessThan(0.82);
    }
  });
});

describe("tenants of one priority", () => {
  it("have their turns also where a claim reaches work of a lower one", async () => {
    const bench = await openBench(3, "memory");
    const starts: Start[] = [];
    const job = slow(bench, starts, 1_000);
    for (const tenant of ["a", "b", "c", "d"]) await bench.addMany(60, job, { tenant, priority: 6 });
    for (const tenant of ["e", "f"]) await bench.addMany(20, job, { tenant, priority: 3 });
    // One slot more than tenants: a claim gives two jobs each to the first ones, and none to the last.
    await bench.employ([job], { concurrency: 5 });
    await bench.until(() => starts.length >= 100, 60_000);
    const first = starts.slice(0, 100).map(({ tenant }) => tenant);
    for (const tenant of ["a", "b", "c", "d"])
      expect(first.filter((each) => each === tenant).length, tenant).toBeGreaterThanOrEqual(15);
  });
});
