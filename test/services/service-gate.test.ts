// What becomes of single jobs whose service is down: who waits, who pays, and what a worker costs meanwhile. On virtual time.
import { describe, expect, it } from "vitest";
import { fixed } from "../../src/core/backoff.ts";
import { closed, heldFor } from "../../src/core/service-record.ts";
import { defineJob } from "../../src/jobs/define-job.ts";
import { around, createBench, cuttable, forever } from "../support/worker-bench.ts";
import type { Bench, Hired } from "../support/worker-bench.ts";
import {
  breaker,
  deaths,
  openByHand,
  QUICK,
  readAll,
  recordOf,
  refused,
  scene,
  states,
  write,
} from "../support/pricing-scene.ts";

describe("work whose breaker is open", () => {
  it("dies uncharged where it is to be dead-lettered", async () => {
    const { bench, quote, calls } = scene();
    const services = { pricing: { ...QUICK.pricing, whenOpen: "dead-letter" } } as const;
    await openByHand(bench, null);
    const ids = await bench.addMany(5, quote);
    const hired = await bench.employ([quote], { services });
    await bench.advance(2_000);
    for (const job of await readAll(bench, ids)) expect(job).toMatchObject({ state: "dead", attempts: 0 });
    expect(calls).toEqual([]);
    expect(deaths(hired)).toEqual(ids.map(() => "breaker"));
  });

  it("fails as an attempt where it is to fail", async () => {
    const { bench, quote, calls } = scene({ maxAttempts: 2 });
    const services = { pricing: { ...QUICK.pricing, whenOpen: "fail" } } as const;
    await openByHand(bench, null);
    const id = await bench.add(quote);
    const hired = await bench.employ([quote], { services });
    await bench.advance(200);
    expect(await bench.read(id)).toMatchObject({ state: "queued", attempts: 1 });
    await bench.advance(5_000);
    expect(await bench.read(id)).toMatchObject({ state: "dead", attempts: 2 });
    expect(deaths(hired)).toEqual(["exhausted"]);
    expect(calls).toEqual([]);
  });

  it("is probed all the same where it does not wait", async () => {
    const made = scene({ maxAttempts: 50 });
    const services = { pricing: { ...QUICK.pricing, whenOpen: "fail" } } as const;
    await made.bench.addMany(4, made.quote);
    const hired = await made.bench.employ([made.quote], { services });
    await made.bench.until(() => states(hired).includes("open"));
    made.down = false;
    await made.bench.advance(15_000);
    expect(states(hired)).toEqual(["open", "half_open", "closed"]);
    expect((await made.bench.store.count()).completed).toBe(4);
  });

  it("is given back uncharged when it was running and fails after the opening", async () => {
    const bench = createBench(22);
    let slow = 0;
    const quote = defineJob("quote", {
      service: "pricing",
      maxAttempts: 5,
      backoff: fixed("1m"),
      async run(input) {
        if (input === "slow") {
          slow += 1;
          await bench.sleep(5_000);
        }
        throw refused();
      },
    });
    const ids = await bench.addMany(4, quote, { payload: '"slow"' });
    await bench.employ([quote], { services: QUICK, concurrency: 10 });
    await bench.until(() => slow === 4);
    const quick = await bench.addMany(3, quote);
    await bench.advance(6_000);
    for (const job of await readAll(bench, ids)) expect(job).toMatchObject({ state: "queued", attempts: 0 });
    // The failure that opened it is no attempt either; those before it were.
    const charged = (await readAll(bench, quick)).reduce((sum, { attempts }) => sum + attempts, 0);
    expect(charged).toBeLessThanOrEqual(2);
  });

  it("is given back uncharged, and says nothing of the service, when it fails after the closing", async () => {
    const bench = createBench(23);
    const state = { isDown: true, slow: 0 };
    const quote = defineJob("quote", {
      service: "pricing",
      maxAttempts: 5,
      backoff: fixed("1h"),
      async run(input) {
        if (input === "slow") {
          state.slow += 1;
          await bench.sleep(60_000);
          throw refused();
        }
        if (state.isDown) throw refused();
      },
    });
    const ids = await bench.addMany(4, quote, { payload: '"slow"' });
    const hired = await bench.employ([quote], { services: QUICK, concurrency: 10 });
    await bench.until(() => state.slow === 4);
    await bench.addMany(6, quote);
    await bench.until(() => states(hired).includes("open"));
    state.isDown = false;
    await bench.until(() => states(hired).includes("closed"));
    await bench.until(() => state.slow === 8);
    await bench.advance(5_000);
    for (const job of await readAll(bench, ids)) expect(job).toMatchObject({ state: "running", attempts: 0 });
    expect(states(hired)).toEqual(["open", "half_open", "closed"]);
  });

  it("is given back uncharged also where the handlers of what hangs ignore their abort", async () => {
    const { bench, quote } = scene({ timeout: "5s", run: forever });
    const ids = await bench.addMany(20, quote);
    const hired = await bench.employ([quote], { services: QUICK, concurrency: 20, abortGrace: "1s" });
    await bench.advance(8_000);
    expect(states(hired)).toEqual(["open"]);
    const charged = (await readAll(bench, ids)).reduce((sum, { attempts }) => sum + attempts, 0);
    expect(charged).toBeLessThanOrEqual(3);
    expect(hired.worker.counts.leaked).toBe(20);
  });

  it("goes back at once when it was only fetched ahead", async () => {
    const made = scene({}, 40);
    made.down = false;
    const { bench } = made;
    await bench.addMany(2_000, made.quote);
    const hired = await bench.employ([made.quote], { services: QUICK, concurrency: 4 });
    await bench.advance(1_000);
    await openByHand(bench, null);
    await bench.until(() => states(hired).includes("isolated"), 2_000);
    await bench.advance(60);
    const { running } = await bench.store.count();
    expect(running).toBe(0);
    const started = made.calls.length;
    await bench.advance(5_000);
    expect(made.calls.length).toBe(started);
    expect((await bench.store.count()).dead).toBe(0);
  });

  it("keeps its deadline: the time it was parked does not count", async () => {
    const made = scene({ deadline: "20s" });
    const { bench } = made;
    await openByHand(bench, bench.world.now + 60_000);
    const id = await bench.add(made.quote);
    made.down = false;
    await bench.employ([made.quote], { services: QUICK });
    await bench.advance(58_000);
    expect(await bench.read(id)).toMatchObject({ state: "queued" });
    await bench.advance(10_000);
    expect(await bench.read(id)).toMatchObject({ state: "completed" });
  });

  it("keeps its deadline also while its service asked to be left alone", async () => {
    const made = scene({ deadline: "20s" });
    made.down = false;
    const { bench } = made;
    await write(bench, (record, now) => heldFor(record, 60_000, now));
    const id = await bench.add(made.quote);
    const hired = await bench.employ([made.quote], { services: QUICK });
    await bench.advance(58_000);
    expect(await bench.read(id)).toMatchObject({ state: "queued" });
    await bench.advance(5_000);
    expect(await bench.read(id)).toMatchObject({ state: "completed" });
    expect(deaths(hired)).toEqual([]);
  });

  it("has time that was both parked and paused taken off its deadline once", async () => {
    const made = scene({ deadline: "20s" });
    made.down = false;
    const { bench } = made;
    await openByHand(bench, null);
    await bench.store.pause({ kind: "type", name: "quote" }, { reason: "r", forMs: 60_000 });
    const id = await bench.add(made.quote);
    await bench.advance(60_000);
    await write(bench, (record, now) => closed(record, 0, now));
    await bench.advance(30_000);
    const hired = await bench.employ([made.quote], { services: QUICK });
    await bench.advance(2_000);
    expect(await bench.read(id)).toMatchObject({ state: "dead", attempts: 0 });
    expect(deaths(hired)).toEqual(["deadline"]);
  });
});

