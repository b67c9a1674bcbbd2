// What a store reads when it is asked what holds work back: everything after a change, a version where nothing has changed.
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { type ControlNews, rememberControl } from "../../src/store/control.ts";
import type { World } from "../conformance/suite.ts";
import { postgresWorld } from "../support/postgres-world.ts";
import { sqliteWorld } from "../support/worlds.ts";

const STORES: readonly (readonly [string, () => Promise<World>])[] = [
  ["sqlite", sqliteWorld],
  ["postgres", () => postgresWorld(inject("postgres18"))],
];
const TENANT = { kind: "tenant", name: "acme" } as const;

describe.each(STORES)("what holds work back on %s", (_name, open) => {
  it("is read anew after a change, and after a while", async () => {
    const { store, clock, close } = await open();
    onTestFinished(close);
    await store.pause(TENANT, { forMs: null, reason: "r" });
    await store.setService("s", 0, "{}");
    const first = await store.control();
    clock.now += 1_000;
    const second = await store.control();
    expect(second).toEqual({ ...first, now: first.now + 1_000 });
    // The very same lists: nothing was read but a version.
    expect(second.pauses).toBe(first.pauses);
    expect(second.services).toBe(first.services);
    await store.setService("s", 1, "[]");
    const third = await store.control();
    expect(third.version).toBeGreaterThan(second.version);
    expect(third.services).toMatchObject([{ name: "s", version: 2, value: "[]" }]);
    clock.now += 5_000;
    const fourth = await store.control();
    expect(fourth.pauses).not.toBe(third.pauses);
    expect(fourth).toEqual({ ...third, now: third.now + 5_000 });
  });

  it("is read anew when old pauses are pruned", async () => {
    const { store, clock, close } = await open();
    onTestFinished(close);
    await store.pause(TENANT, { forMs: 1, reason: "r" });
    clock.now += 2_000;
    expect((await store.control()).pauses).toHaveLength(1);
    const keep = { finishedMs: 0, deadMs: 1_000 };
    await store.prune({ keep, types: [], keyMs: 0, limit: 1, isFirst: true });
    expect((await store.control()).pauses).toEqual([]);
  });
});

it("keeps apart what questions asked at the same time knew", async () => {
  const asked: [known: number, answer: (news: ControlNews) => void][] = [];
  const control = rememberControl((known) => new Promise((resolve) => asked.push([known, resolve])));
  const held = (name: string) => ({ pauses: [], services: [{ name, version: 1, value: "{}" }] });
  const first = control();
  asked[0]?.[1]({ version: 1, now: 1, held: held("one") });
  await first;
  const [early, late] = [control(), control()];
  expect(asked.map(([known]) => known)).toEqual([0, 1, 1]);
  asked[2]?.[1]({ version: 2, now: 3, held: held("two") });
  expect((await late).services).toMatchObject([{ name: "two" }]);
  asked[1]?.[1]({ version: 1, now: 2, held: null });
  expect(await early).toMatchObject({ version: 1, services: [{ name: "one" }] });
  void control();
  expect(asked.at(-1)?.[0]).toBe(2);
});
