// The circuit breaker of `retryable`: core's pure breaker, held in this process, for one function or shared by several.
// It refuses and counts; it never waits and never retries.
//
// Every change of state begins a new period, and a call's news counts only in the period that admitted it. So a slow
// call from before an opening is never taken for a probe.
import {
  admits,
  type Breaker,
  type BreakerEvent,
  type BreakerOptions,
  type BreakerSettings,
  initialBreaker,
  resolveBreaker,
  step,
} from "../core/breaker.ts";
import { RedriveError } from "../core/errors.ts";
import type { FailureClass } from "../core/job.ts";
import { checkName } from "../core/new-job.ts";
import { invalid } from "../core/options.ts";
import { realSystem } from "../system/real.ts";
import type { System } from "../system/system.ts";

/** What breakers made by any copy of this library carry. */
export const BREAKER_BRAND = Symbol.for("redrive.breaker");
/** The admission of a call that may not be made. */
export const REFUSED = -1;
/** Successes are counted in groups this many to a window: what a breaker costs while all is well. */
const GROUPS = 60;

/** Calls a breaker has counted. */
export interface BreakerCounts {
  /** Calls within the window, while the breaker is closed. */
  readonly successes: number;
  /** Failures within the window that spoke of the service, while the breaker is closed. */
  readonly failures: number;
  /** Such failures since the last success. */
  readonly consecutive: number;
  /** Calls not made because of this breaker, since it was created or reset. */
  readonly refused: number;
}

/** A circuit breaker of this process; made by `createBreaker`, given to `retryable` as `breaker`. */
export interface CircuitBreaker {
  readonly [BREAKER_BRAND]: 1;
  /** The name of the service it guards. */
  readonly name: string;
  /** `isolated` is open by hand; an open breaker whose time is over reads as `half_open`. */
  readonly state: Breaker["state"];
  /** What it has counted. */
  readonly counts: BreakerCounts;
  /** Why it is open; null while it is not. */
  readonly reason: string | null;
  /** When it starts to probe, in epoch milliseconds; null while it is not open, or open until it is closed by hand. */
  readonly untilMs: number | null;
  /** Refuses every call until this point in time (a `Date` or epoch milliseconds), or else until `close`. */
  open(reason: string, until?: Date | number): void;
  /** Lets calls through again; the counts of a closed breaker are kept. */
  close(): void;
  /** Closes it and forgets everything it has counted. */
  reset(): void;
}

/** The breaker as `retryable` uses it. */
export interface CallBreaker {
  /** The admission of a call that may be made now, or `REFUSED`. */
  admit(): number;
  /** Hears that an admitted call succeeded. */
  succeeded(admission: number): void;
  /** Hears that an admitted call failed; core knows which classes speak of the service. */
  failed(admission: number, found: FailureClass): void;
  /** Hears that nobody waits for an admitted call any more. */
  lost(admission: number): void;
  /** Whether it will still be open after this delay, so that waiting for another attempt is in vain. */
  outlasts(delayMs: number): boolean;
  /** What a refused call throws; `cause` is the failure of an earlier attempt, if there was one. */
  refusal(label: string, attempts: number, cause: unknown): RedriveError;
}

/** Makes a breaker that several functions can share; the name is that of the service it guards. */
export function createBreaker(name: string, options: BreakerOptions = {}): CircuitBreaker {
  return breakerOn(realSystem)(name, options);
}

/** `createBreaker` on another clock than the machine's. */
export function breakerOn(system: System): typeof createBreaker {
  return (name: string, options?: BreakerOptions) => {
    checkName("breaker.name", name);
    return new ServiceBreaker(name, resolveBreaker(options), system);
  };
}

/** True for a breaker made by any copy of this library. */
export function isBreaker(value: unknown): value is CircuitBreaker & CallBreaker {
  return typeof value === "object" && value !== null && (value as { [BREAKER_BRAND]?: unknown })[BREAKER_BRAND] === 1;
}

/** What a call throws that a breaker refused, which is called `what` there. */
export function refusalBy(
  { name, untilMs, reason, state }: CircuitBreaker,
  what: string,
  label: string,
  attempts: number,
  cause: unknown,
): RedriveError {
  const until = untilMs === null ? "until it is closed by hand" : `until ${new Date(untilMs).toISOString()}`;
  const why = state === "half_open" ? "half open, its probes are under way" : `open ${until} (${reason})`;
  const end = attempts === 0 ? "the call was not made" : `no further call after attempt ${attempts}`;
  const message = `${label}: ${what} is ${why}; ${end}; try again later, or close the breaker`;
  return new RedriveError("breaker_open", message, { cause, details: { breaker: name, untilMs, reason, attempts } });
}

/** Throws unless somebody says why a breaker is opened by hand. */
export function checkReason(reason: unknown): void {
  if (typeof reason === "string" && reason !== "") return;
  throw invalid("breaker.open", "a reason as text", reason, "say why, it is shown to those who are refused");
}