describe("a breaker", () => {
  it("that is off opens by nothing", async () => {
    const made = scene({ maxAttempts: 3 });
    await made.bench.addMany(30, made.quote);
    const hired = await made.bench.employ([made.quote], { services: { pricing: { breaker: false } } });
    await made.bench.advance(10_000);
    expect(states(hired)).toEqual([]);
    expect(made.calls.length).toBe(90);
    expect((await made.bench.store.count()).dead).toBe(30);
  });

  it("that was switched off while it was open lets its work go", async () => {
    const made = scene();
    const { bench } = made;
    await bench.addMany(5, made.quote);
    const hired = await bench.employ([made.quote], { services: QUICK });
    await bench.until(() => states(hired).includes("open"));
    await bench.finish(hired.worker.stop());
    made.down = false;
    await bench.employ([made.quote], { services: { pricing: { breaker: false } } });
    await bench.advance(60_000);
    expect((await bench.store.count()).completed).toBe(5);
  });

  it("that is off and opened by hand holds until its end", async () => {
    const made = scene();
    made.down = false;
    const { bench } = made;
    const from = bench.world.now;
    await openByHand(bench, from + 30_000);
    await bench.addMany(5, made.quote);
    await bench.employ([made.quote], { services: { pricing: { breaker: false } } });
    await bench.advance(29_000);
    expect(made.calls).toEqual([]);
    await bench.advance(3_000);
    expect(made.calls.length).toBe(5);
  });

  it("that was opened by hand without an end is not probed", async () => {
    const made = scene();
    made.down = false;
    await openByHand(made.bench, null);
    await made.bench.addMany(5, made.quote);
    await made.bench.employ([made.quote], { services: QUICK });
    await made.bench.advance(3_600_000);
    expect(made.calls).toEqual([]);
  });

  it("does not open by failures that say nothing of the service", async () => {
    const bench = createBench(25);
    const quote = defineJob("quote", {
      service: "pricing",
      run() {
        throw Object.assign(new Error("no such customer"), { status: 422 });
      },
    });
    await bench.addMany(40, quote);
    const hired = await bench.employ([quote], { services: QUICK });
    await bench.advance(5_000);
    expect(states(hired)).toEqual([]);
    expect((await bench.store.count()).dead).toBe(40);
  });
});

