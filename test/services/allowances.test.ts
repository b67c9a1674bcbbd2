// Rate limits, budgets and holds of single workers and small crews: what may start when, and what waiting costs. On
// virtual time.
import { describe, expect, it } from "vitest";
import { fixed } from "../../src/core/backoff.ts";
import type { RateOptions } from "../../src/core/rate.ts";
import type { ServiceOptions } from "../../src/core/service.ts";
import { defineJob, type JobDefinition } from "../../src/jobs/define-job.ts";
import { around, type Bench, createBench } from "../support/worker-bench.ts";
import { mostInASecond } from "./service-outage-scenes.ts";

interface Start {
  readonly type: string;
  readonly tenant: string | null;
  readonly at: number;
}

const refused = (): Error => Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });

/** Job types that note when they start. */
function noting(bench: Bench): { starts: Start[]; job: (type: string, options?: object) => JobDefinition } {
  const starts: Start[] = [];
  const job = (type: string, options: object = {}): JobDefinition =>
    defineJob(type, {
      run: (_, { job: { tenant } }) => void starts.push({ type, tenant, at: bench.world.now }),
      ...options,
    });
  return { starts, job };
}

const timesOf = (starts: readonly Start[], pick: (start: Start) => boolean = () => true): number[] =>
  starts.filter(pick).map(({ at }) => at);

const limited = (rateLimit: RateOptions): Record<string, ServiceOptions> => ({
  pricing: { rateLimit },
});

describe("a rate limit", () => {
  it("of a job type bounds that type and no other", async () => {
    const bench = createBench(31);
    const { starts, job } = noting(bench);
    const [mail, quick] = [job("mail", { rateLimit: { limit: 20 } }), job("quick")];
    await bench.addMany(400, mail);
    await bench.addMany(400, quick);
    for (let n = 0; n < 3; n++) await bench.employ([mail, quick]);
    await bench.advance(5_000);
    expect(timesOf(starts, ({ type }) => type === "quick").length).toBe(400);
    const mails = timesOf(starts, ({ type }) => type === "mail");
    expect(mostInASecond(mails)).toBeLessThanOrEqual(21);
    expect(mails.length).toBeGreaterThanOrEqual(0.95 * 5 * 20);
  });

  it("of every tenant bounds each for itself", async () => {
    const bench = createBench(32);
    const { starts, job } = noting(bench);
    const mail = job("mail");
    for (const tenant of ["a", "b", "c"]) await bench.addMany(200, mail, { tenant });
    await bench.addMany(50, mail);
    const tenants = { "*": { rateLimit: { limit: 10 } }, c: { rateLimit: { limit: 40 } } };
    for (let n = 0; n < 2; n++) await bench.employ([mail], { tenants });
    await bench.advance(5_000);
    for (const [tenant, limit] of [
      ["a", 10],
      ["b", 10],
      ["c", 40],
    ] as const) {
      const own = timesOf(starts, (start) => start.tenant === tenant);
      expect(mostInASecond(own), tenant).toBeLessThanOrEqual(limit + 2);
      expect(own.length, tenant).toBeGreaterThanOrEqual(0.9 * 5 * limit);
    }
    expect(timesOf(starts, ({ tenant }) => tenant === null).length).toBe(50);
  });

  it("lets a burst start at once after a quiet time, and not more", async () => {
    const bench = createBench(33);
    const { starts, job } = noting(bench);
    const quote = job("quote", { service: "pricing" });
    await bench.employ([quote], { services: limited({ limit: 10, burst: 5 }), concurrency: 20 });
    await bench.advance(10_000);
    const from = bench.world.now;
    await bench.addMany(20, quote);
    await bench.advance(60);
    expect(timesOf(starts).length).toBeGreaterThanOrEqual(5);
    expect(timesOf(starts).length).toBeLessThanOrEqual(6);
    await bench.advance(3_000);
    expect(timesOf(starts).length).toBe(20);
    expect(timesOf(starts).filter((at) => at < from + 1_000).length).toBeLessThanOrEqual(10 + 5 + 1);
  });

  it("does not make others wait that come behind it", async () => {
    const bench = createBench(34);
    const { starts, job } = noting(bench);
    const run = (type: string) => async () => {
      starts.push({ type, tenant: null, at: bench.world.now });
      await bench.sleep(5);
    };
    const quote = job("quote", { service: "pricing", run: run("quote") });
    const other = job("other", { run: run("other") });
    await bench.addMany(200, quote, { priority: 9 });
    await bench.addMany(2_000, other, { priority: 0 });
    await bench.employ([quote, other], { services: limited({ limit: 10 }), concurrency: 1 });
    await bench.advance(10_000);
    const quotes = timesOf(starts, ({ type }) => type === "quote").length;
    expect(quotes).toBeGreaterThanOrEqual(90);
    // A slot of 5 ms jobs that is busy most of the time.
    expect(timesOf(starts, ({ type }) => type === "other").length).toBeGreaterThan(1_000);
  });

  it.each([
    ["1 a minute", { limit: 1, per: "1m" }],
    ["1 in ten minutes", { limit: 1, per: "10m" }],
  ] as const)("of %s costs the store little while it is waited for", async (_, rateLimit) => {
    const bench = createBench(35);
    const { starts, job } = noting(bench);
    const quote = job("quote", { service: "pricing" });
    let calls = 0;
    const through = around(bench.store, (_verb, next) => {
      calls += 1;
      return next();
    });
    await bench.addMany(50, quote);
    await bench.employ([quote], { services: limited(rateLimit), through });
    await bench.advance(5_000);
    calls = 0;
    await bench.advance(50_000);
    expect(calls / 50).toBeLessThan(25);
    await bench.advance(605_000);
    expect(starts.length).toBe(rateLimit.per === "1m" ? 12 : 2);
  });

  it("that was far lower before, or was reserved by a clock that stepped back, is not waited for", async () => {
    const bench = createBench(36);
    const { starts, job } = noting(bench);
    const quote = job("quote", { service: "pricing" });
    const value = JSON.stringify({ nextAt: bench.world.now + 86_400_000 });
    await bench.store.setCells([{ kind: "rate", name: "service:pricing", holder: "", version: null, value }]);
    await bench.addMany(50, quote);
    await bench.employ([quote], { services: limited({ limit: 10 }) });
    await bench.advance(8_000);
    expect(starts.length).toBe(50);
  });

  it.each(["junk", "null", "{}", '{"nextAt":"soon"}', "[]"])("begins anew where its cell says %s", async (value) => {
    const bench = createBench(37);
    const { starts, job } = noting(bench);
    const [quote, other] = [job("quote", { service: "pricing" }), job("other")];
    const cell = { holder: "", version: null, value };
    await bench.store.setCells([
      { kind: "rate", name: "service:pricing", ...cell },
      { kind: "budget", name: "pricing", ...cell },
    ]);
    await bench.addMany(5, quote);
    await bench.add(quote, { attempts: 1 } as object);
    await bench.add(other);
    await bench.employ([quote, other], { services: { pricing: { rateLimit: { limit: 10 }, budget: {} } } });
    await bench.advance(3_000);
    expect(starts.length).toBe(7);
  });

  it("is waited for by a drain", async () => {
    const bench = createBench(38);
    const { starts, job } = noting(bench);
    const quote = job("quote", { service: "pricing" });
    await bench.addMany(30, quote);
    const hired = bench.hire([quote], { services: limited({ limit: 10 }) });
    const counts = await bench.finish(hired.worker.drain({ graceMs: 100 }));
    expect(counts.completed).toBe(30);
    expect(starts.length).toBe(30);
  });
});