/** The end of an opening by hand; null for none. A duration would be a point in time long past, and open for no time at all. */
export function checkUntil(until: Date | number | undefined, now: number): number | null {
  const untilMs = until === undefined ? null : Number(until);
  if (untilMs === null || (untilMs > now && untilMs <= 8.64e15)) return untilMs;
  const expected = "a point in time to come, a Date or epoch milliseconds";
  throw invalid("breaker.open until", expected, until, "add Date.now()");
}

/** A breaker of this process. A class because admission and success are on the path of every call. */
export class ServiceBreaker implements CircuitBreaker, CallBreaker {
  readonly [BREAKER_BRAND] = 1 as const;
  readonly name: string;
  readonly #settings: BreakerSettings;
  readonly #system: System;
  readonly #groupMs: number;
  #value: Breaker = initialBreaker;
  #period = 0;
  #refused = 0;
  /** Successes not yet told to core, and when the first of them was. */
  #successes = 0;
  #since = 0;

  constructor(name: string, settings: BreakerSettings, system: System) {
    this.name = name;
    this.#settings = settings;
    this.#system = system;
    this.#groupMs = settings.windowMs / GROUPS;
  }

  /** The period under which a call may be made now, or `REFUSED`. */
  admit(): number {
    if (this.#value.state === "closed") return this.#period;
    const now = this.#system.now();
    const before = this.#value;
    this.#step({ kind: "tick" }, now);
    // Lost probes were replaced without a change of state; late news of the lost ones is none of the new ones'.
    if (before !== this.#value && before.state === this.#value.state) this.#period++;
    if (admits(this.#value, now) < 1) {
      this.#refused++;
      return REFUSED;
    }
    this.#step({ kind: "probe_taken" }, now);
    return this.#period;
  }

  /** Hears that an admitted call succeeded. */
  succeeded(period: number): void {
    if (period !== this.#period) return;
    const now = this.#system.now();
    if (this.#value.state !== "closed") return this.#step({ kind: "success" }, now);
    if (this.#successes > 0 && now - this.#since >= this.#groupMs) this.#tellSuccesses();
    if (this.#successes++ === 0) this.#since = now;
  }

  /** Hears that an admitted call failed; core knows which classes speak of the service. */
  failed(period: number, found: FailureClass): void {
    if (period !== this.#period) return;
    this.#tellSuccesses();
    this.#step({ kind: "failure", class: found }, this.#system.now());
  }

  /** Hears that nobody waits for an admitted call any more. */
  lost(period: number): void {
    if (period === this.#period) this.#step({ kind: "probe_lost" }, this.#system.now());
  }

  /** Whether it will still be open after this delay, so that waiting for another attempt is in vain. */
  outlasts(delayMs: number): boolean {
    const open = this.#value.state === "open" || this.#value.state === "isolated";
    return open && admits(this.#value, this.#system.now() + delayMs) < 1;
  }

  /** What a refused call throws; `cause` is the failure of an earlier attempt, if there was one. */
  refusal(label: string, attempts: number, cause: unknown): RedriveError {
    return refusalBy(this, `breaker ${this.name}`, label, attempts, cause);
  }

  get state(): Breaker["state"] {
    return this.#current().state;
  }

  get counts(): BreakerCounts {
    this.#tellSuccesses();
    const value = this.#value;
    const oldest = this.#system.now() - this.#settings.windowMs;
    const buckets = value.state === "closed" ? value.buckets.filter(({ startedAt }) => startedAt > oldest) : [];
    return {
      successes: buckets.reduce((sum, bucket) => sum + bucket.successes, 0),
      failures: buckets.reduce((sum, bucket) => sum + bucket.failures, 0),
      consecutive: value.state === "closed" ? value.consecutive : 0,
      refused: this.#refused,
    };
  }

  get reason(): string | null {
    const value = this.#current();
    return value.state === "open" || value.state === "isolated" ? value.reason : null;
  }

  get untilMs(): number | null {
    const value = this.#current();
    return value.state === "open" || value.state === "isolated" ? value.untilMs : null;
  }

  open(reason: string, until?: Date | number): void {
    checkReason(reason);
    const now = this.#system.now();
    const untilMs = checkUntil(until, now);
    this.#step({ kind: "force_open", reason, untilMs }, now);
  }

  close(): void {
    this.#step({ kind: "force_close" }, this.#system.now());
  }

  reset(): void {
    this.#successes = 0;
    this.#refused = 0;
    this.#step({ kind: "reset" }, this.#system.now());
  }

  #current(): Breaker {
    return step(this.#value, { kind: "tick" }, this.#settings, this.#system.now());
  }

  #tellSuccesses(): void {
    const successes = this.#successes;
    this.#successes = 0;
    if (successes > 0) this.#step({ kind: "counts", successes, failures: 0 }, this.#since);
  }

  #step(event: BreakerEvent, now: number): void {
    const next = step(this.#value, event, this.#settings, now);
    if (next.state !== this.#value.state) {
      this.#period++;
      this.#successes = 0;
    }
    this.#value = next;
  }
}
