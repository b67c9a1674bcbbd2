// Records on the test clock, and the waits of a policy as a list.
import { describe, expect, it } from "vitest";
import { defineJob, exponential, fixed, immediate, linear, permanent, transient } from "../../src/index.ts";
import { createTestRedrive, delays } from "../../src/testing/index.ts";

type Order = { readonly id: string; readonly fate: string };
const id = (record: Order): string => record.id;
const order = defineJob("order", {
  maxAttempts: 3,
  timeout: "30s",
  backoff: fixed("5m"),
  run: async (record: Order, { attempt }) => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    if (record.fate === "never") return permanent("no such customer");
    return record.fate === "later" && attempt === 1 ? transient("busy") : record.id;
  },
});
const ORDERS: Order[] = [
  { id: "a", fate: "done" },
  { id: "b", fate: "later" },
  { id: "c", fate: "never" },
];

describe("processRecords on the test clock", () => {
  it("ends when nothing is due, and takes what waited once its time has come", async () => {
    await using test = await createTestRedrive({ jobs: [order] });
    const done: string[] = [];
    const options = { id, onResult: (record: { readonly id: string }) => void done.push(record.id) };
    const first = await test.processRecords(order, ORDERS, options);
    expect(first).toMatchObject({ records: 3, enqueued: 3, completed: 1, retried: 1, dead: 1, retryQueue: 1 });
    await test.clock.advance("1m");
    expect(await test.processRecords(order, ORDERS, options)).toMatchObject({ known: 3, completed: 0, retryQueue: 1 });
    test.clock.set(test.clock.now() + 300_000);
    expect(await test.processRecords(order, ORDERS, options)).toMatchObject({ known: 3, completed: 1, retryQueue: 0 });
    expect(done).toEqual(["a", "a", "a", "b"]);
  });

  it("lets no time pass while its source is read, and takes the settings of a worker or a worker", async () => {
    await using test = await createTestRedrive({ jobs: [order], patience: "300ms" });
    const readAt: number[] = [];
    async function* slowly() {
      for (const record of ORDERS) {
        await new Promise((resolve) => setTimeout(resolve, 60));
        readAt.push(test.clock.now() - began);
        yield record;
      }
    }
    const began = test.clock.now();
    for (const worker of [{ concurrency: 2 }, test.worker({ concurrency: 3 })])
      expect(await test.processRecords(order, slowly(), { id, worker })).toMatchObject({ records: 3 });
    expect(readAt.slice(0, 3)).toEqual([0, 0, 0]);
    expect(new Set(readAt.slice(3)).size).toBe(1);
  });

  it("rejects where its source fails", async () => {
    await using test = await createTestRedrive({ jobs: [order] });
    async function* broken() {
      yield ORDERS[0] as Order;
      throw new Error("the file is gone");
    }
    await expect(test.processRecords(order, broken(), { id })).rejects.toThrow(/the file is gone \(1 before it/);
    await expect(test.processRecords(order, 7 as never, { id })).rejects.toThrow(/^records: expected/);
    expect(await test.processRecords(order, ORDERS, { id })).toMatchObject({ records: 3, dead: 1 });
  });
});

describe("the delays of a backoff", () => {
  it.each([
    ["exponential", exponential(), [1_000, 3_000, 9_000, 27_000]],
    ["capped", exponential({ initial: "10s", max: "1m" }), [10_000, 30_000, 60_000, 60_000]],
    ["linear", linear(), [1_000, 2_500, 4_000, 5_500]],
    ["fixed", fixed("5s"), [5_000, 5_000, 5_000, 5_000]],
    ["immediate", immediate(), [0, 0, 0, 0]],
    ["of your own", (attempt: number) => attempt * 10, [10, 20, 30, 40]],
  ])("are the longest that chance allows: %s", (_name, backoff, expected) => {
    expect(delays(backoff, 4)).toEqual(expected);
  });

  it("follow the chance that is given, each from the one before where they are decorrelated", () => {
    expect(delays(exponential(), 3, () => 0)).toEqual([0, 0, 0]);
    expect(delays(exponential(), 3, () => 0.5)).toEqual([500, 1_500, 4_500]);
    expect(delays(exponential({ jitter: "decorrelated" }), 3, () => 0.5)).toEqual([2_000, 3_500, 5_750]);
  });

  it("refuse what is no backoff and no count", () => {
    expect(() => delays("5s" as never, 3)).toThrow(/^backoff: expected/);
    expect(() => delays(fixed("5s"), 0)).toThrow(/^count: expected/);
  });

  it.each([5, () => 2, () => -0.1, () => Number.NaN, () => "0.5"])("refuse what is no chance: %s", (random) => {
    expect(() => delays(exponential(), 3, random as never)).toThrow(/^random: expected/);
  });
});
