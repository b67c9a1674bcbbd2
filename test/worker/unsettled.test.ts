// How much a worker holds: jobs fetched ahead, runs, and runs that have ended and are not settled. Its number follows the
// concurrency and what the store settles, never the backlog.
import { describe, expect, it } from "vitest";
import { defineJob, type JobDefinition } from "../../src/jobs/define-job.ts";
import type { ClaimAnswer, SettleRequest } from "../../src/store/store.ts";
import { around, type Bench, createBench, forever, type Hiring } from "../support/worker-bench.ts";

const CONCURRENCY = 10;
const COUNT = 3_000;

/**
 * A store whose settles take what the test says; how many leases it has given out and not got back, and how many of them
 * were beyond twice the concurrency and what a tenth of a second of settling takes.
 */
function counted(bench: Bench, settleMs: () => number | "held", remote: boolean) {
  const leases = { now: 0, most: 0, settled: 0, beyond: Number.NEGATIVE_INFINITY };
  const settles: { readonly atMs: number; readonly ended: number }[] = [];
  /** The part of a settle that falls into a tenth of a second. */
  const part = (tookMs: number): number => Math.min(1, 100 / tookMs);
  let settledMs = 0;
  let since = 0;
  // Verdicts of several kinds may be settled at the same time, which passes once.
  let underWay = 0;
  const settlingMs = (): number => settledMs + (underWay === 0 ? 0 : bench.world.now - since);
  const settle = async (next: () => Promise<unknown>, { settlements }: SettleRequest): Promise<unknown> => {
    const began = bench.world.now;
    if (underWay === 0) since = began;
    underWay += 1;
    while (settleMs() === "held") await bench.sleep(20);
    await bench.sleep(Number(settleMs()));
    const answer = await next();
    const tookMs = bench.world.now - began;
    settledMs = settlingMs();
    since = bench.world.now;
    underWay -= 1;
    const ended = settlements.filter(({ verdict }) => verdict.kind !== "progress").length;
    leases.now -= ended;
    leases.settled += ended;
    settles.push({ atMs: settledMs, ended: ended * part(tookMs) });
    return answer;
  };
  const slow = around(bench.store, async (verb, next, args) => {
    const request = args[0] as SettleRequest;
    // A reaper settles for workers that are gone, and is not to be held.
    if (verb === "settle" && request.worker !== undefined) return settle(next, request);
    const answer = await next();
    if (verb !== "claim") return answer;
    leases.now += (answer as ClaimAnswer).jobs.length;
    leases.most = Math.max(leases.most, leases.now);
    const lately = settles.filter(({ atMs }) => atMs >= settlingMs() - 100);
    const may = lately.reduce((sum, { ended }) => sum + ended, 2 * CONCURRENCY);
    leases.beyond = Math.max(leases.beyond, leases.now - may);
    return answer;
  });
  const through = new Proxy(slow, { get: (target, key) => (key === "remote" ? remote : Reflect.get(target, key)) });
  return { leases, through };
}

const quick = defineJob("quick", { run: () => undefined });
const failing = defineJob("failing", {
  maxAttempts: 1,
  run: () => {
    throw new Error("connect ECONNRESET");
  },
});

describe.each([
  { store: "in this process", remote: false },
  { store: "a server away", remote: true },
])("with a store $store, what is claimed and not settled", ({ remote }) => {
  const scene = async (jobs: readonly JobDefinition[], settleMs: () => number | "held", hiring: Hiring = {}) => {
    const bench = createBench();
    const { leases, through } = counted(bench, settleMs, remote);
    for (const job of jobs) await bench.addMany(COUNT / jobs.length, job);
    const hired = await bench.employ(jobs, { concurrency: CONCURRENCY, through, ...hiring });
    return { bench, leases, hired };
  };

  it("is at most twice the concurrency while nothing is settled, and all goes on afterwards", async () => {
    let isHeld = true;
    const { bench, leases } = await scene([quick, failing], () => (isHeld ? "held" : 0));
    await bench.advance(10_000);
    expect(leases.most).toBe(2 * CONCURRENCY);
    isHeld = false;
    await bench.until(() => leases.settled === COUNT);
  });

  it("is at most that and what a tenth of a second of settling takes", async () => {
    const { bench, leases } = await scene([quick, failing], () => 30);
    await bench.until(() => leases.settled === COUNT, 600_000);
    expect(leases.beyond).toBeLessThanOrEqual(0);
    expect(leases.most).toBeGreaterThan(3 * CONCURRENCY);
  });

  it.each([300, 1_000])("does not grow where each settle takes %i ms, however many it settles", async (ms) => {
    const { bench, leases } = await scene([quick, failing], () => ms);
    await bench.advance(60_000);
    expect(leases.settled).toBeGreaterThan(CONCURRENCY * 10);
    expect(leases.beyond).toBeLessThanOrEqual(0);
    expect(leases.most).toBeLessThan(4 * CONCURRENCY);
  });

  it("does not grow where settling stops in the middle of quick work", async () => {
    let isHeld = false;
    const { bench, leases } = await scene([quick], () => (isHeld ? "held" : 2));
    await bench.until(() => leases.settled > 1_000);
    isHeld = true;
    await bench.advance(20_000);
    expect(leases.beyond).toBeLessThanOrEqual(0);
    isHeld = false;
    await bench.until(() => leases.settled === COUNT);
  });

  it("is bounded for failing runs whose service is still being heard", async () => {
    let fails = 0;
    const heard = defineJob("heard", {
      service: "mail",
      maxAttempts: 1,
      // Not often enough to hold the service back: the others do not speak against it.
      run: () => {
        throw new Error(++fails % 4 === 0 ? "connect ECONNRESET" : "no such customer");
      },
    });
    const { bench, leases } = await scene([heard], () => "held", {
      services: { mail: { breaker: { failures: Number.POSITIVE_INFINITY, failureRate: Number.POSITIVE_INFINITY } } },
    });
    await bench.advance(10_000);
    expect(leases.most).toBe(2 * CONCURRENCY);
  });

  it("is counted in slots: a batch is one, until the last of its jobs is settled", async () => {
    const wide = defineJob("wide", {
      batch: { size: 8 },
      runBatch: (items, { done }) => {
        for (const { id } of items) done(id);
      },
    });
    const { bench, leases } = await scene([wide], () => "held");
    await bench.advance(10_000);
    expect(leases.most).toBe(2 * CONCURRENCY * 8);
  });

  it("is bounded for suspects too", async () => {
    const bench = createBench();
    const hold = defineJob("quick", { run: forever });
    await bench.addMany(200, hold);
    const victim = await bench.employ([hold], { concurrency: 200 });
    await bench.advance(1_000);
    victim.actor.crash();
    const { leases, through } = counted(bench, () => "held", remote);
    await bench.employ([quick], { concurrency: CONCURRENCY, through, lease: "5s" });
    await bench.advance(120_000);
    expect(leases.most).toBeGreaterThan(0);
    expect(leases.most).toBeLessThanOrEqual(2 * CONCURRENCY);
  });
});
