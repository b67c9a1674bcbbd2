// The breaker of a service as `retryable` uses it when it is shared with the fleet: calls outside the queue are refused
// when workers found the service down, and what these calls find counts like what workers find. Admission never waits:
// it uses the last record read, and reads again in the background, a few times a second while it is in use.
import { countsAgainstService } from "../core/breaker.ts";
import { CALLER, type Evidence } from "../core/evidence.ts";
import type { FailureClass } from "../core/job.ts";
import { checkName } from "../core/new-job.ts";
import type { Limits, ServiceSettings } from "../core/service.ts";
import { isHeldBack, mayProbe, probed, type ServiceRecord, withoutBreaker, withProbe } from "../core/service-record.ts";
import type { Store } from "../store/store.ts";
import type { System } from "../system/system.ts";
import { type CircuitBreaker, RecordedBreaker, REFUSED } from "./call-breaker.ts";
import { ServiceWatch } from "./service-watch.ts";

/** How old the record of a service may be when a call is admitted. */
const FRESH_MS = 250;
/** How long the fleet waits for a probe. */
const PROBE_MS = 30_000;
/** How long a probe waits for a call. */
const UNUSED_MS = 2_000;
/** The admission of a probe; other calls are admitted by their period, which is not negative. */
const PROBE = -2;

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

class SharedBreaker extends RecordedBreaker {
  protected readonly title: string;
  readonly #holder: string;
  readonly #watch: ServiceWatch;
  readonly #limits: Limits;
  #lookedMs = Number.NEGATIVE_INFINITY;
  /** A probe was taken and waits for its call. */
  #permit = false;
  #asking = false;

  constructor(name: string, holder: string, watch: ServiceWatch, limits: Limits, system: System) {
    super(name, system);
    this.title = `the fleet's breaker of ${name}`;
    this.#holder = holder;
    this.#watch = watch;
    this.#limits = limits;
    this.#refresh();
  }

  admit(): number {
    this.#refresh();
    const { record } = this;
    if (!isHeldBack(record, this.now)) return this.#watch.period(this.name);
    const isGood = this.#permit && record.breaker.state === "half_open";
    this.#permit = false;
    if (isGood) return PROBE;
    void this.#askForProbe();
    this.refused++;
    return REFUSED;
  }

  succeeded(admission: number): void {
    if (admission === PROBE) this.#probed("success");
    else this.#watch.succeeded(this.name, admission);
  }

  failed(admission: number, found: FailureClass): void {
    const speaks = countsAgainstService(found);
    if (admission === PROBE) this.#probed(speaks ? "failure" : "neutral");
    else if (speaks && this.settings.breaker) void this.#watch.failed(this.name, admission);
  }

  lost(admission: number): void {
    if (admission === PROBE) this.#probed("neutral");
  }

  protected get settings(): ServiceSettings {
    return this.#limits.service(this.name);
  }

  protected get record(): ServiceRecord {
    return this.#watch.record(this.name);
  }

  protected get evidence(): Evidence {
    return this.#watch.evidence(this.name);
  }

  protected get now(): number {
    return this.#watch.now;
  }

  protected change(next: (record: ServiceRecord, now: number) => ServiceRecord): Promise<boolean> {
    return this.#watch.change(this.name, next);
  }

  #refresh(): void {
    const now = this.system.monotonic();
    if (now - this.#lookedMs < FRESH_MS) return;
    this.#lookedMs = now;
    void this.#watch.look();
  }

  async #askForProbe(): Promise<void> {
    const { breaker } = this.settings;
    if (!breaker) return void this.change(withoutBreaker);
    if (this.#asking || !mayProbe(this.record, breaker, this.now)) return;
    this.#asking = true;
    this.#permit = await this.change((record, now) =>
      mayProbe(record, breaker, now) ? withProbe(record, this.#holder, PROBE_MS, now) : record,
    );
    this.#asking = false;
    // If no call comes, others must not wait for a probe that is not sent.
    if (this.#permit) this.system.after(UNUSED_MS, () => this.#returnPermit());
  }

  #returnPermit(): void {
    if (!this.#permit) return;
    this.#permit = false;
    this.#probed("neutral");
  }

  #probed(result: "success" | "failure" | "neutral"): void {
    const { breaker, rampMs } = this.settings;
    if (!breaker) return;
    void this.change((record, now) => probed(record, this.#holder, result, { breaker, rampMs }, now));
  }
}