describe("a retry budget", () => {
  it("defers what it refuses, charges nothing for it, and lets first tries pass", async () => {
    const bench = createBench(39);
    let calls = 0;
    let down = true;
    const quote = defineJob("quote", {
      service: "pricing",
      maxAttempts: 4,
      backoff: fixed("100ms"),
      run() {
        calls += 1;
        if (down) throw refused();
      },
    });
    const services = { pricing: { breaker: false, budget: { share: 0, floorPerSecond: 1, capacity: 5 } } } as const;
    await bench.addMany(100, quote);
    await bench.employ([quote], { services, concurrency: 20 });
    await bench.advance(30_000);
    // 100 first tries, and a retry a second.
    expect(calls).toBeLessThanOrEqual(100 + 5 + 30);
    expect(calls).toBeGreaterThanOrEqual(100 + 25);
    expect(await bench.store.count()).toMatchObject({ dead: 0, queued: 100, running: 0 });
    down = false;
    await bench.advance(120_000);
    expect(await bench.store.count()).toMatchObject({ dead: 0, queued: 0, completed: 100 });
  });

  it("is filled by successes, those of first tries too", async () => {
    const bench = createBench(40);
    let retries = 0;
    const quote = defineJob("quote", {
      service: "pricing",
      maxAttempts: 20,
      backoff: fixed("100ms"),
      run(input, { job }) {
        if (job.attempts > 0) retries += 1;
        if (input === "bad" && job.attempts < 10) throw refused();
      },
    });
    const services = { pricing: { breaker: false, budget: { share: 0.5, floorPerSecond: 0 } } } as const;
    await bench.addMany(4, quote, { payload: '"bad"' });
    await bench.employ([quote], { services });
    await bench.advance(5_000);
    expect(retries).toBe(0);
    await bench.addMany(40, quote);
    await bench.advance(10_000);
    expect(retries).toBeGreaterThanOrEqual(18);
    expect(retries).toBeLessThanOrEqual(22);
  });
});

describe("a Retry-After", () => {
  it("holds the service until its end, and then lets it go on", async () => {
    const bench = createBench(41);
    const { starts, job } = noting(bench);
    let asked = false;
    const quote = job("quote", {
      service: "pricing",
      backoff: fixed("100ms"),
      run() {
        starts.push({ type: "quote", tenant: null, at: bench.world.now });
        if (asked) return;
        asked = true;
        throw Object.assign(new Error("slow down"), { status: 429, headers: { "retry-after": "30" } });
      },
    });
    await bench.add(quote);
    const hired = await bench.employ([quote], { services: { pricing: { breaker: false } } });
    await bench.until(() => starts.length === 1);
    const from = bench.world.now;
    await bench.advance(100);
    await bench.addMany(20, quote);
    await bench.advance(29_000);
    expect(starts.length).toBe(1);
    await bench.advance(1_500);
    expect(starts.length).toBeGreaterThanOrEqual(21);
    expect(Math.min(...timesOf(starts).slice(1))).toBeGreaterThanOrEqual(from + 30_000);
    expect(hired.heard("job.dead")).toEqual([]);
  });
});
