// A circuit breaker as a plain value, one per service, and the one function that changes it. Being JSON, it is kept by
// the store and shared by the whole fleet; whoever steps it writes it back with compare-and-set.
//
//   closed --failures--> open --after openMs--> half_open --successes--> closed
//   half_open --a failed probe--> open        any --force_open--> isolated --its time, if any--> half_open

import { type Duration, parseDuration } from "./duration.ts";
import { invalid, parseNumber, parseOptions } from "./options.ts";
import type { FailureClass } from "./job.ts";

/** Calls counted in one slice of the window. */
export interface BreakerBucket {
  readonly startedAt: number;
  readonly successes: number;
  readonly failures: number;
}

/** The state of a breaker; `untilMs` and times are epoch milliseconds. */
export type Breaker =
  | { readonly state: "closed"; readonly consecutive: number; readonly buckets: readonly BreakerBucket[] }
  | { readonly state: "open"; readonly openedAt: number; readonly untilMs: number; readonly reason: string }
  | {
      readonly state: "half_open";
      /** Last news of a probe; after five minutes of silence lost probes are replaced. */
      readonly heardAt: number;
      readonly left: number;
      readonly running: number;
      readonly successes: number;
    }
  | { readonly state: "isolated"; readonly openedAt: number; readonly untilMs: number | null; readonly reason: string };

/** What can happen to a breaker. */
export type BreakerEvent =
  | { readonly kind: "success" }
  | { readonly kind: "failure"; readonly class: FailureClass }
  | { readonly kind: "counts"; readonly successes: number; readonly failures: number }
  | { readonly kind: "tick" | "probe_taken" | "probe_lost" | "force_close" | "reset" }
  | { readonly kind: "force_open"; readonly reason: string; readonly untilMs: number | null };

/** Resolved thresholds of a breaker. */
export interface BreakerSettings {
  readonly failures: number;
  readonly failureRate: number;
  readonly minimumCalls: number;
  readonly windowMs: number;
  readonly openMs: number;
  readonly probes: number;
  readonly closeAfter: number;
}

/** Thresholds of a breaker. */
export interface BreakerOptions {
  /** Failures in a row that open it; default 10, from 1 to 1,000,000, Infinity for never. */
  readonly failures?: number;
  /** Share of failed calls in the window that opens it, 0.001 to 1; default 0.5, Infinity for never. */
  readonly failureRate?: number;
  /** Calls in the window before the rate counts; default 20, from 1 to 1,000,000. */
  readonly minimumCalls?: number;
  /** The time over which calls are counted; default 1 m, from 1 s to 1 d. */
  readonly window?: Duration;
  /** How long it stays open before it probes; default 30 s, from 1 ms to 7 d. */
  readonly openFor?: Duration;
  /** Calls let through while half-open; default 3, from 1 to 1,000,000. */
  readonly probes?: number;
  /** Probes that must succeed to close it, at most `probes`; default 2. */
  readonly closeAfter?: number;
}

/** The thresholds of a breaker nobody configured. */
export const BREAKER_DEFAULTS: BreakerSettings = Object.freeze({
  failures: 10,
  failureRate: 0.5,
  minimumCalls: 20,
  windowMs: 60_000,
  openMs: 30_000,
  probes: 3,
  closeAfter: 2,
});

const BUCKETS = 6;
const PROBE_SILENCE_MS = 300_000;
const OPTION_KEYS = ["failures", "failureRate", "minimumCalls", "window", "openFor", "probes", "closeAfter"] as const;
const SERVICE_FAILURES: readonly FailureClass[] = ["network", "transient", "timeout", "system"];

/** A breaker that has seen nothing. */
export const initialBreaker: Breaker = Object.freeze({ state: "closed", consecutive: 0, buckets: Object.freeze([]) });

/** Complete settings from options; throws `invalid_argument` for what makes no sense. */
export function resolveBreaker(options: BreakerOptions = {}, name = "breaker"): BreakerSettings {
  const given = parseOptions(options, OPTION_KEYS, name);
  const count = (key: "failures" | "minimumCalls" | "probes" | "closeAfter", infinite = false) =>
    parseNumber(given[key] ?? BREAKER_DEFAULTS[key], `${name}.${key}`, {
      min: 1,
      max: 1_000_000,
      integer: true,
      infinite,
    });
  const rate = given.failureRate ?? BREAKER_DEFAULTS.failureRate;
  const probes = count("probes");
  const closeAfter =
    given.closeAfter === undefined ? Math.min(BREAKER_DEFAULTS.closeAfter, probes) : count("closeAfter");
  if (closeAfter > probes) throw invalid(`${name}.closeAfter`, `at most probes, ${probes}`, closeAfter, "raise probes");
  return Object.freeze({
    failures: count("failures", true),
    failureRate: parseNumber(rate, `${name}.failureRate`, { min: 0.001, max: 1, infinite: true }),
    minimumCalls: count("minimumCalls"),
    windowMs: parseDuration(given.window ?? BREAKER_DEFAULTS.windowMs, `${name}.window`, {
      minMs: 1000,
      maxMs: 86_400_000,
    }),
    openMs: parseDuration(given.openFor ?? BREAKER_DEFAULTS.openMs, `${name}.openFor`, {
      minMs: 1,
      maxMs: 7 * 86_400_000,
    }),
    probes,
    closeAfter,
  });
}

