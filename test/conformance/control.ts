// Pauses and services: what holds work back, and the version that ties a claim to them.
import { expect } from "vitest";
import type { Pause, PauseTarget, Store } from "../../src/store/store.ts";
import { add, start, take } from "../support/runs.ts";
import type { Suite } from "./suite.ts";

const QUEUE: PauseTarget = { kind: "queue", name: "default" };

const versionOf = async (store: Store): Promise<number> => (await store.control()).version;

/** The pauses in force by the store's clock. */
async function inForce(store: Store): Promise<Pause[]> {
  const { now, pauses } = await store.control();
  return pauses.filter(({ from, until }) => from <= now && (until === null || now < until));
}

/** Tests of control, pause and resume. */
export function pauseFacts({ fact, timed }: Suite): void {
  timed("starts with nothing held back", async ({ store, clock }) => {
    expect(await store.control()).toMatchObject({ now: clock.now, pauses: [], services: [] });
  });

  timed("pauses until somebody resumes", async ({ store, clock }) => {
    await store.pause(QUEUE, { forMs: null, reason: "incident 12" });
    expect(await inForce(store)).toEqual([{ ...QUEUE, from: clock.now, until: null, reason: "incident 12" }]);
    clock.now += 86_400_000;
    expect(await inForce(store)).toHaveLength(1);
    expect(await store.resume(QUEUE)).toBe(true);
    expect(await inForce(store)).toEqual([]);
  });

  timed("pauses for a time", async ({ store, clock }) => {
    await store.pause(QUEUE, { forMs: 5_000, reason: "deploy" });
    expect(await inForce(store)).toEqual([{ ...QUEUE, from: clock.now, until: clock.now + 5_000, reason: "deploy" }]);
    clock.now += 4_999;
    expect(await inForce(store)).toHaveLength(1);
    clock.now += 1;
    expect(await inForce(store)).toEqual([]);
    expect(await store.resume(QUEUE)).toBe(false);
  });

  timed("keeps an ended pause with its end, because deadlines do not count it", async ({ store, clock }) => {
    const from = clock.now;
    await store.pause(QUEUE, { forMs: null, reason: "incident" });
    clock.now += 700;
    await store.resume(QUEUE);
    clock.now += 700;
    expect((await store.control()).pauses).toEqual([{ ...QUEUE, from, until: from + 700, reason: "incident" }]);
  });

  timed("lets a second pause take the place of the first", async ({ store, clock }) => {
    const from = clock.now;
    await store.pause(QUEUE, { forMs: null, reason: "first" });
    clock.now += 500;
    await store.pause(QUEUE, { forMs: 1_000, reason: "second" });
    expect(await inForce(store)).toMatchObject([{ ...QUEUE, until: from + 1_500, reason: "second" }]);
    clock.now += 1_000;
    expect(await inForce(store)).toEqual([]);
    const held = (await store.control()).pauses;
    expect(Math.min(...held.map((pause) => pause.from))).toBe(from);
  });

  fact("keeps targets of one name apart", async ({ store }) => {
    for (const kind of ["queue", "type", "service", "tenant"] as const) {
      await store.pause({ kind, name: "x" }, { forMs: null, reason: kind });
    }
    await store.pause({ kind: "tenant", name: "y & søn" }, { forMs: null, reason: "" });
    expect(await store.resume({ kind: "service", name: "x" })).toBe(true);
    const left = (await inForce(store)).map(({ kind, name }) => `${kind}:${name}`);
    expect(left.toSorted()).toEqual(["queue:x", "tenant:x", "tenant:y & søn", "type:x"]);
  });

  fact("says when there was nothing to resume", async ({ store }) => {
    expect(await store.resume(QUEUE)).toBe(false);
    await store.pause(QUEUE, { forMs: null, reason: "" });
    expect(await store.resume({ kind: "queue", name: "other" })).toBe(false);
    expect(await store.resume(QUEUE)).toBe(true);
    expect(await store.resume(QUEUE)).toBe(false);
  });

  fact("grows its version with every change and with nothing else", async ({ store }) => {
    const v0 = await versionOf(store);
    await store.pause(QUEUE, { forMs: null, reason: "" });
    const v1 = await versionOf(store);
    await store.resume(QUEUE);
    const v2 = await versionOf(store);
    await store.setService("s", 0, "{}");
    const v3 = await versionOf(store);
    expect(v0 < v1 && v1 < v2 && v2 < v3).toBe(true);
    await store.resume(QUEUE);
    await store.setService("s", 99, "{}");
    await start(store);
    await store.cancel([await add(store)]);
    expect(await versionOf(store)).toBe(v3);
  });

  fact("leaves it to the plan what a pause holds back", async ({ store }) => {
    const id = await add(store);
    await store.pause(QUEUE, { forMs: null, reason: "" });
    expect((await take(store)).map((job) => job.id)).toEqual([id]);
  });

  fact("refuses a pause of no or absurd length", async ({ store }) => {
    const version = await versionOf(store);
    for (const forMs of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      await expect(store.pause(QUEUE, { forMs, reason: "" })).rejects.toMatchObject({ code: "invalid_argument" });
    }
    expect(await versionOf(store)).toBe(version);
  });
}

/** Tests of setService. */
export function serviceFacts({ fact }: Suite): void {
  const read = async (store: Store, name: string) =>
    (await store.control()).services.find((service) => service.name === name);

  fact("creates a service once", async ({ store }) => {
    expect(await store.setService("s", 1, "{}")).toBe(false);
    expect(await read(store, "s")).toBeUndefined();
    expect(await store.setService("s", 0, '{"state":"closed"}')).toBe(true);
    expect(await store.setService("s", 0, '{"state":"open"}')).toBe(false);
    expect(await read(store, "s")).toMatchObject({ name: "s", value: '{"state":"closed"}' });
  });

  fact("replaces the value only over the version that was read", async ({ store }) => {
    await store.setService("s", 0, "1");
    const first = await read(store, "s");
    expect(await store.setService("s", first?.version ?? 0, "2")).toBe(true);
    expect(await store.setService("s", first?.version ?? 0, "3")).toBe(false);
    const second = await read(store, "s");
    expect(second?.value).toBe("2");
    expect(second?.version).toBeGreaterThan(first?.version ?? Number.POSITIVE_INFINITY);
  });

  fact("keeps services apart", async ({ store }) => {
    await store.setService("a", 0, "1");
    await store.setService("b", 0, "2");
    await store.setService("b", (await read(store, "b"))?.version ?? 0, "3");
    expect((await read(store, "a"))?.value).toBe("1");
    expect((await read(store, "b"))?.value).toBe("3");
  });

  fact("lets one of many win", async ({ store, peer }) => {
    const second = await peer();
    await store.setService("s", 0, "0");
    const version = (await read(store, "s"))?.version ?? 0;
    const calls = Array.from({ length: 10 }, (_, i) => (i % 2 ? second : store).setService("s", version, `${i}`));
    const won = await Promise.all(calls);
    expect(won.filter(Boolean)).toHaveLength(1);
    expect((await read(store, "s"))?.value).toBe(`${won.indexOf(true)}`);
  });

  fact("keeps the value byte for byte", async ({ store }) => {
    const value = '{"a": "\\u0000\\ud800", "n": 12345678901234567890, "😀": -0}';
    await store.setService("s", 0, value);
    expect((await read(store, "s"))?.value).toBe(value);
  });
}
