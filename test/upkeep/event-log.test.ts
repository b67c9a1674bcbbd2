// What workers write to the event log by themselves: releases they bring, workers the fleet gives up, breakers that open
// and close, and what retention deletes; each once, however many workers see it.
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { defineJob, fixed, PermanentError } from "../../src/index.ts";
import { PRESETS } from "../../src/core/policy.ts";
import { reap } from "../../src/upkeep/expired-runs.ts";
import { assemble } from "../../src/redrive.ts";
import type { LoggedEvent, Store } from "../../src/store/store.ts";
import { realSystem } from "../../src/system/real.ts";
import type { World } from "../conformance/suite.ts";
import { postgresWorld } from "../support/postgres-world.ts";
import { createBench, forever } from "../support/worker-bench.ts";
import { memoryWorld, sqliteWorld } from "../support/worlds.ts";

const WORLDS: readonly (readonly [string, () => Promise<World>])[] = [
  ["memory", memoryWorld],
  ["sqlite", sqliteWorld],
  ["postgres", () => postgresWorld(inject("postgres18"))],
];

const process = { pid: globalThis.process.pid, host: "here", isAlive: () => true };

const eventsOf = async (store: Store, kind: string): Promise<readonly LoggedEvent[]> =>
  (await store.events({ limit: 200, oldest: true, kind })).items;
const valueOf = ({ value }: LoggedEvent): unknown => JSON.parse(value);

describe.each(WORLDS)("a worker on %s", (_name, open) => {
  it("leaves one event for a release that the store has not seen before, and none without a release", async () => {
    const world = await open();
    const redrive = await assemble({ store: world.store, log: "silent" }, { system: realSystem, process });
    onTestFinished(async () => {
      await redrive.close();
      await world.close();
    });
    const seen = async (): Promise<(string | null)[]> =>
      (await eventsOf(world.store, "release.seen")).map(({ subject }) => subject);
    const start = async (release?: string): Promise<void> => {
      const worker = redrive.worker({ poll: 20, ...(release !== undefined && { release }) });
      await worker.start();
      await worker.stop();
    };
    await start();
    await Promise.all(["1.0", "1.0", "1.0"].map(start));
    await expect.poll(seen).toEqual(["release:1.0"]);
    await start("1.1");
    await expect.poll(seen).toEqual(["release:1.0", "release:1.1"]);
    await start("1.0");
    await start("1.2");
    await expect.poll(seen).toEqual(["release:1.0", "release:1.1", "release:1.2"]);
    expect((await eventsOf(world.store, "release.seen"))[0]).toMatchObject({ actor: null, why: null });
  });

  it("leaves one event for each round of retention that deleted something", async () => {
    const world = await open();
    const final = defineJob("final", {
      keep: { finished: 0, dead: 0 },
      run: (): void => {
        throw new PermanentError("never");
      },
    });
    const redrive = await assemble(
      { store: world.store, jobs: [final], log: "silent" },
      { system: realSystem, process },
    );
    onTestFinished(async () => {
      await redrive.close();
      await world.close();
    });
    await redrive.enqueueMany(final, [{}, {}, {}]);
    const drain = () => redrive.worker({ poll: 20 }).drain({ grace: 0 });
    await drain();
    world.clock.now += 1;
    await drain();
    await drain();
    const pruned = await eventsOf(world.store, "retention.pruned");
    expect(pruned.map(valueOf).reduce<number>((sum, value) => sum + (value as { dead: number }).dead, 0)).toBe(3);
    expect(pruned.length).toBeLessThanOrEqual(2);
    expect(pruned[0]).toMatchObject({ actor: null, why: null, subject: null });
    // The first round has told of the cause, too.
    expect((await world.store.events({ limit: 10 })).items).toHaveLength(pruned.length + 1);
  });
});

