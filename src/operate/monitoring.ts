// What a program asks to be monitored: its health, its metrics once, and its metrics again and again.
import { textOf } from "../core/failure.ts";
import { type Health, type HealthOptions, resolveHealth } from "../core/health.ts";
import { parseOptions } from "../core/options.ts";
import type { Limits } from "../core/service.ts";
import type { ProcessMeter } from "../metrics/meter.ts";
import type { Metric } from "../metrics/metric.ts";
import { type MetricsFormat, metricsText } from "../metrics/text.ts";
import type { Store } from "../store/store.ts";
import type { Log } from "../system/log.ts";
import type { System } from "../system/system.ts";
import { readHealth } from "./health.ts";
import { readStoreMetrics } from "./store-metrics.ts";

/** What a Redrive is monitored with. */
export interface MonitoringDependencies {
  readonly store: Store;
  readonly system: System;
  readonly log: Log;
  readonly limits: Limits;
  readonly health: HealthOptions;
  readonly jobs: readonly { readonly type: string }[];
  readonly meter: ProcessMeter;
}

/** Metrics as data and as text. */
export interface Metrics {
  /** Each metric with its values. */
  readonly families: readonly Metric[];
  /** The value of a metric with exactly these labels; undefined where it has none, and for histograms. */
  value(name: string, labels?: Readonly<Record<string, string>>): number | undefined;
  /** The text for Prometheus, or as OpenMetrics. */
  text(format?: MetricsFormat): string;
}

/** The metrics of these families. */
export function metricsOf(families: readonly Metric[]): Metrics {
  const isSame = (a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean =>
    Object.keys(a).length === Object.keys(b).length && Object.entries(a).every(([name, value]) => b[name] === value);
  return {
    families,
    value(name, labels = {}) {
      const found = families.find((family) => family.name === name);
      if (!found || found.type === "histogram") return undefined;
      return found.samples.find((sample) => isSame(sample.labels, labels))?.value;
    },
    text: (format) => metricsText(families, format),
  };
}

/** The health of the queue, or of one type. */
export async function askHealth(
  { store, health }: MonitoringDependencies,
  query: { readonly type?: string },
): Promise<Health> {
  const { type } = parseOptions(query, ["type"], "health");
  return readHealth(store, { type: type as string | undefined, limits: resolveHealth(health) });
}

/** What the process has counted, and the gauges of the store. */
export async function readMetrics({ store, limits, health, jobs, meter }: MonitoringDependencies): Promise<Metrics> {
  const types = jobs.map(({ type }) => type);
  const gauges = await readStoreMetrics({ store, limits, health: resolveHealth(health), types });
  return metricsOf([...meter.read(), ...gauges]);
}

/** A listener, and how often it is called until the signal fires. */
export interface MetricsListener {
  readonly listener: (metrics: Metrics) => unknown;
  readonly everyMs: number;
  readonly until: AbortSignal;
}

/** Calls the listener at its interval. A failure is logged, and the next turn comes as usual. */
export async function tellMetrics(
  parts: MonitoringDependencies,
  { listener, everyMs, until }: MetricsListener,
): Promise<void> {
  const { system, log } = parts;
  let isBusy = false;
  let isSaid = false;
  const call = async (): Promise<void> => {
    isBusy = true;
    try {
      await listener(await readMetrics(parts));
    } catch (error) {
      if (!until.aborted) log.error({ error: textOf(error) }, "the listener of onMetrics failed");
    } finally {
      isBusy = isSaid = false;
    }
  };
  for (;;) {
    await system.sleep(everyMs, until);
    if (until.aborted) return;
    if (!isBusy) void call();
    else if (!isSaid) {
      isSaid = true;
      log.warn({ everyMs }, "the listener of onMetrics has not ended; it is not called again before it has");
    }
  }
}
