// The lines of the bad-input table that concern stores: refused with one code everywhere, and nothing half-written.
import { expect } from "vitest";
import type { NewJob } from "../../src/core/new-job.ts";
import { newJob } from "../support/new-job.ts";
import { add, read, signUp, start, take, takeOne } from "../support/runs.ts";
import { complete } from "../support/verdicts.ts";
import type { Suite } from "./suite.ts";

const NUMBERS = [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, "5" as unknown as number, null as never];

function show(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value.slice(0, 20)) : String(value);
}

const NAMES = ["", "a b", "ä", "a/b", "a\0", "x".repeat(129), "\ud800", "a\n"];
const TEXTS = ["", "\0", "a\0b", "\ud800", "é".repeat(128), "x".repeat(256)];

const REFUSED: readonly (readonly [field: keyof NewJob, values: readonly unknown[]])[] = [
  ["id", ["", "a b", "x".repeat(65), "ä", "a\0", "a\n", null]],
  ["type", [...NAMES, null]],
  ["queue", [...NAMES, null]],
  ["service", NAMES],
  ["tenant", TEXTS],
  ["key", TEXTS],
  ["priority", [...NUMBERS, 10]],
  ["maxAttempts", [...NUMBERS, 0, 10_001]],
  ["maxCrashes", [...NUMBERS, 0, 1_001]],
  ["deadlineMs", [...NUMBERS.slice(0, 6), 0]],
  ["stuckMs", [...NUMBERS.slice(0, 6), 0]],
  ["stuckRetryMs", [1, ...NUMBERS.slice(0, 6)]],
  ["stuckLimit", [1, ...NUMBERS.slice(0, 6)]],
  ["delayMs", [...NUMBERS, 10 * 366 * 86_400_000 + 1]],
  ["runAt", NUMBERS.slice(0, 6)],
  ["version", [...NUMBERS, 0, 1_000_001]],
  ["trace", [...TEXTS.slice(0, 4), "x".repeat(1_025), 5, undefined]],
  ["limited", [0, 1, "true", null, undefined]],
  ["unique", ["", "Key", "other", "constructor", null, undefined, 5]],
];

/** Tests of bad input. */
export function badInputFacts({ fact }: Suite): void {
  for (const [field, values] of REFUSED) {
    fact(`refuses a job with a bad ${field}`, async ({ store }) => {
      for (const value of values) {
        const refused = store.enqueue([newJob(), newJob({ digest: "d", [field]: value })]);
        const told = { name: "RedriveError", code: "invalid_argument" };
        await expect(refused, show(value)).rejects.toMatchObject(told);
      }
      expect(await store.count()).toMatchObject({ queued: 0 });
    });
  }

  fact("refuses a job with a key and no digest", async ({ store }) => {
    const refused = store.enqueue([newJob(), newJob({ key: "k", digest: null })]);
    await expect(refused).rejects.toMatchObject({ code: "invalid_argument" });
    expect(await store.count()).toMatchObject({ queued: 0 });
  });

  fact("accepts every value at its limit", async ({ store }) => {
    const least = newJob({
      priority: 0,
      maxAttempts: 1,
      maxCrashes: 1,
      deadlineMs: 1,
      stuckMs: 1,
      stuckRetryMs: 0,
      stuckLimit: 0,
      version: 1,
      runAt: 0,
    });
    const most = newJob({
      id: "x".repeat(64),
      type: "t".repeat(128),
      queue: "q".repeat(128),
      service: "s".repeat(128),
      tenant: "é".repeat(127),
      key: "k".repeat(255),
      priority: 9,
      maxAttempts: 10_000,
      maxCrashes: 1_000,
      version: 1_000_000,
      deadlineMs: 10 * 366 * 86_400_000,
      stuckMs: 10 * 366 * 86_400_000,
      stuckRetryMs: 7 * 86_400_000,
      stuckLimit: 9_999,
      payload: "{}",
    });
    expect(await store.enqueue([least, most])).toMatchObject([{ kind: "created" }, { kind: "created" }]);
    for (const { digest: _digest, delayMs: _delayMs, runAt: _runAt, unique: _unique, ...kept } of [least, most]) {
      expect(await read(store, kept.id)).toMatchObject(kept);
    }
  });

  fact("refuses a payload over 16 MiB and stores nothing of its call", async ({ store }) => {
    const good = newJob();
    const refused = store.enqueue([good, newJob({ payload: `"${"é".repeat(8_388_608)}"` })]);
    await expect(refused).rejects.toMatchObject({ code: "payload_too_large" });
    expect(await store.get([good.id])).toEqual([null]);
  });

  fact("accepts a payload of 16 MiB", async ({ store }) => {
    const payload = `"${"é".repeat(8_388_607)}"`;
    const id = await add(store, { payload });
    expect((await takeOne(store, id)).payload === payload).toBe(true);
  });

  fact("refuses a worker's lease out of range", async ({ store }) => {
    const worker = await signUp(store);
    const before = await store.workers();
    for (const leaseMs of [...NUMBERS, 0]) {
      const registered = store.register({ id: "w", leaseMs, pid: 1, host: "h", release: null });
      await expect(registered, show(leaseMs)).rejects.toMatchObject({ code: "invalid_argument" });
      const beaten = store.beat({ worker, leaseMs, startedThrough: 0 });
      await expect(beaten, show(leaseMs)).rejects.toMatchObject({ code: "invalid_argument" });
    }
    expect(await store.workers()).toStrictEqual(before);
  });

  fact("goes on after refusals", async ({ store }) => {
    const run = await start(store);
    await expect(store.enqueue([newJob({ id: "" })])).rejects.toThrow();
    await expect(store.list({ limit: 0 })).rejects.toThrow();
    await expect(store.redrive([{ id: run.id, generation: 0, delayMs: -1 }])).rejects.toThrow();
    const settled = await store.settle({
      settlements: [{ id: run.id, epoch: run.epoch, nonce: run.nonce, verdict: complete() }],
    });
    expect(settled.stale).toEqual([]);
    const id = await add(store);
    expect((await take(store)).map((job) => job.id)).toEqual([id]);
  });
}
