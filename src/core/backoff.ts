// How long to wait before the next attempt: plain data made by small factories, and one function that reads it.
// Randomness and the previous delay are parameters, so a job that moves between workers keeps its sequence.

import { type Duration, formatDuration, parseDuration } from "./duration.ts";
import { invalid, parseNumber, namesOf, parseOptions } from "./options.ts";
import type { Failure } from "./job.ts";

/** No retry ever waits longer than this: seven days. */
export const MAX_DELAY_MS = 7 * 86_400_000;

/**
 * How delays are spread so that jobs that failed together do not come back together: `full` between the floor and the
 * delay, `equal` the upper half of it, `decorrelated` between the initial delay and three times the previous one.
 */
export type Jitter = "full" | "equal" | "none" | "decorrelated";

/** A function of the attempts charged so far (1 after the first failure) and the failure; answers milliseconds. */
export type CustomDelay = (attempt: number, failure: Failure) => number;

interface Bounds {
  readonly initialMs: number;
  readonly minMs: number;
  readonly maxMs: number;
  readonly jitter: Jitter;
}

/** A resolved rule for delays; everything but `custom` is JSON. */
export type Backoff =
  | (Bounds & { readonly kind: "exponential"; readonly multiplier: number })
  | (Bounds & { readonly kind: "linear"; readonly stepMs: number })
  | (Bounds & { readonly kind: "fixed" })
  | { readonly kind: "immediate" }
  | { readonly kind: "custom"; readonly delay: CustomDelay };

/** How delays grow and how far; durations are at most 7 d. */
export interface BoundsOptions {
  /** The first delay; default 1 s, at most 7 d. */
  readonly initial?: Duration;
  /** The lower bound of every delay, after jitter too; default 0, at most 7 d. */
  readonly min?: Duration;
  /** The upper bound of every delay; default 1 h, at most 7 d. A longer `Retry-After` still counts. */
  readonly max?: Duration;
  /** How delays are spread, so that jobs that failed together do not come back together; default `full`. */
  readonly jitter?: Jitter;
}

/** Options of `exponential`. */
export interface ExponentialOptions extends BoundsOptions {
  /** Each delay is this many times the one before; default 3, from 1 to 1000. */
  readonly multiplier?: number;
}

/** Options of `linear`. */
export interface LinearOptions extends BoundsOptions {
  /** Each delay is this much longer than the one before; default 1.5 s, at most 7 d. */
  readonly factor?: Duration;
}

const BOUNDS = namesOf<BoundsOptions>()(["initial", "min", "max", "jitter"]);
const EXPONENTIAL = namesOf<ExponentialOptions>()([...BOUNDS, "multiplier"]);
const LINEAR = namesOf<LinearOptions>()([...BOUNDS, "factor"]);
const JITTERS: readonly Jitter[] = ["full", "equal", "none", "decorrelated"];

/** `initial × multiplier^n`: 1, 3, 9, 27 s by default, before jitter. */
export function exponential(options: ExponentialOptions = {}): Backoff {
  const given = parseOptions(options, EXPONENTIAL, "exponential");
  const multiplier = parseNumber(given.multiplier ?? 3, "exponential.multiplier", { min: 1, max: 1000 });
  return Object.freeze({ kind: "exponential", ...boundsOf(given, "exponential"), multiplier });
}

/** `initial + n × factor`: 1, 2.5, 4, 5.5 s by default, before jitter. */
export function linear(options: LinearOptions = {}): Backoff {
  const given = parseOptions(options, LINEAR, "linear");
  const stepMs = parseDuration(given.factor ?? 1500, "linear.factor", { maxMs: MAX_DELAY_MS });
  return Object.freeze({ kind: "linear", ...boundsOf(given, "linear"), stepMs });
}

/** The same delay every time; jitter is `none` unless asked for and never makes it longer. */
export function fixed(delay: Duration, options: { readonly jitter?: Exclude<Jitter, "decorrelated"> } = {}): Backoff {
  const initialMs = parseDuration(delay, "fixed", { maxMs: MAX_DELAY_MS });
  const jitter = parseJitter(parseOptions(options, ["jitter"], "fixed").jitter ?? "none", "fixed");
  if (jitter === "decorrelated") {
    throw invalid("fixed.jitter", '"full", "equal" or "none"', jitter, "use exponential for growing delays");
  }
  return Object.freeze({ kind: "fixed", initialMs, minMs: 0, maxMs: initialMs, jitter });
}

/** No wait, unless the service asked for one. */
export function immediate(): Backoff {
  return Object.freeze({ kind: "immediate" });
}

/** Delays from your own function; a bad answer (not a number, negative, thrown) falls back to the default exponential. */
export function custom(delay: CustomDelay): Backoff {
  if (typeof delay !== "function") throw invalid("custom", "a function (attempt, failure) => ms", delay, "pass one");
  return Object.freeze({ kind: "custom", delay });
}

