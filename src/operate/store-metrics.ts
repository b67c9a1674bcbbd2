// The gauges of the whole fleet, read from the store: by indexes and tables of counts, so that a monitor may ask however
// many jobs there are.
import { type HealthLimits, judgeHealth } from "../core/health.ts";
import { parkedBy } from "../core/holding.ts";
import { STATES } from "../core/job.ts";
import { CAUSE_STATES } from "../core/recovery/cause-state.ts";
import type { Limits } from "../core/service.ts";
import { VERSION } from "../core/version.ts";
import { boundedNames, type Metric, type MetricSample } from "../metrics/metric.ts";
import type { Store } from "../store/store.ts";
import { CAUSE_CELLS, causeRecords } from "../upkeep/cause-news.ts";
import { COUNTED_TO } from "./counts.ts";
import { gatherHealth, readState, type StoreState } from "./health.ts";
import { type LimitView, readLimits } from "./limit-views.ts";

/** What the gauges are read with. */
export interface StoreMetricsOptions {
  readonly store: Store;
  readonly limits: Limits;
  readonly health: HealthLimits;
  /** The types of the program, whose labels come before those of others. */
  readonly types?: readonly string[];
}

/** Reads the gauges. */
export async function readStoreMetrics({ store, limits, health, types = [] }: StoreMetricsOptions): Promise<Metric[]> {
  const state = readState(store);
  const [read, facts, views, causes] = await Promise.all([
    state,
    gatherHealth(store, { limits: health, brief: true }, state),
    readLimits(store, limits),
    state.then(({ figures }) => causesByState(store, figures)),
  ]);
  const { figures, holding } = read;
  const byType = boundedNames([...types, ...figures.due.map(({ type }) => type)]);
  const byService = boundedNames([...holding.services.keys()]);
  const age = (at: number): number => Math.max(0, figures.now - at) / 1_000;
  const { score } = judgeHealth(facts, health);
  const schedules = facts.upkeep.late.map(({ name, lateMs }): [string, number] => [name, lateMs / 1_000]);
  return [
    gauge(
      "jobs",
      `Jobs in the store, by state; counted up to ${COUNTED_TO} of each.`,
      STATES.map((name) => ({ labels: { state: name }, value: read.jobs[name] })),
    ),
    ...dueMetrics(read, byType, age),
    ...serviceMetrics(read, views, byService),
    gauge(
      "dead_letters",
      "Dead letters that were neither sent back to work nor deleted, by type.",
      summed("type", byType, figures.letters, ({ type, count }) => [type, count]),
    ),
    gauge("oldest_dead_seconds", "Age of the oldest dead letter.", one(figures.oldestLetterAt, age)),
    gauge("causes", "Causes with dead letters, by state.", causes),
    gauge("workers", "Workers, by state.", [
      { labels: { state: "alive" }, value: facts.workers },
      { labels: { state: "lost" }, value: read.workers.length - facts.workers },
    ]),
    gauge("orphans", "Runs of workers that do not respond.", one(facts.orphans)),
    gauge(
      "schedule_late_seconds",
      "How late a schedule is; only those that are late.",
      most("schedule", boundedNames(), schedules, (each) => each),
    ),
    gauge("health_score", "Health of the queue, from 0 to 1.", one(score)),
    gauge("build_info", "The version of Redrive that reads these figures, and the kind of store.", [
      { labels: { version: VERSION, store: store.name }, value: 1 },
    ]),
  ];
}

function gauge(name: string, help: string, samples: readonly MetricSample[]): Metric {
  return { name: `redrive_${name}`, type: "gauge", help, samples };
}

function one(value: number | null, shown: (value: number) => number = Number): MetricSample[] {
  return value === null ? [] : [{ labels: {}, value: shown(value) }];
}

type Named = readonly [name: string, value: number];

/** A value for each label: the sum of those that share it. */
function summed<T>(label: string, nameOf: (name: string) => string, all: readonly T[], of: (each: T) => Named) {
  return merged(label, nameOf, all.map(of), (a, b) => a + b);
}

/** The same with the largest of them. */
function most<T>(label: string, nameOf: (name: string) => string, all: readonly T[], of: (each: T) => Named) {
  return merged(label, nameOf, all.map(of), Math.max);
}

function merged(
  label: string,
  nameOf: (name: string) => string,
  all: readonly Named[],
  merge: (a: number, b: number) => number,
): MetricSample[] {
  const values = new Map<string, number>();
  for (const [name, value] of all) {
    const known = values.get(nameOf(name));
    values.set(nameOf(name), known === undefined ? value : merge(known, value));
  }
  return [...values].map(([name, value]) => ({ labels: { [label]: name }, value }));
}

function dueMetrics({ figures: { due } }: StoreState, byType: (type: string) => string, age: (at: number) => number) {
  return [
    gauge(
      "due",
      "Jobs that are due, by type; each lane is counted up to its share of 20000.",
      summed("type", byType, due, ({ type, jobs }) => [type, jobs]),
    ),
    gauge(
      "oldest_due_seconds",
      "How long the oldest job has been due, by type.",
      most("type", byType, due, ({ type, headRunAt }) => [type, age(headRunAt)]),
    ),
  ];
}

function serviceMetrics(
  { figures: { due }, holding }: StoreState,
  views: readonly LimitView[],
  byService: (service: string) => string,
): Metric[] {
  const parked = due.flatMap((lane): Named[] =>
    lane.service !== null && parkedBy(lane, holding) !== null ? [[lane.service, lane.jobs]] : [],
  );
  const open = [...holding.services].map(([name, { breaker }]): Named => [name, breaker.state === "closed" ? 0 : 1]);
  const services = views.filter(({ kind }) => kind === "service");
  const each = (named: Named): Named => named;
  return [
    gauge("parked", "Due jobs that wait for the breaker of their service.", summed("service", byService, parked, each)),
    gauge("breaker_open", "1 while the breaker of a service is not closed.", most("service", byService, open, each)),
    gauge(
      "budget_tokens",
      "Retries that the budget of a service allows now.",
      summed(
        "service",
        byService,
        services.flatMap(({ name, budget }): Named[] => (budget ? [[name, budget.tokens]] : [])),
        each,
      ),
    ),
    gauge(
      "limit_left",
      "Starts that the rate limit of a service allows now.",
      summed(
        "service",
        byService,
        services.flatMap(({ name, rate }): Named[] => (rate ? [[name, rate.left]] : [])),
        each,
      ),
    ),
  ];
}

/** Causes with live letters by state; only those with a record can have another state than `open`. */
async function causesByState(store: Pick<Store, "cells">, { causes, noted }: StoreState["figures"]) {
  const { cells } = await store.cells(noted.map((name) => ({ kind: CAUSE_CELLS, name })));
  const counts = new Map<string, number>(CAUSE_STATES.map((state) => [state, 0]));
  for (const { state } of causeRecords(cells).values()) counts.set(state, (counts.get(state) ?? 0) + 1);
  const recorded = [...counts].reduce((sum, [state, count]) => sum + (state === "open" ? 0 : count), 0);
  counts.set("open", causes - recorded);
  return [...counts].map(([state, value]): MetricSample => ({ labels: { state }, value }));
}
