// The world keeps its word: virtual time, dice from the seed, actors that can be crashed and paused, equal histories.
import { getEventListeners } from "node:events";
import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "vitest";
import { STORES, simulate } from "./simulate.ts";
import { type Actor, createWorld, GENESIS } from "./world.ts";

describe("virtual time", () => {
  it("passes only while everybody waits", async () => {
    const world = createWorld(1);
    const seen: number[] = [];
    world.spawn("a", async ({ system }) => {
      await system.sleep(1000);
      for (let i = 0; i < 50; i++) await Promise.resolve();
      seen.push(world.now - GENESIS);
    });
    world.spawn("b", async ({ system }) => {
      await system.sleep(1001);
      seen.push(world.now - GENESIS);
    });
    await world.run(GENESIS + 5000);
    expect(seen).toEqual([1000, 1001]);
    expect(world.now).toBe(GENESIS + 5000);
  });

  it("runs what falls on one moment in the order in which it was asked for", async () => {
    const world = createWorld(1);
    const seen: number[] = [];
    world.spawn("a", async ({ system }) => {
      for (const i of [1, 2, 3]) system.after(10, () => seen.push(i));
    });
    await world.run(GENESIS + 10);
    expect(seen).toEqual([1, 2, 3]);
  });

  it("ends a sleep early when its signal fires", async () => {
    const world = createWorld(1);
    const abort = new AbortController();
    let woke = 0;
    world.spawn("a", async ({ system }) => {
      system.after(20, () => abort.abort());
      await system.sleep(1000, abort.signal);
      woke = system.monotonic();
    });
    await world.run(GENESIS + 5000);
    expect(woke).toBe(20);
  });

  it("leaves nothing behind on a signal after a sleep that ended by itself", async () => {
    const world = createWorld(1);
    const { signal } = new AbortController();
    world.spawn("a", async ({ system }) => {
      for (let i = 0; i < 100; i++) await system.sleep(10, signal);
    });
    await world.run(GENESIS + 5000);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  it("holds still until real work is done", async () => {
    const world = createWorld(1);
    let seen = 0;
    world.spawn("a", async ({ system }) => {
      await world.hold(new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve))));
      seen = world.now - GENESIS;
      await system.sleep(1);
    });
    await world.run(GENESIS + 100);
    expect(seen).toBe(0);
  });
});

describe("an actor", () => {
  const ticking =
    (ticks: number[]) =>
    async ({ system }: Actor) => {
      for (;;) {
        await system.sleep(10);
        ticks.push(system.monotonic());
      }
    };

  it("does nothing after a crash", async () => {
    const world = createWorld(1);
    const ticks: number[] = [];
    const actor = world.spawn("a", ticking(ticks));
    await world.run(GENESIS + 25);
    actor.crash();
    await world.run(GENESIS + 500);
    expect(ticks).toEqual([10, 20]);
  });

  it("ends without a crash when it exits, and says so to whoever listens", async () => {
    const world = createWorld(1);
    const ticks: number[] = [];
    const heard: string[] = [];
    const actor = world.spawn("a", ticking(ticks));
    actor.onEnd(() => heard.push("end"));
    actor.onCrash(() => heard.push("crash"));
    await world.run(GENESIS + 15);
    actor.exit();
    await world.run(GENESIS + 500);
    expect({ ticks, heard, crashes: world.stats.crashes }).toEqual({ ticks: [10], heard: ["end"], crashes: 0 });
  });

  it("is held while paused and goes on afterwards", async () => {
    const world = createWorld(1);
    const ticks: number[] = [];
    const actor = world.spawn("a", ticking(ticks));
    await world.run(GENESIS + 15);
    actor.pause(100);
    await world.run(GENESIS + 130);
    expect(ticks).toEqual([10, 115, 125]);
  });

  it("has a clock of its own that can be wrong, and a steady one that cannot", async () => {
    const world = createWorld(1);
    const actor = world.spawn("a", async () => {});
    actor.skew(-60_000);
    await world.run(GENESIS + 10);
    expect(actor.system.now()).toBe(GENESIS + 10 - 60_000);
    expect(actor.system.monotonic()).toBe(10);
  });

  it("makes ascending ids even when its clock steps back", () => {
    const actor = createWorld(1).spawn("a", async () => {});
    const first = actor.system.jobId();
    actor.skew(-60_000);
    expect(actor.system.jobId() > first).toBe(true);
  });

  it("fails the run with what its body throws", async () => {
    const world = createWorld(1);
    world.spawn("a", async () => {
      throw new Error("broken");
    });
    await expect(world.run(GENESIS + 1)).rejects.toThrow("broken");
  });
});

describe("a seed", () => {
  for (const store of STORES) {
    it(`gives the same history twice on ${store}, and another seed another one`, async () => {
      const hashes: number[] = [];
      for (const seed of [7, 7, 8]) hashes.push((await simulate({ store, seed })).scribe.hash());
      expect(hashes[1]).toBe(hashes[0]);
      expect(hashes[2]).not.toBe(hashes[0]);
    });
  }

  it("gives the same history on both stores", async () => {
    for (let seed = 1; seed <= 8; seed++) {
      const memory = await simulate({ store: "memory", seed });
      const sqlite = await simulate({ store: "sqlite", seed });
      const at = memory.scribe.events.findIndex((event, i) => !isDeepStrictEqual(event, sqlite.scribe.events[i]));
      expect(sqlite.scribe.events[at], `seed ${seed}`).toEqual(memory.scribe.events[at]);
      expect(sqlite.dump, `seed ${seed}`).toEqual(memory.dump);
    }
  });
});