/** Whether failures of this class speak of the service rather than of the job. */
export function countsAgainstService(found: FailureClass): boolean {
  return SERVICE_FAILURES.includes(found);
}

/** How many jobs may start now: all, none, or the probes left; one where the time to probe has come. */
export function admits(breaker: Breaker, now: number): number {
  if (breaker.state === "closed") return Number.POSITIVE_INFINITY;
  if (breaker.state === "half_open") return breaker.left;
  return breaker.untilMs !== null && now >= breaker.untilMs ? 1 : 0;
}

/** The breaker after an event; the same object where nothing changed. */
export function step(breaker: Breaker, event: BreakerEvent, settings: BreakerSettings, now: number): Breaker {
  const current = passTime(breaker, settings, now);
  switch (event.kind) {
    case "reset":
      return initialBreaker;
    case "force_close":
      return current.state === "closed" ? current : initialBreaker;
    case "force_open":
      return { state: "isolated", openedAt: now, untilMs: event.untilMs, reason: event.reason };
    case "tick":
      return current;
    default:
      if (current.state === "closed") return stepClosed(current, event, settings, now);
      return current.state === "half_open" ? stepHalfOpen(current, event, settings, now) : current;
  }
}

type Closed = Extract<Breaker, { state: "closed" }>;
type HalfOpen = Extract<Breaker, { state: "half_open" }>;
type Evidence = Exclude<BreakerEvent, { kind: "tick" | "force_close" | "force_open" | "reset" }>;

/** What time alone does: an open breaker starts to probe, silent probes are replaced. */
function passTime(breaker: Breaker, settings: BreakerSettings, now: number): Breaker {
  const probing: HalfOpen = { state: "half_open", heardAt: now, left: settings.probes, running: 0, successes: 0 };
  if (breaker.state === "closed") return breaker;
  if (breaker.state !== "half_open") return breaker.untilMs !== null && now >= breaker.untilMs ? probing : breaker;
  const silent = breaker.left === 0 && now - breaker.heardAt >= PROBE_SILENCE_MS;
  return silent ? { ...probing, successes: breaker.successes } : breaker;
}

function stepClosed(breaker: Closed, event: Evidence, settings: BreakerSettings, now: number): Breaker {
  const { successes, failures } = countsOf(event);
  if (successes + failures === 0) return breaker;
  const buckets = addToWindow(breaker.buckets, successes, failures, settings, now);
  // The order inside a batch is unknown; a service that answered at all is left to the rate.
  const consecutive = successes > 0 ? 0 : breaker.consecutive + failures;
  if (consecutive >= settings.failures) return opened(`${consecutive} failures in a row`, settings, now);
  const failed = buckets.reduce((sum, bucket) => sum + bucket.failures, 0);
  const calls = buckets.reduce((sum, bucket) => sum + bucket.successes, failed);
  if (failures > 0 && calls >= settings.minimumCalls && failed / calls >= settings.failureRate) {
    return opened(`${failed} of ${calls} calls failed`, settings, now);
  }
  return { state: "closed", consecutive, buckets };
}

/** News of runs begun before the opening is ignored: without a running probe it cannot be a probe's. */
function stepHalfOpen(breaker: HalfOpen, event: Evidence, settings: BreakerSettings, now: number): Breaker {
  const { left, running } = breaker;
  if (event.kind === "probe_taken") {
    return left === 0 ? breaker : { ...breaker, heardAt: now, left: left - 1, running: running + 1 };
  }
  if (running === 0) return breaker;
  const { successes, failures } = countsOf(event);
  if (failures > 0) return opened("a probe failed", settings, now);
  // A failure that says nothing of the service, like a lost probe, gives its place to another.
  const neutral = event.kind === "probe_lost" || event.kind === "failure";
  if (neutral) return { ...breaker, heardAt: now, left: left + 1, running: running - 1 };
  const counted = Math.min(successes, running);
  const total = breaker.successes + counted;
  if (total >= settings.closeAfter) return initialBreaker;
  return counted === 0 ? breaker : { ...breaker, heardAt: now, running: running - counted, successes: total };
}

function countsOf(event: Evidence): { readonly successes: number; readonly failures: number } {
  if (event.kind === "counts") return event;
  const failed = event.kind === "failure" && countsAgainstService(event.class);
  return { successes: event.kind === "success" ? 1 : 0, failures: failed ? 1 : 0 };
}

function opened(reason: string, settings: BreakerSettings, now: number): Breaker {
  return { state: "open", openedAt: now, untilMs: now + settings.openMs, reason };
}

/** The buckets still inside the window, the counts added to the newest; a clock that stepped back adds to it too. */
export function addToWindow(
  buckets: readonly BreakerBucket[],
  successes: number,
  failures: number,
  settings: Pick<BreakerSettings, "windowMs">,
  now: number,
): readonly BreakerBucket[] {
  const sliceMs = settings.windowMs / BUCKETS;
  const startedAt = Math.floor(now / sliceMs) * sliceMs;
  const kept = buckets.filter((bucket) => bucket.startedAt > now - settings.windowMs);
  const newest = kept.at(-1);
  if (newest === undefined || newest.startedAt < startedAt) return [...kept, { startedAt, successes, failures }];
  const sum = { ...newest, successes: newest.successes + successes, failures: newest.failures + failures };
  return [...kept.slice(0, -1), sum];
}
