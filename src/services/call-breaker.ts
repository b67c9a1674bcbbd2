// A breaker as `retryable` uses it: it refuses calls and counts them; it never waits and never retries. Core's machine
// decides; subclasses keep its record, in this process or in the store of a fleet.
import type { BreakerSettings } from "../core/breaker.ts";
import { RedriveError } from "../core/errors.ts";
import { callsOf, type Evidence } from "../core/evidence.ts";
import type { FailureClass } from "../core/job.ts";
import { invalid } from "../core/options.ts";
import {
  type Breaker,
  closed,
  openedByHand,
  resetAt,
  type ServiceRecord,
  type ShownBreaker,
  shownAt,
} from "../core/service-record.ts";
import type { System } from "../system/system.ts";

/** The brand of breakers made by any copy of this library. */
export const BREAKER_BRAND = Symbol.for("redrive.breaker");
/** The admission of a refused call. */
export const REFUSED = -1;

/** The calls that a breaker has counted. */
export interface BreakerCounts {
  /** Calls within the window, while the breaker is closed. */
  readonly successes: number;
  /** Failures within the window that count against the service, while the breaker is closed. */
  readonly failures: number;
  /** Such failures since the last success. */
  readonly consecutive: number;
  /** Calls refused by this breaker, since it was created or reset. */
  readonly refused: number;
}

/** A circuit breaker for `retryable`: of this process, made by `createBreaker`, or the fleet's (`redrive.breaker`). */
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
  /** When it starts to probe, in epoch milliseconds; null while it is not open, or open until closed by hand. */
  readonly untilMs: number | null;
  /** Refuses every call until this point in time (a `Date` or epoch milliseconds); without one until `close`. */
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
  /** Records that an admitted call succeeded. */
  succeeded(admission: number): void;
  /** Records that an admitted call failed; core knows which classes count against the service. */
  failed(admission: number, found: FailureClass): void;
  /** Records that an admitted call was abandoned. */
  lost(admission: number): void;
  /** Whether it will still be open after this delay, so that waiting for another attempt is useless. */
  outlasts(delayMs: number): boolean;
  /** The error of a refused call; `cause` is the failure of an earlier attempt, if there was one. */
  refusal(label: string, attempts: number, cause: unknown): RedriveError;
}

/** True for a breaker made by any copy of this library. */
export function isBreaker(value: unknown): value is CircuitBreaker & CallBreaker {
  return typeof value === "object" && value !== null && (value as { [BREAKER_BRAND]?: unknown })[BREAKER_BRAND] === 1;
}

/**
 * The common part of every call breaker, wherever its record is kept. A class, because its subclasses are on the path
 * of calls.
 */
export abstract class RecordedBreaker implements CircuitBreaker, CallBreaker {
  readonly [BREAKER_BRAND] = 1 as const;
  readonly name: string;
  protected readonly system: System;
  protected refused = 0;

  constructor(name: string, system: System) {
    this.name = name;
    this.system = system;
  }

  abstract admit(): number;
  abstract succeeded(admission: number): void;
  abstract failed(admission: number, found: FailureClass): void;
  abstract lost(admission: number): void;
  /** Its name in refusals. */
  protected abstract readonly title: string;
  protected abstract readonly settings: { readonly breaker: BreakerSettings | null; readonly rampMs: number };
  protected abstract readonly record: ServiceRecord;
  /** What this process saw of the service. */
  protected abstract readonly evidence: Evidence;
  /** The time by the clock of the record. */
  protected abstract readonly now: number;
  /** Stores the record that `next` returns. */
  protected abstract change(next: (record: ServiceRecord, now: number) => ServiceRecord): unknown;

  outlasts(delayMs: number): boolean {
    const { state, untilMs } = this.#shown;
    return (state === "open" || state === "isolated") && (untilMs === null || untilMs > this.now + delayMs);
  }

  refusal(label: string, attempts: number, cause: unknown): RedriveError {
    const { state, reason, untilMs } = this.#shown;
    const until = untilMs === null ? "until it is closed by hand" : `until ${new Date(untilMs).toISOString()}`;
    const why = state === "half_open" ? "half open, its probes are under way" : `open ${until} (${reason})`;
    const end = attempts === 0 ? "the call was not made" : `no further call after attempt ${attempts}`;
    const message = `${label}: ${this.title} is ${why}; ${end}; try again later, or close the breaker`;
    const details = { breaker: this.name, untilMs, reason, attempts };
    return new RedriveError("breaker_open", message, { cause, details });
  }

  get state(): Breaker["state"] {
    return this.#shown.state;
  }

  get reason(): string | null {
    return this.#shown.reason;
  }

  get untilMs(): number | null {
    return this.#shown.untilMs;
  }

  get counts(): BreakerCounts {
    const { breaker } = this.settings;
    const { refused, evidence } = this;
    if (!breaker || this.record.breaker.state !== "closed")
      return { successes: 0, failures: 0, consecutive: 0, refused };
    const { failures, all } = callsOf(evidence, breaker, this.now);
    return { successes: all - failures, failures, consecutive: evidence.streak, refused };
  }

  open(reason: string, until?: Date | number): void {
    if (typeof reason !== "string" || reason === "")
      throw invalid("breaker.open", "a reason as text", reason, "pass one; refused calls show it");
    const untilMs = until === undefined ? null : Number(until);
    // A duration would be a time long past, and open it for no time at all.
    if (untilMs !== null && !(untilMs > this.system.now() && untilMs <= 8.64e15)) {
      const expected = "a point in time in the future, a Date or epoch milliseconds";
      throw invalid("breaker.open until", expected, until, "add Date.now()");
    }
    this.change((record, now) => openedByHand(record, reason, untilMs, now));
  }

  close(): void {
    const { rampMs } = this.settings;
    this.change((record, now) => closed(record, rampMs, now));
  }

  reset(): void {
    this.refused = 0;
    this.change(resetAt);
  }

  get #shown(): ShownBreaker {
    return shownAt(this.record, this.now);
  }
}
