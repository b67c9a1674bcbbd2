// A service that asks to be left alone: for whom that counts, for how long, and who pays. On virtual time.
import { describe, expect, it } from "vitest";
import { done, transient } from "../../src/core/item-outcome.ts";
import { recordFrom, type ServiceRecord } from "../../src/core/service-record.ts";
import { defineJob, type JobDefinition } from "../../src/jobs/define-job.ts";
import { openBench, SCENE_STORES } from "../support/virtual-bench.ts";
import { type Bench, createBench, type Hired } from "../support/worker-bench.ts";
import { heard } from "./service-outage-scenes.ts";

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

describe.each(SCENE_STORES)("a service that answers ten a second and refuses the rest, on %s", (store) => {
  it("charges one attempt each time it asks for time, and nobody dies of it", async () => {
    const bench = await openBench(34, store);
    let [calls, answered, refusedAt] = [0, 0, 0];
    const holds = new Set<number>();
    const quote = defineJob("quote", {
      service: "pricing",
      maxAttempts: 3,
      async run() {
        const second = Math.floor(bench.world.now / 1_000);
        if (second !== refusedAt) [answered, refusedAt] = [0, second];
        const isRefused = answered >= 10;
        if (isRefused) holds.add(second);
        else answered += 1;
        // Answers come in another order than calls, so that it is not always the same job that is told first.
        await bench.sleep(20 + ((7 * ++calls) % 31));
        if (isRefused) throw tooMany(1);
      },
    });
    const ids = await bench.addMany(120, quote);
    const crew: Hired[] = [];
    for (const _ of [1, 2]) crew.push(await bench.employ([quote], { concurrency: 20 }));
    await bench.advance(60_000);
    expect((await bench.store.count()).completed).toBe(ids.length);
    expect(heard(crew, "job.dead")).toBe(0);
    expect(heard(crew, "job.released")).toBeGreaterThan(100);
    expect(heard(crew, "job.retried")).toBeGreaterThan(0);
    expect(heard(crew, "job.retried")).toBeLessThanOrEqual(holds.size);
  });

  it("takes back uncharged also what says 429 and no more", async () => {
    const bench = await openBench(35, store);
    let calls = 0;
    const quote = defineJob("quote", {
      service: "pricing",
      maxAttempts: 3,
      async run() {
        const n = ++calls;
        await bench.sleep(n === 1 ? 20 : 200);
        if (n === 1) throw tooMany(5);
        if (n <= 10) throw Object.assign(new Error("slow down"), { status: 429 });
      },
    });
    const ids = await bench.addMany(10, quote);
    const { worker } = await bench.employ([quote], { concurrency: 10 });
    await bench.advance(4_000);
    const jobs = await Promise.all(ids.map(bench.read));
    expect(jobs.filter(({ attempts }) => attempts > 0).length).toBe(1);
    expect(calls).toBe(10);
    await bench.until(() => worker.counts.completed === 10, 20_000);
  });
});