/** The default of the library: exponential 1 s × 3, cap 1 h, full jitter. */
export const DEFAULT_BACKOFF: Backoff = exponential();

/** A backoff from the value of an option: one made by a factory (of any copy of the package) or a function. */
export function resolveBackoff(value: unknown, name: string): Backoff {
  if (typeof value === "function") return custom(value as CustomDelay);
  const given = (typeof value === "object" ? value : null) as Partial<Bounds & Record<string, unknown>> | null;
  const { initialMs: initial, minMs: min, maxMs: max, jitter } = given ?? {};
  const bounds = { initial, min, max, jitter } as BoundsOptions;
  switch (given?.kind) {
    case "exponential":
      return exponential({ ...bounds, multiplier: given.multiplier as number });
    case "linear":
      return linear({ ...bounds, factor: given.stepMs as number });
    case "fixed":
      return fixed(initial as number, { jitter: jitter as "none" });
    case "immediate":
      return immediate();
    case "custom":
      return custom(given.delay as CustomDelay);
    default:
      throw invalid(name, "exponential(…), linear(…), fixed(…), immediate() or a function", value, "use one of these");
  }
}

/** What the wait before the next try depends on. */
export interface DelayQuestion {
  /** Attempts already charged: 1 after the first failure. */
  readonly attempt: number;
  readonly failure: Failure;
  /** The wait before the attempt that failed; 0 where there was none. */
  readonly previousDelayMs: number;
  readonly random: () => number;
}

/** The wait before the next attempt in whole milliseconds: never under what the service asked for, never over 7 d. */
export function delayBefore(backoff: Backoff, question: DelayQuestion): number {
  const asked = question.failure.delayMs ?? question.failure.retryAfterMs ?? 0;
  const delay = Math.max(ownDelay(backoff, question), asked > 0 ? asked : 0);
  return Math.min(MAX_DELAY_MS, Math.ceil(delay));
}

function ownDelay(backoff: Backoff, question: DelayQuestion): number {
  if (backoff.kind === "immediate") return 0;
  if (backoff.kind !== "custom") return boundedDelay(backoff, question);
  try {
    const ms: unknown = backoff.delay(question.attempt, question.failure);
    if (typeof ms === "number" && ms >= 0) return ms;
  } catch {
    // A job must not be lost to a mistake in its delay function.
  }
  return ownDelay(DEFAULT_BACKOFF, question);
}

function boundedDelay(backoff: Exclude<Backoff, { kind: "immediate" | "custom" }>, question: DelayQuestion): number {
  const { initialMs, minMs, maxMs, jitter } = backoff;
  const { previousDelayMs, random } = question;
  const retries = Math.max(0, question.attempt - 1);
  const base = Math.min(maxMs, Math.max(minMs, growth(backoff, retries)));
  const between = (low: number, high: number) => low + random() * Math.max(0, high - low);
  const spread = {
    none: () => base,
    full: () => between(minMs, base),
    equal: () => between(base / 2, base),
    decorrelated: () => between(initialMs, (retries === 0 ? initialMs : previousDelayMs) * 3),
  }[jitter]();
  return Math.min(maxMs, Math.max(minMs, Math.round(spread)));
}

function growth(backoff: Exclude<Backoff, { kind: "immediate" | "custom" }>, retries: number): number {
  if (backoff.kind === "fixed") return backoff.initialMs;
  if (backoff.kind === "linear") return backoff.initialMs + retries * backoff.stepMs;
  // 0 × Infinity would be NaN.
  return backoff.initialMs === 0 ? 0 : backoff.initialMs * backoff.multiplier ** retries;
}

function boundsOf(given: { readonly [key in (typeof BOUNDS)[number]]?: unknown }, name: string): Bounds {
  const duration = (key: "initial" | "min" | "max", fallback: number) =>
    parseDuration(given[key] ?? fallback, `${name}.${key}`, { maxMs: MAX_DELAY_MS });
  const bounds = { initialMs: duration("initial", 1000), minMs: duration("min", 0), maxMs: duration("max", 3_600_000) };
  const largest = Math.max(bounds.initialMs, bounds.minMs);
  if (bounds.maxMs < largest) {
    const came = formatDuration(bounds.maxMs);
    throw invalid(`${name}.max`, `at least ${formatDuration(largest)}, as initial and min are`, came, "raise max");
  }
  return { ...bounds, jitter: parseJitter(given.jitter ?? "full", name) };
}

function parseJitter(value: unknown, name: string): Jitter {
  const jitter = JITTERS.find((known) => known === value);
  if (jitter === undefined) throw invalid(`${name}.jitter`, JITTERS.join(", "), value, "use one of these");
  return jitter;
}
