// The counters of a process: what they count, and that no number of names makes too many series.
import { describe, expect, it } from "vitest";
import { FAILURE_CLASSES } from "../../src/core/job.ts";
import type { Verdict } from "../../src/core/verdict.ts";
import { BUCKETS, openMeter } from "../../src/metrics/meter.ts";
import type { Metric } from "../../src/metrics/metric.ts";
import { metricsText } from "../../src/metrics/text.ts";
import { metricsOf } from "../../src/operate/monitoring.ts";
import { inlineStore } from "../support/database-file.ts";
import { newJob } from "../support/new-job.ts";
import { cancel, complete, dead, failure, release, retry } from "../support/verdicts.ts";

const job = (type: string) => ({ type, runAt: 1_000, startedAt: 3_000 });
const times = { claimedMs: 100, startedMs: 600, endedMs: 640 };
const histogramOf = (metrics: readonly Metric[], name: string) => {
  const found = metrics.find((metric) => metric.name === name);
  return found?.type === "histogram" ? found.samples : [];
};

describe("a meter", () => {
  it("counts runs by outcome, failures by class, releases by reason, crashes and stale writes", () => {
    const meter = openMeter(["mail"], () => 0);
    const crashed = dead({ charge: { attempts: 1, crashes: 1 }, failure: failure({ class: "crashed" }) });
    const verdicts: Verdict[] = [complete(), complete(), retry(), crashed, release(), cancel()];
    for (const verdict of verdicts) meter.ran(job("mail"), verdict, times);
    meter.stale("mail");
    for (const result of ["created", "created", "duplicate", "replaced", "conflict"] as const)
      meter.enqueued("mail", result);
    const metrics = metricsOf(meter.read());
    const runs = (outcome: string) => metrics.value("redrive_runs_total", { type: "mail", outcome });
    const outcomes = ["completed", "retried", "dead", "released", "cancelled", "stale"];
    expect(outcomes.map(runs)).toEqual([2, 1, 1, 1, 1, 1]);
    expect(metrics.value("redrive_failures_total", { type: "mail", class: "crashed" })).toBe(1);
    expect(metrics.value("redrive_crashes_total")).toBe(1);
    expect(metrics.value("redrive_stale_writes_total")).toBe(1);
    const { reason } = release() as Extract<Verdict, { kind: "release" }>;
    expect(metrics.value("redrive_released_total", { reason })).toBe(1);
    expect(metrics.value("redrive_enqueued_total", { type: "mail", result: "created" })).toBe(2);
    expect(metrics.value("redrive_enqueued_total", { type: "mail", result: "conflict" })).toBe(1);
  });

  it("measures runs, waits from due to start, and delays of retries", () => {
    const meter = openMeter([], () => 0);
    meter.ran(job("mail"), complete(), { ...times, trace: { traceId: "abc" } });
    meter.ran(job("mail"), retry({ delayMs: 4_000 }), times);
    meter.ran(job("mail"), release(), times);
    const read = meter.read();
    const [run] = histogramOf(read, "redrive_run_seconds");
    expect(run?.sum).toBeCloseTo(0.08);
    expect(run?.buckets.map(({ count }) => count)).toEqual([0, 0, 0, ...Array(14).fill(2)]);
    expect(run?.buckets[3]).toMatchObject({ le: 0.05, exemplar: { traceId: "abc", value: 0.04 } });
    expect(histogramOf(read, "redrive_wait_seconds")[0]?.sum).toBeCloseTo(5);
    const [delay] = histogramOf(read, "redrive_retry_delay_seconds");
    expect([delay?.labels, delay?.sum]).toEqual([{ class: "transient" }, 4]);
  });

  it("has 16 buckets from 5 ms to an hour, and one for what takes longer", () => {
    expect([BUCKETS.length, BUCKETS[0], BUCKETS.at(-1)]).toEqual([16, 0.005, 3_600]);
    const meter = openMeter([], () => 0);
    meter.ran(job("mail"), complete(), { claimedMs: 0, startedMs: 0, endedMs: 4_000_000 });
    expect(histogramOf(meter.read(), "redrive_run_seconds")[0]?.buckets.map(({ count }) => count)).toEqual([
      ...Array(16).fill(0),
      1,
    ]);
  });

  it("times calls to the store, and counts those that fail", async () => {
    let now = 0;
    const meter = openMeter([], () => (now += 20));
    const { store } = await inlineStore();
    const timed = meter.timed(store);
    await timed.enqueue([newJob()]);
    await expect(timed.enqueue([newJob({ priority: 99 })])).rejects.toMatchObject({ code: "invalid_argument" });
    const metrics = metricsOf(meter.read());
    expect(metrics.value("redrive_store_errors_total", { verb: "enqueue" })).toBe(1);
    expect(histogramOf(meter.read(), "redrive_store_seconds").map(({ labels, sum }) => [labels, sum])).toEqual([
      [{ verb: "enqueue" }, 0.04],
    ]);
  });

  it("reads the slots of the workers that are at work", () => {
    const meter = openMeter([], () => 0);
    const end = meter.watch(() => ({ busy: 3, free: 6, leaked: 1 }));
    meter.watch(() => ({ busy: 1, free: 0, leaked: 0 }));
    const read = () => {
      const metrics = metricsOf(meter.read());
      const slots = ["busy", "free"].map((state) => metrics.value("redrive_slots", { state }));
      return [...slots, metrics.value("redrive_leaked_slots")];
    };
    expect(read()).toEqual([4, 6, 1]);
    end();
    expect(read()).toEqual([1, 0, 0]);
  });

  it("makes fewer than 5,000 series of 10,000 types, and has the configured ones among them", () => {
    const meter = openMeter(["mine"], () => 0);
    for (let n = 0; n < 10_000; n += 1)
      for (const name of n < 100 ? FAILURE_CLASSES : FAILURE_CLASSES.slice(0, 1)) {
        const verdicts = [complete(), retry({ failure: failure({ class: name }) }), dead(), release(), cancel()];
        for (const verdict of verdicts) meter.ran(job(`t${n}`), verdict, times);
        for (const result of ["created", "duplicate", "replaced", "conflict"] as const) meter.enqueued(`t${n}`, result);
        meter.stale(`t${n}`);
      }
    meter.ran(job("mine"), complete(), times);
    const lines = metricsText(meter.read())
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"));
    expect(lines.length).toBeGreaterThan(3_000);
    expect(lines.length).toBeLessThan(4_500);
    expect(metricsOf(meter.read()).value("redrive_runs_total", { type: "mine", outcome: "completed" })).toBe(1);
    expect(metricsOf(meter.read()).value("redrive_runs_total", { type: "other", outcome: "completed" })).toBe(10_270);
  });
});