describe("a fleet", () => {
  it("leaves one event for a worker that it gave up, whoever noticed it", async () => {
    const bench = createBench();
    const job = defineJob("thumbnail", { run: forever });
    await bench.add(job);
    const times = { lease: "10s", heartbeat: "2s" } as const;
    const victim = await bench.employ([job], { ...times, release: "1.0" });
    await bench.advance(100);
    const gone = victim.worker.id;
    victim.actor.crash();
    const healthy = defineJob("thumbnail", { run: () => "done" });
    const hired: (typeof victim.worker)[] = [];
    for (let n = 0; n < 3; n++) hired.push((await bench.employ([healthy], times)).worker);
    await bench.until(() => hired.some(({ counts }) => counts.completed === 1));
    await bench.advance(30_000);
    const events = await eventsOf(bench.store, "worker.given_up");
    expect(events.map(({ subject }) => subject)).toEqual([`worker:${gone}`]);
    expect(valueOf(events[0] as LoggedEvent)).toEqual({
      host: expect.any(String) as string,
      pid: expect.any(Number) as number,
      release: "1.0",
      running: 1,
    });
  });
});

describe.each(WORLDS)("two reapers on %s", (_name, open) => {
  it("that give up a worker at the same moment leave one event", async () => {
    const world = await open();
    onTestFinished(() => world.close());
    const { store, clock } = world;
    await store.register({ id: "lost", leaseMs: 1_000, pid: 7, host: "there", release: "1.0" });
    clock.now += 1_001;
    await store.register({ id: "living", leaseMs: 1_000, pid: 8, host: "there", release: null });
    // Each has seen the worker before either gives it up.
    let looks = 0;
    let onBoth = (): void => undefined;
    const both = new Promise<void>((resolve) => (onBoth = resolve));
    const workers = async (): ReturnType<Store["workers"]> => {
      const found = await store.workers();
      if (++looks === 2) onBoth();
      await both;
      return found;
    };
    const reaper = (self: string): Promise<number> =>
      reap({
        store: { ...store, workers },
        system: realSystem,
        self,
        host: "here",
        isAlive: () => true,
        policyOf: () => PRESETS.default,
        leaseMs: 1_000,
        hasLasted: () => true,
        onTold: () => undefined,
        report: () => undefined,
      });
    await Promise.all([reaper("a"), reaper("b")]);
    const events = await eventsOf(store, "worker.given_up");
    expect(events).toMatchObject([{ actor: null, subject: "worker:lost" }]);
    expect(events.map(valueOf)).toMatchObject([{ host: "there", pid: 7, release: "1.0", running: 0 }]);
  });
});

describe.each(WORLDS)("a breaker on %s", (_name, open) => {
  it("leaves an event when evidence opens it and when a probe closes it, and none for a probe that fails", async () => {
    const world = await open();
    let down = true;
    let calls = 0;
    const call = defineJob("call", {
      service: "bank",
      maxAttempts: 50,
      backoff: fixed("1ms"),
      run: () => {
        calls += 1;
        if (down) throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
      },
    });
    const breaker = { failures: 3, openFor: "50ms", probes: 1, closeAfter: 1 } as const;
    // The store's clock goes with the real one here: a breaker waits by it.
    const from = { real: Date.now(), store: world.clock.now };
    const tick = setInterval(() => (world.clock.now = from.store + Date.now() - from.real), 5);
    const redrive = await assemble(
      { store: world.store, jobs: [call], services: { bank: { breaker, ramp: 0 } }, log: "silent" },
      { system: realSystem, process },
    );
    onTestFinished(async () => {
      await redrive.close();
      clearInterval(tick);
      await world.close();
    });
    await redrive.enqueueMany(call, [{}, {}, {}, {}, {}]);
    await redrive.worker({ poll: 10, concurrency: 5 }).start();
    const states = async (): Promise<unknown[]> =>
      (await eventsOf(world.store, "breaker.changed")).map((event) => (valueOf(event) as { after: string }).after);
    // At least one probe has failed by then.
    await expect.poll(() => calls, { timeout: 30_000 }).toBeGreaterThan(8);
    expect(await states()).toEqual(["open"]);
    down = false;
    await expect.poll(states, { timeout: 30_000 }).toEqual(["open", "closed"]);
    const [first] = await eventsOf(world.store, "breaker.changed");
    expect(first).toMatchObject({ actor: null, subject: "service:bank" });
    expect(valueOf(first as LoggedEvent)).toMatchObject({ before: "closed", reason: expect.any(String) });
  });
});
