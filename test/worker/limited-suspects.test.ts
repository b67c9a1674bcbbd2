// Jobs of workers that died are under the same limits as all others: rate limits, the ramp of a service that came back,
// retry budgets. On virtual time.
import { describe, expect, it } from "vitest";
import { closed, openedByHand, initialRecord } from "../../src/core/service-record.ts";
import { defineJob } from "../../src/jobs/define-job.ts";
import { claimBy, signUp } from "../support/runs.ts";
import { openBench, SCENE_STORES } from "../support/virtual-bench.ts";
import { crashed } from "../support/verdicts.ts";
import { type Bench, createBench } from "../support/worker-bench.ts";
import type { Isolation } from "../../src/worker/isolation.ts";
import { mostInASecond } from "../services/service-outage-scenes.ts";

/** Jobs that were in the hands of workers that died, once or twice. */
async function suspects({ store, addMany }: Bench, count: number, lane: "suspect" | "last"): Promise<string[]> {
  const ids = await addMany(count, "quote", { service: "pricing", maxAttempts: 50 });
  const from = { suspect: "first", last: "suspect" };
  for (const kind of lane === "last" ? (["suspect", "last"] as const) : (["suspect"] as const)) {
    const worker = await signUp(store);
    const { jobs } = await claimBy(store, worker, { only: (found) => found.kind === from[kind] });
    const verdict = crashed({ charge: { attempts: 1, crashes: 1 }, lane: kind });
    await store.settle({ settlements: jobs.map(({ id, epoch, nonce }) => ({ id, epoch, nonce, verdict })) });
    await store.leave(worker);
  }
  return ids;
}

/** A job type whose runs are noted; long ones at first, so that many are in hand at once. */
function noted(bench: Bench, state = { ms: 10 }) {
  const starts: number[] = [];
  const quote = defineJob("quote", {
    service: "pricing",
    maxAttempts: 50,
    async run() {
      starts.push(bench.world.now);
      await bench.sleep(state.ms);
    },
  });
  return { starts, quote, state };
}

describe.each(SCENE_STORES)("jobs of workers that were killed, on %s", (store) => {
  it("start no faster than their rate limit allows", async () => {
    const bench = await openBench(51, store);
    const { starts, quote, state } = noted(bench, { ms: 600_000 });
    const hiring = { services: { pricing: { rateLimit: { limit: 20 } } }, concurrency: 25, lease: "5s" } as const;
    const ids = await bench.addMany(100, quote);
    const first = [];
    for (let n = 0; n < 4; n++) first.push(await bench.employ([quote], hiring));
    await bench.until(() => starts.length === 100, 10_000);
    for (const { actor } of first) actor.crash();
    starts.length = 0;
    state.ms = 10;
    for (let n = 0; n < 4; n++) await bench.employ([quote], hiring);
    await bench.advance(20_000);
    expect((await bench.store.count()).completed).toBe(ids.length);
    expect(mostInASecond(starts)).toBeLessThanOrEqual(21);
    // The limit is used, too.
    expect((starts.at(-1) as number) - (starts[0] as number)).toBeLessThan(6_000);
  });
});

describe("suspects", () => {
  it("come back on the ramp of their service", async () => {
    const bench = createBench(52);
    const { starts, quote } = noted(bench);
    await suspects(bench, 200, "suspect");
    const back = closed(openedByHand(initialRecord, "test", null, bench.world.now), 20_000, bench.world.now);
    await bench.store.setService("pricing", 0, JSON.stringify(back));
    for (let n = 0; n < 3; n++) await bench.employ([quote]);
    await bench.advance(2_000);
    // Three a second at first, six after two seconds.
    expect(starts.length).toBeLessThanOrEqual(12);
    expect(starts.length).toBeGreaterThanOrEqual(5);
    await bench.advance(20_000);
    expect(starts.length).toBe(200);
  });

  it("are paid from the retry budget", async () => {
    const bench = createBench(53);
    const { starts, quote } = noted(bench);
    await suspects(bench, 100, "suspect");
    const services = { pricing: { budget: { share: 0, floorPerSecond: 5, capacity: 5 } } } as const;
    await bench.employ([quote], { services });
    await bench.advance(10_000);
    expect(starts.length).toBeLessThanOrEqual(50 + 5);
    expect(starts.length).toBeGreaterThanOrEqual(45);
  });

  it("are not waited for with a slot of its own while their limit is used up", async () => {
    const bench = createBench(54);
    const { starts, quote } = noted(bench);
    let others = 0;
    const other = defineJob("other", {
      async run() {
        await bench.sleep(5);
        others += 1;
      },
    });
    await suspects(bench, 3, "last");
    await suspects(bench, 3, "suspect");
    const services = { pricing: { rateLimit: { limit: 1, per: "1h" } } } as const;
    await bench.addMany(2_000, other);
    await bench.employ([quote, other], { services, concurrency: 1 });
    await bench.advance(15_000);
    expect(starts.length).toBe(1);
    expect(others).toBeGreaterThan(1_500);
  });

  it("with their last crash left start children no faster than the limit, however full the hands are", async () => {
    const bench = createBench(55);
    const { quote } = noted(bench);
    const long = defineJob("long", { run: () => bench.sleep(3_600_000) });
    await suspects(bench, 20, "last");
    const children: number[] = [];
    const isolation: Isolation = async ({ worker, lane }) => {
      children.push(bench.world.now);
      await bench.store.register({ id: worker, leaseMs: 30_000, pid: 9_999, host: "child", release: null });
      const { jobs } = await claimBy(bench.store, worker, {
        only: (found) => found.lane === lane,
        limit: 1,
        ticket: 0,
      });
      const verdict = { kind: "complete", result: null } as const;
      await bench.store.settle({ settlements: jobs.map(({ id, epoch, nonce }) => ({ id, epoch, nonce, verdict })) });
      await bench.store.leave(worker);
      const told = jobs.map((job) => ({ job, verdict, settled: "counted", heard: null }));
      return { code: 0, signal: null, output: "", told };
    };
    await bench.addMany(2, long);
    const services = { pricing: { rateLimit: { limit: 2 } } } as const;
    await bench.employ([quote, long], { services, isolation, concurrency: 2 });
    await bench.advance(10_500);
    expect(mostInASecond(children)).toBeLessThanOrEqual(3);
    expect(children.length).toBeGreaterThanOrEqual(18);
  });
});
