// More tenants than one look at the lanes shows: all of them have their turns, and strict priority holds. By counting, on
// virtual time.
import { describe, expect, it } from "vitest";
import { defineJob } from "../../src/jobs/define-job.ts";
import { type Bench, createBench } from "../support/worker-bench.ts";

const TOOK_MS = 20;

/** A job that notes whose turn it was. */
function noting(bench: Bench, starts: string[]) {
  return defineJob("note", {
    async run(_, { job: { tenant } }) {
      starts.push(tenant ?? "");
      await bench.sleep(TOOK_MS);
    },
  });
}

/** Enqueues so many jobs for each of so many tenants. */
async function fill(
  bench: Bench,
  job: ReturnType<typeof noting>,
  tenants: number,
  each: number,
  name = "t",
  priority = 5,
): Promise<void> {
  for (let n = 0; n < each; n++) {
    for (let from = 0; from < tenants; from += 1_000)
      await bench.addMany(Math.min(1_000, tenants - from), job, (at) => ({ tenant: `${name}${from + at}`, priority }));
  }
}

/** How often each was there. */
function counts(starts: readonly string[]): Map<string, number> {
  const found = new Map<string, number>();
  for (const tenant of starts) found.set(tenant, (found.get(tenant) ?? 0) + 1);
  return found;
}

describe("where there are more tenants than a look shows", () => {
  for (const { tenants, concurrency, rounds } of [
    { tenants: 600, concurrency: 10, rounds: 4 },
    { tenants: 4_000, concurrency: 50, rounds: 2 },
    { tenants: 10_000, concurrency: 200, rounds: 3 },
  ]) {
    it(`each of ${tenants} has its share, within a factor of two`, { timeout: 300_000 }, async () => {
      const bench = createBench(7, "sqlite");
      const starts: string[] = [];
      const job = noting(bench, starts);
      await fill(bench, job, tenants, 2 * rounds + 1);
      await bench.employ([job], { concurrency });
      await bench.until(() => starts.length >= rounds * tenants, 600_000);
      const found = counts(starts.slice(0, rounds * tenants));
      const all = Array.from({ length: tenants }, (_, n) => found.get(`t${n}`) ?? 0);
      expect(Math.min(...all)).toBeGreaterThanOrEqual(rounds / 2);
      expect(Math.max(...all)).toBeLessThanOrEqual(rounds * 2);
    });
  }

  it("what is of a lower priority waits for all of them", async () => {
    const bench = createBench(8, "sqlite");
    const starts: string[] = [];
    const job = noting(bench, starts);
    await fill(bench, job, 700, 2, "low", 3);
    await fill(bench, job, 700, 2, "high", 6);
    await bench.employ([job], { concurrency: 40 });
    await bench.until(() => starts.length === 2_800);
    expect(starts.slice(0, 1_350).filter((tenant) => tenant.startsWith("low"))).toEqual([]);
  });

  it("what is of a lower priority takes what they leave", async () => {
    const bench = createBench(11, "sqlite");
    const starts: string[] = [];
    const job = noting(bench, starts);
    await fill(bench, job, 1_500, 1, "high", 6);
    await bench.add(job, { tenant: "low", priority: 2 });
    await bench.employ([job], { concurrency: 40 });
    await bench.until(() => starts.length === 1_501);
    expect(starts.indexOf("low")).toBeGreaterThan(1_400);
  });

  it("what is of a higher priority goes before all of them", async () => {
    const bench = createBench(9, "sqlite");
    const starts: string[] = [];
    const job = noting(bench, starts);
    await fill(bench, job, 1_500, 3);
    await bench.employ([job], { concurrency: 20 });
    for (let n = 0; n < 10; n++) {
      await bench.advance(210);
      await bench.add(job, { tenant: "urgent", priority: 9 });
      const before = starts.length;
      await bench.until(() => starts.includes("urgent", before), 500);
    }
    // And they go on where they were.
    const found = counts(starts);
    expect(Math.max(...[...found].filter(([tenant]) => tenant !== "urgent").map(([, count]) => count))).toBeLessThan(4);
    expect(found.size).toBeGreaterThan(0.9 * Math.min(1_500, starts.length));
  });

  it("those that may not start hold up nothing of a lower priority", async () => {
    const bench = createBench(10, "sqlite");
    const starts: string[] = [];
    const held = defineJob("held", { run: () => 1 });
    const job = noting(bench, starts);
    await bench.store.pause({ kind: "type", name: "held" }, { forMs: null, reason: "test" });
    await bench.addMany(1_400, held, (n) => ({ tenant: `h${n}`, priority: 8 }));
    await fill(bench, job, 700, 2, "low", 2);
    await bench.employ([job, held], { concurrency: 40 });
    await bench.until(() => starts.length === 1_400, 120_000);
    expect(counts(starts).size).toBe(700);
  });
});
