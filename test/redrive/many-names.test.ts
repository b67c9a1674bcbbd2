// The whole page of a process and its store behind more names than a monitor can bear, and names that need escaping.
import { describe, expect, inject, it } from "vitest";
import { HEALTH_LIMITS } from "../../src/core/health.ts";
import { FAILURE_CLASSES } from "../../src/core/job.ts";
import { resolveLimits } from "../../src/core/service.ts";
import { RELEASE_REASONS, type Verdict } from "../../src/core/verdict.ts";
import { openMeter, type ProcessMeter } from "../../src/metrics/meter.ts";
import { metricsText } from "../../src/metrics/text.ts";
import { readStoreMetrics } from "../../src/operate/store-metrics.ts";
import { defineJob } from "../../src/index.ts";
import type { Store } from "../../src/store/store.ts";
import { newJob } from "../support/new-job.ts";
import { openQueue } from "../support/postgres-queue.ts";
import { openRedrive } from "./kinds.ts";

const NAMES = 10_000;
const SERIES_MOST = 5_000;
const CHARGE = { attempts: 1, crashes: 0 };

const STORES: readonly (readonly [string, () => Promise<Store>])[] = [
  ["sqlite", async () => (await openRedrive("sqlite")).store],
  ["postgres 18", async () => (await openQueue(inject("postgres18"))).store],
];

/** A job of each type, service and tenant, all of them due. */
async function fill(store: Store): Promise<void> {
  for (let from = 0; from < NAMES; from += 1_000)
    await store.enqueue(
      Array.from({ length: 1_000 }, (_, n) =>
        newJob({ type: `type-${from + n}`, service: `service-${from + n}`, tenant: `tenant-${from + n}` }),
      ),
    );
}

/** Every type ends in every way, fails by every class, and is enqueued with every result. */
function busyMeter(): ProcessMeter {
  const meter = openMeter([], () => 0);
  const failure = { severity: "error", name: "Error", message: "m", stack: null, fingerprint: "f" } as const;
  const times = { claimedMs: 0, startedMs: 1, endedMs: 2 };
  const ends: Verdict[] = [
    { kind: "complete", result: null },
    { kind: "cancel" } as Verdict,
    ...FAILURE_CLASSES.flatMap((name): Verdict[] => [
      { kind: "retry", delayMs: 5, charge: CHARGE, failure: { ...failure, class: name } } as unknown as Verdict,
      { kind: "dead", reason: "permanent", charge: CHARGE, failure: { ...failure, class: name } } as Verdict,
    ]),
    ...RELEASE_REASONS.map((reason) => ({ kind: "release", reason }) as unknown as Verdict),
  ];
  for (let n = 0; n < NAMES; n += 1) {
    const job = { type: `type-${n}`, runAt: 0, startedAt: 1 };
    for (const verdict of ends) meter.ran(job, verdict, times);
    meter.stale(job.type);
    for (const result of ["created", "duplicate", "replaced", "conflict"] as const) meter.enqueued(job.type, result);
  }
  return meter;
}

const seriesOf = (text: string): string[] => text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));

describe.each(STORES)("on %s", (_name, open) => {
  it(`${NAMES} types, services and tenants make at most ${SERIES_MOST} series`, { timeout: 120_000 }, async () => {
    const store = await open();
    await fill(store);
    const services = Object.fromEntries(
      Array.from({ length: NAMES }, (_, n) => [`service-${n}`, { rateLimit: { limit: 5, per: "1s" } } as const]),
    );
    const limits = resolveLimits({ services });
    const gauges = await readStoreMetrics({ store, limits, health: HEALTH_LIMITS });
    const text = metricsText([...busyMeter().read(), ...gauges]);
    const series = seriesOf(text);
    expect(series.length).toBeLessThanOrEqual(SERIES_MOST);
    expect(new Set(series.map((line) => line.replace(/ \S+$/, ""))).size).toBe(series.length);
    expect(text).not.toContain("tenant-");
    const due = series.filter((line) => line.startsWith("redrive_due{"));
    expect(due).toHaveLength(65);
    expect(due.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0)).toBe(NAMES);
    const runs = series.filter((line) => /^redrive_runs_total\{.*outcome="completed"\}/.test(line));
    expect(runs).toHaveLength(65);
    expect(runs.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0)).toBe(NAMES);
  });
});

describe("a name that breaks a line", () => {
  const NAMED: readonly (readonly [string, string])[] = [
    ["a quote", 'a"b'],
    ["a new line", "a\nb"],
    ["a backslash", "a\\b"],
    ["10 KB", "x".repeat(10_240)],
  ];

  it.each(NAMED)("is no type and no service: %s", async (_what, name) => {
    expect(() => defineJob(name, { run: () => null })).toThrow(/type|name/);
    const { store } = await openRedrive("sqlite");
    await expect(store.enqueue([newJob({ type: name })])).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(store.enqueue([newJob({ service: name })])).rejects.toMatchObject({ code: "invalid_argument" });
  });

  it("keeps the page whole where it comes all the same", () => {
    const meter = openMeter([], () => 0);
    for (const [, type] of NAMED) meter.enqueued(type, "created");
    expect(seriesOf(metricsText(meter.read())).filter((line) => line.startsWith("redrive_enqueued"))).toEqual([
      'redrive_enqueued_total{type="a\\"b",result="created"} 1',
      'redrive_enqueued_total{type="a\\nb",result="created"} 1',
      'redrive_enqueued_total{type="a\\\\b",result="created"} 1',
      'redrive_enqueued_total{type="other",result="created"} 1',
    ]);
  });
});
