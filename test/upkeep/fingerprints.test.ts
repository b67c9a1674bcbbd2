// Upkeep of fingerprints over time: who does it, how far, and when again.
import { describe, expect, it } from "vitest";
import { FINGERPRINT_VERSION } from "../../src/core/fingerprint.ts";
import { fingerprintOf, runtimeFailure } from "../../src/core/verdict.ts";
import { createMemoryStore } from "../../src/store/memory/index.ts";
import type { Store } from "../../src/store/store.ts";
import { FINGERPRINT_CELLS, renewFingerprints } from "../../src/upkeep/fingerprints.ts";
import { end, start } from "../support/runs.ts";
import { dead, failure } from "../support/verdicts.ts";

const OLD = failure({ fingerprint: "00000000000000ff" });
const DAY_MS = 86_400_000;

function world() {
  const clock = { now: 1_000_000 };
  return { clock, store: createMemoryStore({ clock: () => clock.now }) };
}

const die = async (store: Store): Promise<void> => void (await end(store, await start(store), dead({ failure: OLD })));
const olds = async (store: Store): Promise<number> =>
  (await store.tally({ fingerprint: OLD.fingerprint, redriven: true })).total;
const note = async (store: Store): Promise<unknown> =>
  JSON.parse((await store.cells([{ kind: FINGERPRINT_CELLS }])).cells[0]?.value ?? "null");
const set = (store: Store, value: unknown): Promise<boolean[]> =>
  store.setCells([{ kind: FINGERPRINT_CELLS, name: "", holder: "", version: null, value: JSON.stringify(value) }]);

describe("upkeep of fingerprints", () => {
  it("is done after a pass that changed nothing", async () => {
    const { clock, store } = world();
    await renewFingerprints(store);
    expect(await note(store)).toEqual({ version: FINGERPRINT_VERSION, after: null, changed: 0 });
    await die(store);
    clock.now += 2 * DAY_MS;
    await renewFingerprints(store);
    expect(await olds(store)).toBe(1);
  });

  it("makes another pass a day later, for what older workers wrote meanwhile", async () => {
    const { clock, store } = world();
    await die(store);
    await renewFingerprints(store);
    expect(await olds(store)).toBe(0);
    await die(store);
    clock.now += DAY_MS - 1;
    await renewFingerprints(store);
    expect(await olds(store)).toBe(1);
    clock.now += 1;
    await renewFingerprints(store);
    expect(await olds(store)).toBe(0);
  });

  it("continues where another worker was", async () => {
    const { store } = world();
    for (let i = 0; i < 3; i++) await die(store);
    const { items } = await store.failures({ after: 0, limit: 2 });
    const after = items.at(-1)?.seq;
    await set(store, { version: FINGERPRINT_VERSION, after, changed: 4 });
    await renewFingerprints(store);
    expect(await olds(store)).toBe(2);
  });

  it("begins again after older rules, and leaves newer ones alone", async () => {
    const { store } = world();
    await die(store);
    await set(store, { version: FINGERPRINT_VERSION + 1, after: 0, changed: 0 });
    await renewFingerprints(store);
    expect(await olds(store)).toBe(1);
    for (const older of [{ version: FINGERPRINT_VERSION - 1, after: null, changed: 0 }, "damaged"]) {
      await die(store);
      await set(store, older);
      await renewFingerprints(store);
      expect(await olds(store)).toBe(0);
    }
  });

  it("rests if another worker did the same step", async () => {
    const { store } = world();
    for (let i = 0; i < 60; i++) await die(store);
    const waits = await Promise.all([renewFingerprints(store, 50), renewFingerprints(store, 50)]);
    expect(Math.max(...waits)).toBeGreaterThanOrEqual(60_000);
    expect(Math.min(...waits)).toBeLessThan(60_000);
  });

  it("makes another pass for a row that another transaction held in this one", async () => {
    const { clock, store } = world();
    await die(store);
    await renewFingerprints({ ...store, setFingerprints: () => Promise.resolve(0) });
    expect(await olds(store)).toBe(1);
    clock.now += DAY_MS;
    await renewFingerprints(store);
    expect(await olds(store)).toBe(0);
  });

  it("sends few statements while it runs, and gets through 1,000,000 jobs within hours", async () => {
    const { store } = world();
    let calls = 0;
    const count =
      <A extends unknown[], R>(verb: (...args: A) => R) =>
      (...args: A): R => {
        calls++;
        return verb(...args);
      };
    const { cells, setCells, failures, setFingerprints } = store;
    const limits: number[] = [];
    const counted = {
      cells: count(cells.bind(store)),
      setCells: count(setCells.bind(store)),
      setFingerprints: count(setFingerprints.bind(store)),
      failures: count((query: Parameters<typeof failures>[0]) => {
        limits.push(query.limit);
        return failures.call(store, query).then((page) => ({ ...page, next: 1 }));
      }),
    };
    await die(store);
    const waitMs = await renewFingerprints(counted);
    const [limit = 0] = limits;
    expect((calls * 1_000) / waitMs).toBeLessThanOrEqual(2);
    expect((1_000_000 / limit) * waitMs).toBeLessThanOrEqual(4 * 3_600_000);
  });
});

describe("the fingerprint of a stored failure", () => {
  it.each([
    ["crashed", "WorkerDied"],
    ["crashed", "ProcessDied"],
    ["crashed", "BreakerOpen"],
    ["crashed", "VerdictRefused"],
    ["stuck", "RunStuck"],
    ["timeout", "TimeoutError"],
    ["timeout", "DeadlinePassed"],
  ] as const)("of the runtime is one per name: %s, %s", (kind, name) => {
    const first = runtimeFailure(kind, name, "Worker ab-1 died.");
    expect(fingerprintOf(first)).toBe(first.fingerprint);
    expect(fingerprintOf({ ...first, message: "other words entirely" })).toBe(first.fingerprint);
  });
});