describe("a worker whose work is all parked", () => {
  async function parked(): Promise<{ bench: Bench; calls: Map<string, number>; hired: Hired }> {
    const made = scene();
    const calls = new Map<string, number>();
    const through = around(made.bench.store, (verb, next) => {
      calls.set(verb, (calls.get(verb) ?? 0) + 1);
      return next();
    });
    await openByHand(made.bench, null);
    await made.bench.addMany(100, made.quote);
    const hired = made.bench.hire([made.quote], { services: QUICK, through });
    return { bench: made.bench, calls, hired };
  }

  it("looks once a poll, no more", async () => {
    const { bench, calls, hired } = await parked();
    await bench.finish(hired.worker.start());
    await bench.advance(5_000);
    calls.clear();
    await bench.advance(60_000);
    expect(calls.get("lanes") ?? 0).toBeLessThanOrEqual(65);
    expect(calls.get("claim") ?? 0).toBe(0);
    expect([...calls.values()].reduce((sum, n) => sum + n, 0)).toBeLessThan(60 * 5);
  });

  it("ends its drain, and leaves the work where it is", async () => {
    const { bench, calls, hired } = await parked();
    const from = bench.world.now;
    const counts = await bench.finish(hired.worker.drain({ graceMs: 1_000 }));
    expect(counts.claimed).toBe(0);
    expect(bench.world.now - from).toBeLessThan(5_000);
    expect([...calls.values()].reduce((sum, n) => sum + n, 0)).toBeLessThan(60);
    expect((await bench.store.count()).queued).toBe(100);
  });
});

describe("a store that is away while failures are told", () => {
  it("loses nothing and leaves nothing stuck", async () => {
    const made = scene({ maxAttempts: 100 }, 30);
    const { bench } = made;
    const line = cuttable(bench.store);
    await bench.addMany(20, made.quote);
    const hired = await bench.employ([made.quote], { services: QUICK, through: line.store, lease: "1m" });
    for (let n = 0; n < 10; n++) {
      await bench.advance(35);
      line.away = true;
      await bench.advance(700);
      line.away = false;
      await bench.advance(1_500);
    }
    made.down = false;
    await bench.advance(180_000);
    expect(await bench.store.count()).toMatchObject({ queued: 0, running: 0, dead: 0, completed: 20 });
    await bench.finish(hired.worker.stop());
  });

  it.each(["setCells", "cells", "setService"] as const)("goes on after a %s that failed otherwise", async (broken) => {
    const made = scene({ maxAttempts: 100 });
    const { bench } = made;
    let left = 4;
    const through = around(bench.store, async (verb, next) => {
      if (verb === broken && left > 0) {
        left -= 1;
        throw new Error("syntax error at or near");
      }
      return next();
    });
    await bench.addMany(20, made.quote);
    await bench.employ([made.quote], { services: QUICK, through });
    await bench.advance(20_000);
    expect(left).toBeLessThan(4);
    made.down = false;
    await bench.advance(180_000);
    expect(await bench.store.count()).toMatchObject({ queued: 0, running: 0, dead: 0, completed: 20 });
  });
});

describe("news of a run", () => {
  it("counts once, however late its handler returns", async () => {
    const made = scene({ timeout: "100ms" }, 20_000);
    const { bench } = made;
    const services = { pricing: { ...QUICK.pricing, breaker: { ...breaker, failures: 4 } } };
    const { heard } = await bench.employ([made.quote], { concurrency: 5, services, abortGrace: "100ms" });
    await bench.addMany(2, made.quote, { maxAttempts: 1 });
    // Two time out, are settled over the heads of their handlers, and fail once more when these return.
    await bench.advance(30_000);
    expect(made.calls.length).toBe(2);
    expect(heard("job.dead").length).toBe(2);
    expect((await recordOf(bench)).breaker.state).toBe("closed");
  });

  it("that fails after somebody opened the breaker by hand is nobody's fault", async () => {
    const made = scene({}, 500);
    const { bench } = made;
    const { heard } = await bench.employ([made.quote], { concurrency: 1, services: QUICK, poll: "1h" });
    await bench.add(made.quote);
    await bench.advance(100);
    await openByHand(bench, null);
    await bench.until(() => heard("job.released").length === 1, 2_000);
    expect(heard("job.retried").length).toBe(0);
  });
});
