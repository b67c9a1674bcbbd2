// The counters of one process: plain numbers by type, added to as runs end, read when a monitor asks. A run costs a
// look in a map and a few additions (about 45 ns of processor time in a loop).
import { FAILURE_CLASSES } from "../core/job.ts";
import { RELEASE_REASONS, type Verdict } from "../core/verdict.ts";
import type { Meter } from "../report/meter.ts";
import type { RunTimes } from "../report/reporter.ts";
import type { EnqueueAnswer, Store } from "../store/store.ts";
import { boundedNames, type Exemplar, type Labels, type Metric, type MetricHistogram } from "./metric.ts";

/** The upper bounds of the buckets in seconds, from 5 ms to 1 hour. */
export const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600] as const;

/** A distribution of durations. */
class Histogram {
  readonly counts = new Float64Array(BUCKETS.length + 1);
  sum = 0;
  exemplars: (Exemplar | undefined)[] | null = null;

  add(ms: number, traceId?: string): void {
    const seconds = ms / 1_000;
    let at = 0;
    while (at < BUCKETS.length && seconds > (BUCKETS[at] as number)) at += 1;
    this.counts[at] = (this.counts[at] as number) + 1;
    this.sum += seconds;
    if (traceId !== undefined) (this.exemplars ??= [])[at] = { traceId, value: seconds };
  }

  read(labels: Labels): MetricHistogram {
    let count = 0;
    const buckets = [...BUCKETS, Number.POSITIVE_INFINITY].map((le, at) => {
      const exemplar = this.exemplars?.[at];
      return { le, count: (count += this.counts[at] as number), ...(exemplar && { exemplar }) };
    });
    return { labels, buckets, sum: this.sum };
  }
}

/** The outcomes of runs, in the order of `OUTCOME`. */
const OUTCOMES = ["completed", "retried", "dead", "released", "cancelled", "stale"] as const;
const OUTCOME: Readonly<Record<Verdict["kind"] | "stale", number>> = {
  complete: 0,
  retry: 1,
  dead: 2,
  release: 3,
  cancel: 4,
  stale: 5,
};
const RESULTS = ["created", "duplicate", "replaced", "conflict"] as const satisfies readonly EnqueueAnswer["kind"][];
const CLASS_AT = new Map<string, number>(FAILURE_CLASSES.map((name, at) => [name, at]));
const REASON_AT = new Map<string, number>(RELEASE_REASONS.map((name, at) => [name, at]));

/** The counters of one type. */
class TypeCounts {
  readonly outcomes = new Float64Array(OUTCOMES.length);
  readonly failures = new Float64Array(FAILURE_CLASSES.length);
  readonly results = new Float64Array(RESULTS.length);
  readonly run = new Histogram();
  readonly wait = new Histogram();
}

/** The verbs whose calls are timed. */
const VERBS = ["claim", "settle", "enqueue", "beat"] as const;
type TimedVerb = (typeof VERBS)[number];

/** The slots of a worker. */
export interface SlotCounts {
  readonly busy: number;
  readonly free: number;
  readonly leaked: number;
}

/** The counters of a process. */
export interface ProcessMeter extends Meter {
  /** The store, with the calls of some verbs timed. */
  timed(store: Store): Store;
  /** Reads the slots of a worker from now on; returns a function that ends this. */
  watch(slots: () => SlotCounts): () => void;
  /** Everything that was counted so far. */
  read(): Metric[];
}

const add = (counts: Float64Array, at: number | undefined): void => {
  if (at !== undefined) counts[at] = (counts[at] as number) + 1;
};

/** Everything that is counted. */
class Counts {
  readonly byType = new Map<string, TypeCounts>();
  readonly released = new Float64Array(RELEASE_REASONS.length);
  readonly delays = new Map<string, Histogram>();
  readonly verbs = VERBS.map((): VerbCounts => ({ seconds: new Histogram(), errors: 0 }));
  readonly workers = new Set<() => SlotCounts>();
  stale = 0;
  crashes = 0;
  readonly #label: (type: string) => string;

  constructor(label: (type: string) => string) {
    this.#label = label;
  }

  of(type: string): TypeCounts {
    const known = this.byType.get(type);
    if (known) return known;
    const name = this.#label(type);
    const counts = this.byType.get(name) ?? new TypeCounts();
    this.byType.set(name, counts);
    return counts;
  }

  fail(counts: TypeCounts, verdict: Extract<Verdict, { readonly kind: "retry" | "dead" }>): void {
    const { failure, charge } = verdict;
    add(counts.failures, CLASS_AT.get(failure.class));
    this.crashes += charge.crashes;
    if (verdict.kind !== "retry") return;
    const delay = this.delays.get(failure.class) ?? new Histogram();
    this.delays.set(failure.class, delay);
    delay.add(verdict.delayMs);
  }
}

/** Counters at zero; the types of the program have a label each, and others as long as there is room. */
export function openMeter(types: Iterable<string>, monotonic: () => number): ProcessMeter {
  const all = new Counts(boundedNames(types));
  return {
    ran(job, verdict, times) {
      const counts = all.of(job.type);
      add(counts.outcomes, OUTCOME[verdict.kind]);
      if (verdict.kind === "retry" || verdict.kind === "dead") all.fail(counts, verdict);
      else if (verdict.kind === "release") return add(all.released, REASON_AT.get(verdict.reason));
      if (times !== undefined) time(counts, job, times);
    },
    stale(type) {
      all.stale += 1;
      add(all.of(type).outcomes, OUTCOME.stale);
    },
    enqueued(type, result) {
      add(all.of(type).results, RESULTS.indexOf(result));
    },
    timed: (store) => timedStore(store, monotonic, (verb) => all.verbs[VERBS.indexOf(verb)] as VerbCounts),
    watch(slots) {
      all.workers.add(slots);
      return () => all.workers.delete(slots);
    },
    read: () => readCounts(all),
  };
}

