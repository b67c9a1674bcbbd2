// A service that asks to be left alone: for whom that counts, for how long, and who pays. On virtual time.
import { describe, expect, it } from "vitest";
import { recordFrom, type ServiceRecord } from "../../src/core/service-record.ts";
import { done, transient } from "../../src/queue/batch.ts";
import { defineJob, type JobDefinition } from "../../src/queue/define-job.ts";
import { type Bench, createBench } from "../support/worker-bench.ts";

const DAY_MS = 86_400_000;

/** What a service answers that wants to be left alone for so many seconds. */
const tooMany = (seconds: number): Error =>
  Object.assign(new Error("slow down"), { status: 429, headers: { "retry-after": String(seconds) } });

async function recordOf({ store }: Bench): Promise<ServiceRecord> {
  const { services } = await store.control();
  return recordFrom(services.find(({ name }) => name === "pricing")?.value ?? "");
}

describe("the delay of one item of a batch", () => {
  /** Says of the items named `busy` that they are to come again in an hour. */
  const labels = (why: unknown): JobDefinition =>
    defineJob("label", {
      service: "pricing",
      batch: { size: 5 },
      runBatch: (items) =>
        items.map(({ input }) => (input === "busy" ? transient(why, { delay: "1h" }) : done(undefined))),
    });

  it.each([0, 4])("is that item's alone, beside %i others", async (others) => {
    const bench = createBench(31);
    const job = labels("busy");
    const id = await bench.add(job, { payload: '"busy"' });
    await bench.addMany(others, job);
    const { worker } = await bench.employ([job]);
    await bench.until(() => worker.counts.retried === 1);
    await bench.addMany(9, job);
    await bench.advance(2_000);
    expect(worker.counts.completed).toBe(others + 9);
    expect(await recordOf(bench)).toMatchObject({ holdUntil: 0 });
    expect(await bench.read(id)).toMatchObject({ attempts: 1, lastDelayMs: 3_600_000 });
  });

  it("does not hide how long the service itself asked to be left alone", async () => {
    const bench = createBench(32);
    const job = labels(tooMany(20));
    const id = await bench.add(job, { payload: '"busy"' });
    const { worker } = await bench.employ([job]);
    await bench.until(() => worker.counts.retried === 1);
    await bench.addMany(9, job);
    await bench.advance(19_000);
    expect(worker.counts.completed).toBe(0);
    await bench.advance(3_000);
    expect(worker.counts.completed).toBe(9);
    expect(await bench.read(id)).toMatchObject({ attempts: 1, lastDelayMs: 3_600_000 });
  });
});

describe("a Retry-After", () => {
  it("without measure leaves the service alone for a week, as long as any delay", async () => {
    const bench = createBench(33);
    const job = defineJob("quote", {
      service: "pricing",
      run() {
        throw tooMany(9_999_999_999);
      },
    });
    await bench.add(job);
    const { worker } = await bench.employ([job]);
    await bench.until(() => worker.counts.retried === 1);
    await bench.advance(100);
    const { holdUntil } = await recordOf(bench);
    expect(holdUntil).toBeGreaterThan(bench.world.now + 7 * DAY_MS - 1_000);
    expect(holdUntil).toBeLessThanOrEqual(bench.world.now + 7 * DAY_MS);
  });
});
