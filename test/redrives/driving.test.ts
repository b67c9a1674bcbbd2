// Drivers of redrive runs on every store: killed at any moment, two at once, stopped, recalled, paused. Every letter is
// sent exactly once, and the books balance.
import { describe, expect, it } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { seededDice } from "../../src/testing/fake-system.ts";
import { again, die, Killed, mortal, opened, plain, program, settle, work, WORLDS } from "./worlds.ts";
import { complete, dead, failure } from "../support/verdicts.ts";
import { signUp, take } from "../support/runs.ts";

/** Every letter of a run, in the order of enqueue. */
async function lettersOf(store: Store, redrive: string) {
  const items = [];
  for (let cursor: string | null = null; ; ) {
    const page = await store.deadLetters({ redrive, sort: "enqueued", limit: 200, cursor });
    items.push(...page.items);
    if (page.next === null) return items;
    cursor = page.next;
  }
}

describe.each(WORLDS)("a redrive run on %s", (_, open) => {
  it("sends every letter once, in the order of enqueue, at most the rate in a second", async () => {
    const world = await opened(open);
    await die(world, plain(230));
    const ada = program(world, "ada");
    const worker = await signUp(world.store, 3_600_000);
    const plan = await ada.plan({ type: "charge" });
    const { id } = await ada.start(plan.id, { canary: "none", rate: 50 });
    for (let turns = 0; turns < 100 && (await ada.get(id)).state === "running"; turns++) {
      await ada.drive();
      await work(world, worker);
      world.clock.now += 300;
    }
    expect(await ada.get(id)).toMatchObject({ state: "completed", counts: { sent: 230, completed: 230, left: 0 } });
    const sent = (await lettersOf(world.store, id)).map(({ redrivenAt }) => redrivenAt as number);
    expect(sent).toEqual(sent.toSorted((a, b) => a - b));
    for (const [at, first] of sent.entries()) expect((sent[at + 50] ?? Infinity) - first).toBeGreaterThanOrEqual(1_000);
  });

  it("sends every letter exactly once, although its driver is killed at random moments", async () => {
    const world = await opened(open);
    const ids = await die(world, plain(60));
    const ada = program(world, "ada");
    const worker = await signUp(world.store, 3_600_000);
    const plan = await ada.plan({ type: "charge" });
    const { id } = await ada.start(plan.id, { canary: [3], rate: 10 });
    const bits = seededDice(7, "kills");
    let kills = 0;
    for (let lives = 0; lives < 80 && (await ada.get(id)).state === "running"; lives++) {
      const driver = program(world, `driver-${lives}`, mortal(world.store, 1 + (bits() % 12), bits() % 2 === 0));
      for (let turns = 0; turns < 6; turns++) {
        const isKilled = await driver.drive().then(
          () => false,
          (error: unknown) => error instanceof Killed || Promise.reject(error),
        );
        await work(world, worker);
        world.clock.now += isKilled ? 10_000 : 500;
        if (isKilled) kills += 1;
        if (isKilled) break;
      }
    }
    expect(kills).toBeGreaterThan(10);
    expect(await ada.get(id)).toMatchObject({ state: "completed", counts: { sent: 60, completed: 60 } });
    const jobs = await world.store.get(ids);
    expect(jobs.map((job) => [job?.state, job?.generation])).toEqual(ids.map(() => ["completed", 2]));
  });

  it("sends every letter exactly once with two drivers at the same moment", async () => {
    const world = await opened(open);
    const ids = await die(world, plain(60));
    const stores = [world.store, await world.peer()];
    const [ada, bob] = [program(world, "ada", stores[0]), program(world, "bob", stores[1])];
    const worker = await signUp(world.store, 3_600_000);
    const plan = await ada.plan({ type: "charge" });
    const { id } = await ada.start(plan.id, { canary: "none", rate: 10 });
    for (let turns = 0; turns < 100 && (await ada.get(id)).state === "running"; turns++) {
      // Neither has seen the lease of the other when both read the record.
      await Promise.all([ada.drive(), bob.drive()]);
      await work(world, worker);
      world.clock.now += turns % 3 === 0 ? 10_000 : 500;
    }
    expect(await ada.get(id)).toMatchObject({ state: "completed", counts: { sent: 60 } });
    const sent = (await lettersOf(world.store, id)).map(({ redrivenAt }) => redrivenAt as number);
    expect(sent).toHaveLength(60);
    for (const [at, first] of sent.entries()) expect((sent[at + 10] ?? Infinity) - first).toBeGreaterThanOrEqual(1_000);
    expect((await world.store.get(ids)).every((job) => job?.generation === 2)).toBe(true);
  });

  it("sends nothing once it was cancelled, although a driver was about to", async () => {
    const world = await opened(open);
    const ids = await die(world, plain(10));
    const ada = program(world, "ada");
    const { id } = await ada.start((await ada.plan({ type: "charge" })).id);
    const late: Store = {
      ...world.store,
      async redrive(...args) {
        await ada.cancel(id);
        return world.store.redrive(...args);
      },
    };
    await program(world, "bob", late).drive();
    expect(await ada.get(id)).toMatchObject({ state: "cancelled", counts: { sent: 0, left: 10 } });
    expect((await world.store.get(ids)).every((job) => job?.state === "dead")).toBe(true);
  });

  it("makes no burst when another driver takes over", async () => {
    const world = await opened(open);
    await die(world, plain(5));
    const [ada, bob] = [program(world, "ada"), program(world, "bob")];
    const { id } = await ada.start((await ada.plan({ type: "charge" })).id, { canary: "none", rate: 0.05 });
    await ada.drive();
    world.clock.now += 10_000;
    await bob.drive();
    await bob.drive();
    expect(await ada.get(id)).toMatchObject({
      driver: { worker: expect.stringContaining("follower") },
      counts: { sent: 1 },
    });
    world.clock.now += 10_000;
    await bob.drive();
    expect((await ada.get(id)).counts.sent).toBe(2);
  });

  it("sends nothing of the rest while a pause would hold it back", async () => {
    const world = await opened(open);
    await die(world, plain(5));
    const ada = program(world, "ada");
    const { id } = await ada.start((await ada.plan({ type: "charge" })).id, { canary: "none" });
    await world.store.pause({ kind: "type", name: "charge" }, { forMs: 60_000, reason: "" });
    for (let turns = 0; turns < 3; turns++) await ada.drive();
    const until = world.clock.now + 60_000;
    expect(await ada.get(id)).toMatchObject({
      waits: "the type charge is paused",
      waitsUntil: until,
      counts: { sent: 0 },
    });
    world.clock.now = until + 1;
    for (let turns = 0; turns < 3; turns++) await ada.drive();
    expect(await ada.get(id)).toMatchObject({ waits: "no worker is alive", counts: { sent: 5 } });
  });

  it("stops at the first that fails the same way, and takes back what no worker took", async () => {
    const world = await opened(open);
    const ids = await die(world, plain(100));
    const ada = program(world, "ada");
    const worker = await signUp(world.store, 3_600_000);
    const plan = await ada.plan({ fingerprint: "f1" });
    const { id } = await ada.start(plan.id, { canary: [20], rate: 100 });
    await ada.drive();
    world.clock.now += 1_000;
    const running = await take(world.store, worker, { limit: 3 });
    await settle(world.store, running.slice(0, 1), () => again());
    for (let turns = 0; turns < 5; turns++) await ada.drive();
    const stopped = await ada.get(id);
    expect(stopped).toMatchObject({ state: "stopped", recall: false, reason: "1 of 1 that ran failed the same way" });
    expect(stopped.counts).toMatchObject({ sent: 20, failed: 1, recalled: 17, pending: 2, left: 80 });
    await settle(world.store, running.slice(1), () => complete());
    expect((await ada.get(id)).counts).toMatchObject({ sent: 20, completed: 2, failed: 1, recalled: 17, pending: 0 });
    const states = (await world.store.get(ids)).map((job) => `${job?.state} ${job?.generation}`);
    const count = (text: string): number => states.filter((each) => each === text).length;
    expect([count("dead 1"), count("dead 2"), count("completed 2"), count("queued 2")]).toEqual([80, 17, 2, 1]);
    expect(await ada.get(id)).toMatchObject({ newDeaths: 0 });
  });

  it("takes back in the call of `recall` what was sent, where no worker and no driver lives", async () => {
    const world = await opened(open);
    await die(world, plain(30));
    const ada = program(world, "ada");
    const { id } = await ada.start((await ada.plan({ type: "charge" })).id, { canary: "none", rate: 10 });
    await ada.drive();
    const recalled = await ada.recall(id);
    expect(recalled).toMatchObject({
      state: "cancelled",
      recall: false,
      counts: { sent: 10, recalled: 10, pending: 0 },
    });
  });

  it("sends a job by its id once, although it dies again during the run", async () => {
    const world = await opened(open);
    const ids = await die(world, plain(12));
    const ada = program(world, "ada");
    const worker = await signUp(world.store, 3_600_000);
    const { id } = await ada.start((await ada.plan({ ids })).id, { canary: [6], rate: 100 });
    await ada.drive();
    world.clock.now += 1_000;
    const [first, ...others] = await take(world.store, worker);
    const otherwise = dead({ failure: failure({ fingerprint: "another" }) });
    await settle(world.store, first ? [first] : [], () => otherwise);
    await settle(world.store, others, () => complete());
    for (let turns = 0; turns < 20 && (await ada.get(id)).state === "running"; turns++) {
      world.clock.now += 1_000;
      await ada.drive();
      await work(world, worker);
    }
    expect(await ada.get(id)).toMatchObject({ state: "completed", counts: { sent: 12, completed: 11, failed: 1 } });
  });

  it("is paused, resumed, cancelled and recalled by operators", async () => {
    const world = await opened(open);
    await die(world, plain(40));
    const ada = program(world, "ada");
    const plan = await ada.plan({ type: "charge" });
    const { id } = await ada.start(plan.id, { canary: "none", rate: 10 });
    await ada.drive();
    expect(await ada.pause(id, { why: "lunch" })).toMatchObject({ state: "paused", reason: "pause by ada: lunch" });
    world.clock.now += 60_000;
    await ada.drive();
    expect((await ada.get(id)).counts).toMatchObject({ sent: 10, left: 30 });
    expect((await ada.resume(id)).state).toBe("running");
    await ada.drive();
    expect((await ada.get(id)).counts.sent).toBe(20);
    expect((await ada.recall(id)).state).toBe("cancelled");
    for (let turns = 0; turns < 3; turns++) await ada.drive();
    expect(await ada.get(id)).toMatchObject({ state: "cancelled", recall: false, counts: { sent: 20, recalled: 20 } });
    expect((await ada.list()).items.map((run) => run.id)).toEqual([id]);
    expect((await ada.list({ state: "running" })).items).toEqual([]);
    await expect(ada.resume(id)).rejects.toMatchObject({ code: "illegal_transition" });
  });

  it("keeps the dead from being deleted while it needs them, for seven days", async () => {
    const world = await opened(open);
    await die(
      world,
      plain(3).map(() => ({ keepDeadMs: 1_000 })),
    );
    const ada = program(world, "ada");
    const { holdsDead } = await import("../../src/upkeep/run-cells.ts");
    expect(await holdsDead(world.store)).toBe(false);
    const { id } = await ada.start((await ada.plan({ type: "charge" })).id);
    await ada.pause(id);
    world.clock.now += 6 * 86_400_000;
    expect(await holdsDead(world.store)).toBe(true);
    world.clock.now += 2 * 86_400_000;
    expect(await holdsDead(world.store)).toBe(false);
  });
});
