// The jobs that try a service whose breaker is open: which, how many, and what their end means. On virtual time.
import { describe, expect, it } from "vitest";
import type { BreakerSettings } from "../../src/core/breaker.ts";
import { RedriveError } from "../../src/core/errors.ts";
import type { ActiveLane } from "../../src/core/lane.ts";
import { resolveLimits } from "../../src/core/service.ts";
import { initialRecord, opened, type ServiceRecord, withProbe } from "../../src/core/service-record.ts";
import { defineJob } from "../../src/jobs/define-job.ts";
import type { Store } from "../../src/store/store.ts";
import { Gate } from "../../src/services/service-gate.ts";
import { createBench, forever } from "../support/worker-bench.ts";
import { openByHand, QUICK, readAll, recordOf, scene, states } from "../support/pricing-scene.ts";

describe("a probe", () => {
  it("that waits for a record which others hold keeps no other work waiting, and breaks no contact", async () => {
    const made = scene();
    const { bench } = made;
    const held = new RedriveError("store_unavailable", "held", { details: { key: "locked" } });
    let asked = 0;
    const through: Store = {
      ...bench.store,
      setService: async () => {
        asked += 1;
        await bench.sleep(12_000);
        throw held;
      },
    };
    const plain = defineJob("plain", { run: () => undefined });
    await openByHand(bench, bench.world.now + 1_000);
    await bench.add(made.quote);
    const hired = await bench.employ([made.quote, plain], { services: QUICK, through });
    await bench.until(() => asked === 1);
    await bench.addMany(100, plain);
    await bench.until(() => hired.worker.counts.completed === 100, 3_000);
    await bench.advance(30_000);
    expect(asked).toBeLessThan(5);
    expect(hired.worker.isReady).toBe(true);
    expect(hired.said("the store is back")).toEqual([]);
  });

  it("that fails is uncharged and goes behind the others", async () => {
    const made = scene();
    const { bench, calls } = made;
    await openByHand(bench, bench.world.now + 1_000);
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) {
      ids.push(await bench.add(made.quote));
      await bench.advance(5);
    }
    const hired = await bench.employ([made.quote], { services: QUICK, concurrency: 5 });
    await bench.advance(35_000);
    // One at the end of each ten seconds, each time another job.
    expect(calls.map(({ id }) => id)).toEqual([ids[0], ids[1], ids[2], ids[0]]);
    for (const job of await readAll(bench, ids)) expect(job).toMatchObject({ state: "queued", attempts: 0 });
    expect(hired.heard("job.retried")).toEqual([]);
    expect(states(hired).slice(0, 4)).toEqual(["isolated", "half_open", "open", "half_open"]);
  });

  it("whose handler ignores its abort is uncharged too", async () => {
    const { bench, quote } = scene({ timeout: "1s", maxAttempts: 3, run: forever });
    await openByHand(bench, bench.world.now + 1_000);
    const ids = await bench.addMany(2, quote);
    const hired = await bench.employ([quote], { services: QUICK, concurrency: 50, abortGrace: "500ms" });
    await bench.advance(120_000);
    expect(states(hired).filter((state) => state === "half_open").length).toBeGreaterThan(5);
    for (const job of await readAll(bench, ids)) expect(job).toMatchObject({ state: "queued", attempts: 0 });
    expect(hired.worker.counts.leaked).toBeGreaterThan(5);
  });

  it("that is lost with its worker expires, and another one is sent", async () => {
    const bench = createBench(23);
    const started: string[] = [];
    const hang = defineJob("quote", {
      service: "pricing",
      async run() {
        started.push("lost");
        await forever();
      },
    });
    const good = defineJob("quote", { service: "pricing", run: () => void started.push("good") });
    await openByHand(bench, bench.world.now + 1_000);
    await bench.addMany(3, "quote", { service: "pricing" });
    const first = await bench.employ([hang], { services: QUICK, lease: "5s", heartbeat: "1s" });
    await bench.until(() => started.length === 1);
    first.actor.crash();
    await bench.employ([good], { services: QUICK, lease: "5s", heartbeat: "1s" });
    await bench.advance(4_000);
    expect(started).toEqual(["lost"]);
    await bench.advance(20_000);
    expect(started).toEqual(["lost", "good", "good", "good"]);
    expect((await recordOf(bench)).breaker.state).toBe("closed");
  });

  it("that fails for a reason of its own opens nothing and closes nothing", async () => {
    const bench = createBench(24);
    let runs = 0;
    const quote = defineJob("quote", {
      service: "pricing",
      run() {
        runs += 1;
        if (runs <= 3) throw Object.assign(new Error("no such customer"), { status: 422 });
      },
    });
    await openByHand(bench, bench.world.now + 1_000);
    await bench.addMany(5, quote);
    const hired = await bench.employ([quote], { services: QUICK });
    await bench.advance(10_000);
    expect(states(hired)).toEqual(["isolated", "half_open", "closed"]);
    expect(await bench.store.count()).toMatchObject({ dead: 3, completed: 2 });
  });

  it("is not taken for work that is paused", async () => {
    const made = scene();
    made.down = false;
    const { bench } = made;
    const paused = defineJob("paused", { service: "pricing", run: () => undefined });
    await bench.store.pause({ kind: "type", name: "paused" }, { reason: "r", forMs: null });
    await openByHand(bench, bench.world.now + 1_000);
    await bench.add(paused);
    await bench.employ([paused], { services: QUICK });
    await bench.advance(3_000);
    expect((await recordOf(bench)).breaker.state).toBe("isolated");
    await bench.add(made.quote);
    await bench.employ([made.quote], { services: QUICK });
    await bench.advance(1_500);
    expect(made.calls.length).toBe(1);
  });

  it("is not sent once the breaker has opened again, nor when others probe it the next time", async () => {
    const limits = resolveLimits({ services: QUICK });
    const settings = limits.service("pricing").breaker as BreakerSettings;
    let record = opened(initialRecord, "down", settings, 0);
    const watch = {
      now: 20_000,
      record: () => record,
      change: async (_service: string, change: (record: ServiceRecord, now: number) => ServiceRecord) => {
        record = change(record, watch.now);
        return true;
      },
    };
    const gate = new Gate({
      watch: watch as never,
      limits,
      worker: () => "w",
      probeMs: 60_000,
      system: { after: () => () => undefined },
    });
    await gate.probe([{ service: "pricing" } as ActiveLane]);
    expect(gate.grant("pricing")).toBe(1);
    record = opened(record, "a probe failed", settings, watch.now);
    expect(gate.grant("pricing")).toBe(0);
    watch.now += 15_000;
    record = withProbe(record, "another worker", 60_000, watch.now);
    expect(gate.grant("pricing")).toBe(0);
  });
});