function readCounts({ byType, released, delays, verbs, workers, stale, crashes }: Counts): Metric[] {
  const slots = [...workers].map((read) => read());
  const one = (value: number): Metric["samples"] => [{ labels: {}, value }];
  const timed = VERBS.flatMap((verb, at) => ofVerb(verb, verbs[at] as VerbCounts));
  return [
    ...ofTypes(byType),
    histogram("retry_delay", "Delays before retries, by failure class.", delays, "class"),
    counter("released_total", "Runs handed back without using an attempt, by reason.", [
      ...samples(RELEASE_REASONS, released, "reason", {}),
    ]),
    counter("stale_writes_total", "Verdicts that the store refused because the run had lost its lease.", one(stale)),
    counter("crashes_total", "Runs that ended with the death of their worker.", one(crashes)),
    gauge("leaked_slots", "Slots lost to handlers that ignore their abort signal.", one(sum(slots, "leaked"))),
    gauge("slots", "Slots of the workers of this process, by state.", [
      { labels: { state: "busy" }, value: sum(slots, "busy") },
      { labels: { state: "free" }, value: sum(slots, "free") },
    ]),
    histogram("store", "Duration of calls to the store, by verb.", timed, "verb"),
    counter(
      "store_errors_total",
      "Calls to the store that failed, by verb.",
      VERBS.map((verb, at) => ({ labels: { verb }, value: (verbs[at] as VerbCounts).errors })),
    ),
  ];
}

/** From claim to end; a job that came before it was due has not waited. */
function time(counts: TypeCounts, job: Parameters<Meter["ran"]>[0], times: RunTimes): void {
  const { claimedMs, startedMs, endedMs, trace } = times;
  const traceId = trace?.traceId;
  counts.run.add(endedMs - startedMs, traceId);
  counts.wait.add(Math.max(0, (job.startedAt ?? job.runAt) - job.runAt) + startedMs - claimedMs, traceId);
}

interface VerbCounts {
  readonly seconds: Histogram;
  errors: number;
}

function timedStore(store: Store, monotonic: () => number, countsOf: (verb: TimedVerb) => VerbCounts): Store {
  const timed = <K extends TimedVerb>(verb: K): Store[K] => {
    const counts = countsOf(verb);
    const call = store[verb] as (...args: unknown[]) => Promise<unknown>;
    return (async (...args: unknown[]) => {
      const from = monotonic();
      try {
        return await call(...args);
      } catch (error) {
        counts.errors += 1;
        throw error;
      } finally {
        counts.seconds.add(monotonic() - from);
      }
    }) as unknown as Store[K];
  };
  return { ...store, claim: timed("claim"), settle: timed("settle"), enqueue: timed("enqueue"), beat: timed("beat") };
}

function sum(slots: readonly SlotCounts[], field: keyof SlotCounts): number {
  return slots.reduce((total, each) => total + each[field], 0);
}

function counter(name: string, help: string, values: Metric["samples"]): Metric {
  return { name: `redrive_${name}`, type: "counter", help, samples: values } as Metric;
}

function gauge(name: string, help: string, values: Metric["samples"]): Metric {
  return { name: `redrive_${name}`, type: "gauge", help, samples: values } as Metric;
}

function histogram(name: string, help: string, all: Iterable<readonly [string, Histogram]>, label: string): Metric {
  const values = Array.from(all, ([value, each]) => each.read({ [label]: value }));
  return { name: `redrive_${name}_seconds`, type: "histogram", help, samples: values };
}

function ofVerb(verb: TimedVerb, { seconds }: VerbCounts): [string, Histogram][] {
  return seconds.counts.some((count) => count > 0) ? [[verb, seconds]] : [];
}

/** A value for each name that was counted. */
function* samples(names: readonly string[], counts: Float64Array, label: string, labels: Labels) {
  for (const [at, name] of names.entries())
    if (counts[at] !== 0) yield { labels: { ...labels, [label]: name }, value: counts[at] as number };
}

function ofTypes(byType: ReadonlyMap<string, TypeCounts>): Metric[] {
  const all = [...byType];
  const each = (names: readonly string[], label: string, of: (counts: TypeCounts) => Float64Array) =>
    all.flatMap(([type, counts]) => [...samples(names, of(counts), label, { type })]);
  const have = (of: (counts: TypeCounts) => Histogram): [string, Histogram][] =>
    all
      .map(([type, counts]): [string, Histogram] => [type, of(counts)])
      .filter(([, { counts }]) => counts.some(Boolean));
  return [
    counter(
      "runs_total",
      "Runs that ended, by type and outcome.",
      each(OUTCOMES, "outcome", ({ outcomes }) => outcomes),
    ),
    counter(
      "failures_total",
      "Runs that failed, by type and failure class.",
      each(FAILURE_CLASSES, "class", ({ failures }) => failures),
    ),
    counter(
      "enqueued_total",
      "Jobs that were enqueued, by type and result.",
      each(RESULTS, "result", ({ results }) => results),
    ),
    histogram(
      "run",
      "Duration of runs, by type.",
      have(({ run }) => run),
      "type",
    ),
    histogram(
      "wait",
      "Time from due to the start of the run, by type.",
      have(({ wait }) => wait),
      "type",
    ),
  ];
}
