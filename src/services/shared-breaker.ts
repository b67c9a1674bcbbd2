// The breaker of a service as `retryable` uses it when it is shared with the fleet: calls outside the queue are refused
// when workers found the service down, and what they find counts like what workers find. Admission never waits: it goes by
// what was last read, and asks anew in the background, a few times a second while it is in use.
import { type Breaker, countsAgainstService } from "../core/breaker.ts";
import type { RedriveError } from "../core/errors.ts";
import { CALLER, callsOf } from "../core/evidence.ts";
import type { FailureClass } from "../core/job.ts";
import { checkName } from "../core/new-job.ts";
import type { Limits } from "../core/service.ts";
import {
  closed,
  isHeldBack,
  mayProbe,
  openedByHand,
  probed,
  resetAt,
  withoutBreaker,
  withProbe,
} from "../core/service-record.ts";
import type { Store } from "../store/store.ts";
import type { System } from "../system/system.ts";
import {
  type BreakerCounts,
  type CallBreaker,
  checkReason,
  checkUntil,
  type CircuitBreaker,
  BREAKER_BRAND,
  REFUSED,
  refusalBy,
} from "./call-breaker.ts";
import { ServiceWatch } from "./service-watch.ts";

/** How old the record of a service may be when a call is admitted. */
const FRESH_MS = 250;
/** How long the fleet waits for a probe. */
const PROBE_MS = 30_000;
/** How long a probe that was won waits for a call. */
const UNUSED_MS = 2_000;
/** The admission of a call while the breaker is closed; probes have numbers of their own above it. */
const CLOSED = 0;

/** Breakers shared with the fleet, by service. */
export interface SharedBreakers {
  of(service: string): CircuitBreaker;
  stop(): void;
}

/** Shared breakers over one store. */
export function openSharedBreakers({
  store,
  system,
  limits,
}: {
  readonly store: Store;
  readonly system: System;
  readonly limits: Limits;
}): SharedBreakers {
  const holder = `${CALLER}${system.workerId()}`;
  const watch = new ServiceWatch({
    store,
    system,
    limits,
    holder: () => holder,
    attempt: (_, call) => call().catch(() => null),
    onChange: () => undefined,
    onSick: () => undefined,
    onStandBack: () => undefined,
  });
  const breakers = new Map<string, SharedBreaker>();
  return {
    of(service) {
      checkName("service", service);
      const known = breakers.get(service) ?? new SharedBreaker(service, holder, watch, limits, system);
      breakers.set(service, known);
      return known;
    },
    stop: () => watch.stop(),
  };
}

class SharedBreaker implements CircuitBreaker, CallBreaker {
  readonly [BREAKER_BRAND] = 1 as const;
  readonly name: string;
  readonly #holder: string;
  readonly #watch: ServiceWatch;
  readonly #limits: Limits;
  readonly #system: System;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #refused = 0;
  /** A probe was won and waits for its call. */
  #permit = false;
  #asking = false;
  #probes = 0;

  constructor(name: string, holder: string, watch: ServiceWatch, limits: Limits, system: System) {
    this.name = name;
    this.#holder = holder;
    this.#watch = watch;
    this.#limits = limits;
    this.#system = system;
    this.#refresh();
  }

  admit(): number {
    this.#refresh();
    const record = this.#watch.record(this.name);
    if (!isHeldBack(record, this.#watch.now)) return CLOSED;
    const isGood = this.#permit && record.breaker.state === "half_open";
    this.#permit = false;
    if (isGood) return ++this.#probes;
    void this.#askForProbe();
    this.#refused++;
    return REFUSED;
  }

  succeeded(admission: number): void {
    if (admission === CLOSED) this.#watch.succeeded(this.name);
    else this.#probed("success");
  }

  failed(admission: number, found: FailureClass): void {
    const speaks = countsAgainstService(found);
    if (admission !== CLOSED) this.#probed(speaks ? "failure" : "neutral");
    else if (speaks && this.#limits.service(this.name).breaker) void this.#watch.failed(this.name);
  }

  lost(admission: number): void {
    if (admission !== CLOSED) this.#probed("neutral");
  }

  outlasts(delayMs: number): boolean {
    const { untilMs, state } = this;
    return (state === "open" || state === "isolated") && (untilMs === null || untilMs > this.#watch.now + delayMs);
  }

  refusal(label: string, attempts: number, cause: unknown): RedriveError {
    return refusalBy(this, `the fleet's breaker of ${this.name}`, label, attempts, cause);
  }

  get state(): Breaker["state"] {
    const { breaker, holdUntil } = this.#watch.record(this.name);
    return breaker.state === "closed" && holdUntil > this.#watch.now ? "open" : breaker.state;
  }

  get counts(): BreakerCounts {
    const settings = this.#limits.service(this.name).breaker;
    const evidence = this.#watch.evidence(this.name);
    const { failures, all } = settings ? callsOf(evidence, settings, this.#watch.now) : { failures: 0, all: 0 };
    return { successes: all - failures, failures, consecutive: evidence.streak, refused: this.#refused };
  }

  get reason(): string | null {
    const { breaker, holdUntil } = this.#watch.record(this.name);
    if ("reason" in breaker) return breaker.reason;
    return holdUntil > this.#watch.now ? "it asked to be left alone" : null;
  }

  get untilMs(): number | null {
    const { breaker, holdUntil } = this.#watch.record(this.name);
    if ("until" in breaker) return breaker.until;
    return holdUntil > this.#watch.now ? holdUntil : null;
  }

  open(reason: string, until?: Date | number): void {
    checkReason(reason);
    const untilMs = checkUntil(until, this.#system.now());
    void this.#watch.change(this.name, (record, now) => openedByHand(record, reason, untilMs, now));
  }

  close(): void {
    const { rampMs } = this.#limits.service(this.name);
    void this.#watch.change(this.name, (record, now) => closed(record, rampMs, now));
  }

  reset(): void {
    this.#refused = 0;
    void this.#watch.change(this.name, resetAt);
  }

  #refresh(): void {
    const now = this.#system.monotonic();
    if (now - this.#lookedMs < FRESH_MS) return;
    this.#lookedMs = now;
    void this.#watch.look();
  }

  async #askForProbe(): Promise<void> {
    const { breaker } = this.#limits.service(this.name);
    if (!breaker) return void this.#watch.change(this.name, withoutBreaker);
    if (this.#asking || !mayProbe(this.#watch.record(this.name), breaker, this.#watch.now)) return;
    this.#asking = true;
    this.#permit = await this.#watch.change(this.name, (record, now) =>
      mayProbe(record, breaker, now) ? withProbe(record, this.#holder, PROBE_MS, now) : record,
    );
    this.#asking = false;
    // Nobody calls any more: others must not wait for a probe that is not sent.
    if (this.#permit) this.#system.after(UNUSED_MS, () => this.#returnPermit());
  }

  #returnPermit(): void {
    if (!this.#permit) return;
    this.#permit = false;
    this.#probed("neutral");
  }

  #probed(result: "success" | "failure" | "neutral"): void {
    const { breaker, rampMs } = this.#limits.service(this.name);
    if (!breaker) return;
    void this.#watch.change(this.name, (record, now) => probed(record, this.#holder, result, { breaker, rampMs }, now));
  }
}
