// The scenes of an outage on Postgres, in real time and shorter: several members of a fleet in one process, each with a
// pool of its own.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { createRedrive, defineJob, fixed, type Redrive, type RedriveOptions } from "../../src/index.ts";
import { openQueue } from "../support/postgres-queue.ts";
import { mostInASecond } from "./service-outage-scenes.ts";

interface Call {
  readonly at: number;
  readonly ok: boolean;
}

/** A service over HTTP, with a clock of its own. */
async function startService() {
  const calls: Call[] = [];
  const state = { down: false };
  const server = createServer((_, response) => {
    calls.push({ at: performance.now(), ok: !state.down });
    response.writeHead(state.down ? 503 : 200).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const quote = defineJob("quote", {
    service: "pricing",
    maxAttempts: 3,
    async run(_, { signal }) {
      const response = await fetch(url, { signal });
      await response.arrayBuffer();
      if (!response.ok) throw Object.assign(new Error(`HTTP ${response.status}`), { status: response.status });
    },
  });
  return { calls, state, quote };
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
    state.down = true;
    for (let tenth = 0; tenth < 20; tenth++) {
      await add(5);
      await pause(100);
    }
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
  it("holds a rate limit in every second by the service's own clock", { retry: 2 }, async () => {
    const { calls, quote } = await startService();
    const { redrive } = await fleet(4, { jobs: [quote], services: { pricing: { rateLimit: { limit: 100 } } } });
    await redrive.enqueueMany(
      quote,
      Array.from({ length: 600 }, () => null),
    );
    await until(() => calls.length >= 500, "most have run");
    const times = calls.map(({ at }) => at);
    expect(mostInASecond(times)).toBeLessThanOrEqual(105);
    // A slot that comes too late on a busy machine is lost, not made up for; on virtual time 95 of 100 are used.
    const tookS = ((times[499] as number) - (times[99] as number)) / 1000;
    expect(400 / tookS).toBeGreaterThan(40);
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

  it("gets no more retries than its budget, from eight workers too", { timeout: 60_000 }, async () => {
    const tries = { first: 0, again: 0 };
    const quote = defineJob("quote", {
      service: "pricing",
      maxAttempts: 20,
      backoff: fixed("100ms"),
      run(_, { attempt }) {
        tries[attempt === 1 ? "first" : "again"] += 1;
        throw Object.assign(new Error("HTTP 503"), { status: 503 });
      },
    });
    const budget = { share: 0.2, floorPerSecond: 2, capacity: 10 };
    const { redrive } = await fleet(8, { jobs: [quote], services: { pricing: { breaker: false, budget } } }, 5);
    const from = performance.now();
    await redrive.enqueueMany(
      quote,
      Array.from({ length: 300 }, () => null),
    );
    await until(() => tries.first === 300 && tries.again > 12, "some were tried again");
    await pause(2_000);
    const seconds = (performance.now() - from) / 1000;
    expect(tries.again).toBeLessThanOrEqual(10 + 2 * seconds);
    const { queued, running, dead } = await redrive.jobs.count();
    expect([queued + running, dead]).toEqual([300, 0]);
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
    expect(own / (own + others)).toBeGreaterThanOrEqual(0.4);
    expect(own / (own + others)).toBeLessThanOrEqual(0.6);
  });
});
