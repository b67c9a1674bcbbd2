// The scenes of an outage on Postgres, in real time and shorter: several members of a fleet in one process, each with a
// pool of its own. Judged by the clock, so `npm run prove -- timed` plays them; the tests do so on virtual time.
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { createRedrive, defineJob, type Redrive, type RedriveOptions } from "../../src/index.ts";
import { startFlakyServer } from "../support/flaky-server.ts";
import { openQueue, testPool } from "../support/postgres-queue.ts";
import { mostInASecond } from "./service-outage-scenes.ts";

/** A service over HTTP, and the job that calls it. */
async function startService() {
  const service = await startFlakyServer();
  const quote = defineJob("quote", {
    service: "pricing",
    maxAttempts: 3,
    async run(_, { signal }) {
      const response = await fetch(service.url, { signal });
      await response.arrayBuffer();
      if (!response.ok) throw Object.assign(new Error(`HTTP ${response.status}`), { status: response.status });
    },
  });
  return { ...service, quote };
}

type Options = Omit<RedriveOptions, "store">;

/** A fleet on one schema; its members stop with the test. Each may have options of its own. */
async function fleet(size: number, options: Options | ((member: number) => Options), concurrency = 10) {
  const of = typeof options === "function" ? options : () => options;
  const { redrive, url } = await openQueue(inject("postgres18"), of(0));
  const members: Redrive[] = [redrive];
  while (members.length < size) members.push(await createRedrive({ log: "silent", ...of(members.length), store: url }));
  for (const member of members.slice(1)) onTestFinished(() => member.close());
  const workers = members.map((member) => member.worker({ concurrency, poll: "100ms" }));
  await Promise.all(workers.map((worker) => worker.start()));
  const sum = (field: "retried" | "dead" | "completed") =>
    workers.reduce((total, { counts }) => total + counts[field], 0);
  return { redrive, url, members, workers, sum };
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function until(condition: () => boolean, what: string, withinMs = 20_000): Promise<void> {
  for (let waited = 0; waited < withinMs; waited += 25) {
    if (condition()) return;
    await pause(25);
  }
  expect.fail(`waited in vain until ${what}`);
}

/** For how long in a time neither this process nor the server moved: they are asked for an answer all the time. */
function watchStandstill(): (from: number, to: number) => number {
  const pool = testPool(inject("postgres18"), 1);
  const stalls: { readonly at: number; readonly ms: number }[] = [];
  let isOn = true;
  const watching = (async () => {
    while (isOn) {
      const at = performance.now();
      await pause(5);
      await pool.query("select 1");
      const ms = performance.now() - at - 5;
      if (ms > 20) stalls.push({ at, ms });
    }
  })();
  onTestFinished(() => {
    isOn = false;
    return watching;
  });
  return (from, to) => stalls.filter(({ at }) => at >= from && at < to).reduce((sum, { ms }) => sum + ms, 0);
}

describe("a service that is down, on postgres", () => {
  it("costs hardly an attempt and no dead letter, stays parked with other workers, and comes back", async () => {
    const { calls, state, quote } = await startService();
    const services = { pricing: { breaker: { openFor: "1s" }, ramp: "2s" } } as const;
    const first = await fleet(2, { jobs: [quote], services });
    const add = (count: number) =>
      first.redrive.enqueueMany(
        quote,
        Array.from({ length: count }, () => null),
      );
    await add(100);
    await until(() => first.sum("completed") === 100, "all is well");
    let isOpen = false;
    first.redrive.on("breaker.changed", (event) => void (isOpen ||= event.state === "open"));
    state.down = true;
    for (let tenth = 0; tenth < 20; tenth++) {
      await add(5);
      await pause(100);
    }
    // Where one worker had all of it, the other is heard for two seconds before.
    await until(() => isOpen, "the breaker is open");
    const opened = calls.filter(({ ok }) => !ok).length;
    // Ten in a row open it; what was running then is uncharged, and probes come once a second.
    expect(opened).toBeLessThanOrEqual(10 + 20 + 3 * 3);
    expect(first.sum("retried")).toBeLessThanOrEqual(10 + 20);
    await Promise.all(first.workers.map((worker) => worker.stop()));
    const before = calls.length;
    const second = await createRedrive({ store: first.url, jobs: [quote], services, log: "silent" });
    onTestFinished(() => second.close());
    const worker = second.worker({ concurrency: 10, poll: "100ms" });
    await worker.start();
    await pause(1_500);
    expect(calls.length - before).toBeLessThanOrEqual(2 * 3);
    state.down = false;
    await until(() => worker.counts.completed + first.sum("completed") === 200, "everything has completed");
    expect(first.sum("dead") + worker.counts.dead).toBe(0);
  });

  // Real time: a process that stands still for a moment sends together what it started one by one, so it may be tried again.
  it("holds a rate limit in every second by the service's own clock, and uses it", { retry: 2 }, async () => {
    const { calls, quote } = await startService();
    const { redrive } = await fleet(8, { jobs: [quote], services: { pricing: { rateLimit: { limit: 100 } } } });
    const standstill = watchStandstill();
    await redrive.enqueueMany(
      quote,
      Array.from({ length: 500 }, () => null),
    );
    await until(() => calls.length >= 450, "most have run");
    const times = calls.map(({ at }) => at);
    expect(mostInASecond(times)).toBeLessThanOrEqual(105);
    // The first second is that in which they begin.
    for (const second of [1, 2, 3]) {
      const from = (times[0] as number) + second * 1_000;
      const used = times.filter((at) => at >= from && at < from + 1_000).length;
      // What falls due while nothing moves is lost, not made up for.
      const lost = standstill(from, from + 1_000) / 10;
      expect(used + lost, `second ${second}: ${used} used, ${Math.round(lost)} lost`).toBeGreaterThanOrEqual(95);
    }
  });

  it("is not thought to be down because one of eight workers is out of its reach", { timeout: 60_000 }, async () => {
    const runs = Array.from({ length: 8 }, () => 0);
    const heard: string[] = [];
    const quoteOf = (member: number) =>
      defineJob("quote", {
        service: "pricing",
        maxAttempts: 20,
        async run() {
          runs[member] = (runs[member] as number) + 1;
          // The network of one is broken from the start: it has failed ten times before another one is answered at all.
          if (member === 7) throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
          for (let waited = 0; waited < 5_000 && (runs[7] as number) < 10; waited += 20) await pause(20);
          await pause(runs[member] === 1 ? 300 : 20);
        },
      });
    const { redrive, members, sum } = await fleet(8, (member) => ({ jobs: [quoteOf(member)] }), 2);
    for (const [member, { on }] of members.entries()) {
      on("breaker.changed", ({ state }) => void heard.push(state));
      on("worker.sick", () => void heard.push(`sick ${member}`));
    }
    const isSeen = (): boolean => heard.length > 0 && sum("completed") > 500;
    for (let batch = 0; batch < 200 && !isSeen(); batch++) {
      await redrive.enqueueMany(
        "quote",
        Array.from({ length: batch === 0 ? 400 : 40 }, () => null),
        { each: () => ({ service: "pricing" }) },
      );
      await pause(100);
    }
    await until(isSeen, "one is sick and the others work");
    expect(new Set(heard)).toEqual(new Set(["sick 7"]));
    expect(runs[7]).toBeLessThan(runs.reduce((total, each) => total + each, 0) / 5);
  });
});

describe("a tenant that floods the queue, on postgres", () => {
  it("keeps nobody else waiting, and shares with one that has much", { timeout: 60_000 }, async () => {
    const started: { readonly tenant: string | null; readonly at: number }[] = [];
    const slow = defineJob("slow", {
      async run(_, { job }) {
        started.push({ tenant: job.tenant, at: performance.now() });
        await pause(50);
      },
    });
    const of = (tenant: string) => started.filter((start) => start.tenant === tenant);
    const { redrive } = await fleet(2, { jobs: [slow] });
    const add = (count: number, tenant: string) =>
      redrive.enqueueMany(
        slow,
        Array.from({ length: count }, () => null),
        { each: () => ({ tenant }) },
      );
    await add(5_000, "a");
    const waits: number[] = [];
    for (let arrival = 1; arrival <= 10; arrival++) {
      await pause(100);
      await redrive.enqueue(slow, null, { tenant: "b" });
      const from = performance.now();
      await until(() => of("b").length === arrival, "b had its turn");
      waits.push((of("b")[arrival - 1] as { at: number }).at - from);
    }
    // Real time on a busy machine: one slow answer says nothing, the middle does. On virtual time all are within it.
    expect(waits.toSorted((a, b) => a - b)[5]).toBeLessThanOrEqual(250);
    await add(1_000, "b");
    const [a, b] = [of("a").length, of("b").length];
    await pause(2_000);
    const [others, own] = [of("a").length - a, of("b").length - b];
    expect(own / (own + others)).toBeGreaterThanOrEqual(0.45);
    expect(own / (own + others)).toBeLessThanOrEqual(0.55);
  });
});
