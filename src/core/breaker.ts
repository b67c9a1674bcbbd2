// The options of a breaker, completed and checked, and the failure classes that count against a service. The breaker
// itself is in service-record.ts, the evidence that opens it in evidence.ts; both serve one process and a whole fleet.

import { type Duration, parseDuration } from "./duration.ts";
import { invalid, parseNumber, namesOf, parseOptions } from "./options.ts";
import type { FailureClass } from "./job.ts";

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

/** The default thresholds of a breaker. */
export const BREAKER_DEFAULTS: BreakerSettings = Object.freeze({
  failures: 10,
  failureRate: 0.5,
  minimumCalls: 20,
  windowMs: 60_000,
  openMs: 30_000,
  probes: 3,
  closeAfter: 2,
});

const OPTION_KEYS = namesOf<BreakerOptions>()([
  "failures",
  "failureRate",
  "minimumCalls",
  "window",
  "openFor",
  "probes",
  "closeAfter",
]);
const SERVICE_FAILURES: readonly FailureClass[] = ["network", "transient", "timeout", "system"];

/** Complete settings from options; throws `invalid_argument` for a bad value. */
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

/** Whether failures of this class say something about the service rather than about the job. */
export function countsAgainstService(found: FailureClass): boolean {
  return SERVICE_FAILURES.includes(found);
}
