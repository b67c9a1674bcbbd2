// Metrics of a real queue on each store: after failures and redrives they equal what the store says, exactly.
import { describe, expect, inject, it, vi } from "vitest";
import {
  defineJob,
  fixed,
  type Metrics,
  permanent,
  type Redrive,
  type RedriveOptions,
  transient,
} from "../../src/index.ts";
import { openMeter } from "../../src/metrics/meter.ts";
import { tellMetrics } from "../../src/operate/monitoring.ts";
import { NO_LIMITS } from "../../src/services/holding.ts";
import { realSystem } from "../../src/system/real.ts";
import type { System } from "../../src/system/system.ts";
import { collectLog } from "../../src/testing/collect-log.ts";
import { inlineStore } from "../support/database-file.ts";
import { openQueue } from "../support/postgres-queue.ts";
import { KINDS, openRedrive } from "./kinds.ts";

type Open = (options: Omit<RedriveOptions, "store">) => Promise<Redrive>;

const STORES: readonly (readonly [string, Open])[] = [
  ...KINDS.map((kind) => [kind, (options) => openRedrive(kind, options)] as const satisfies readonly [string, Open]),
  ["postgres 18", async (options) => (await openQueue(inject("postgres18"), { ...options, built: true })).redrive],
];

const JOBS = 1_000;

describe.each(STORES)("metrics on %s", (_name, open) => {
  it(`equal the books after ${JOBS} jobs with failures and redrives`, { timeout: 120_000 }, async () => {
    let isMended = false;
    const mail = defineJob("mail", {
      maxAttempts: 2,
      backoff: fixed(1),
      run: (n: number, { attempt }) => {
        if (n % 10 === 0 && !isMended) return permanent("no such address");
        return n % 3 === 0 && attempt === 1 ? transient("busy") : n;
      },
    });
    const redrive = await open({ jobs: [mail] });
    await redrive.enqueueMany(mail, Array.from({ length: JOBS }).keys());
    const first = await redrive.worker().drain();
    isMended = true;
    const { items } = await redrive.deadLetters.list({ limit: 40 });
    await redrive.deadLetters.retry(items.map(({ job }) => job.id));
    const second = await redrive.worker().drain();
    await redrive.enqueue(mail, 1, { delay: "1h" });
    const metrics = await redrive.metrics();
    const value = (name: string, labels: Record<string, string> = {}) => metrics.value(`redrive_${name}`, labels);
    const runs = (outcome: string) => value("runs_total", { type: "mail", outcome });
    expect(runs("completed")).toBe(first.completed + second.completed);
    expect(runs("retried")).toBe(first.retried + second.retried);
    expect([runs("dead"), first.dead]).toEqual([100, 100]);
    expect(value("enqueued_total", { type: "mail", result: "created" })).toBe(JOBS + 1);
    const jobs = await redrive.store.count();
    for (const [state, count] of Object.entries(jobs))
      expect([state, value("jobs", { state })]).toEqual([state, count]);
    expect(jobs).toEqual({ queued: 1, running: 0, completed: JOBS - 60, dead: 60, cancelled: 0 });
    expect(value("dead_letters", { type: "mail" })).toBe((await redrive.deadLetters.stats()).total);
    expect(value("causes", { state: "open" })).toBe(1);
    expect(value("due", { type: "mail" })).toBeUndefined();
    expect(failuresIn(metrics)).toBe(first.retried + second.retried + 100);
    const { now } = await redrive.store.control();
    const day = { from: now - 86_400_000, until: now + 60_000, stepMs: 86_400_000 };
    const flow = await redrive.store.trend(day);
    const sum = (count: string) => flow.reduce((total, { counts }) => total + (counts[count] ?? 0), 0);
    expect([sum("completed"), sum("retried"), sum("dead")]).toEqual([runs("completed"), runs("retried"), runs("dead")]);
  });

  it("show due and parked work, breakers and letters by age", async () => {
    const quote = defineJob("quote", { service: "pricing", run: () => null });
    const redrive = await open({ jobs: [quote], services: { pricing: { rateLimit: { limit: 5, per: "1s" } } } });
    for (let n = 0; n < 3; n += 1) await redrive.enqueue(quote, {});
    await redrive.breakers.open("pricing", { reason: "maintenance", for: "1h" });
    const metrics = await redrive.metrics();
    expect(metrics.value("redrive_due", { type: "quote" })).toBe(3);
    expect(metrics.value("redrive_oldest_due_seconds", { type: "quote" })).toBeGreaterThanOrEqual(0);
    expect(metrics.value("redrive_parked", { service: "pricing" })).toBe(3);
    expect(metrics.value("redrive_breaker_open", { service: "pricing" })).toBe(1);
    expect(metrics.value("redrive_limit_left", { service: "pricing" })).toBeGreaterThan(0);
    expect(metrics.value("redrive_health_score")).toBe((await redrive.health()).score);
    expect(metrics.text()).toMatch(/^redrive_build_info\{version="[^"]+",store="\w+"\} 1$/m);
  });
});

function failuresIn({ families }: Metrics): number {
  const found = families.find(({ name }) => name === "redrive_failures_total");
  return found?.type === "counter" ? found.samples.reduce((sum, { value }) => sum + value, 0) : 0;
}

describe("onMetrics", () => {
  /** A Redrive's parts on a clock that the test turns: each turn ends the sleeps of the one before. */
  async function monitored() {
    const log = collectLog();
    const { store } = await inlineStore();
    const asleep: (() => void)[] = [];
    const sleep: System["sleep"] = (_ms, signal) =>
      new Promise((resolve) => {
        const wake = (): void => {
          signal?.removeEventListener("abort", wake);
          resolve();
        };
        asleep.push(wake);
        signal?.addEventListener("abort", wake);
      });
    const meter = openMeter([], () => 0);
    const parts = { store, log, meter, system: { ...realSystem, sleep }, limits: NO_LIMITS, health: {}, jobs: [] };
    const end = new AbortController();
    const tell = (listener: (metrics: Metrics) => unknown) =>
      tellMetrics(parts, { listener, everyMs: 1_000, until: end.signal });
    return { log, tell, end, turn: () => asleep.splice(0).forEach((wake) => wake()) };
  }

  it("calls in every turn, logs a listener that fails and one that does not end, and calls the others", async () => {
    const { log, tell, end, turn } = await monitored();
    const [good, hanging] = [vi.fn(), vi.fn(() => new Promise(() => undefined))];
    const all = [good, hanging, () => Promise.reject(new Error("no monitor"))].map(tell);
    for (let turns = 1; turns <= 3; turns += 1) {
      turn();
      await expect.poll(() => good.mock.calls.length).toBe(turns);
      await expect.poll(() => log.said("the listener of onMetrics failed").length).toBe(turns);
    }
    expect(hanging).toHaveBeenCalledTimes(1);
    expect(log.said("has not ended")).toHaveLength(1);
    const [[metrics]] = good.mock.calls as [[Metrics]];
    expect(metrics.value("redrive_health_score")).toBe(1);
    end.abort();
    await Promise.all(all);
    turn();
    expect(good).toHaveBeenCalledTimes(3);
  });

  it("is stopped by its function, ends with its Redrive, and refuses a bad call", async () => {
    const redrive = await openRedrive("memory");
    redrive.onMetrics(() => undefined, { every: "1s" })();
    redrive.onMetrics(() => undefined);
    expect(() => redrive.onMetrics(5 as never)).toThrow(/listener: expected a function/);
    expect(() => redrive.onMetrics(() => undefined, { every: 10 })).toThrow(
      /every: expected a duration .* from 1s to 1d/,
    );
  });
});
