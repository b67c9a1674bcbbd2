// What a worker may start of things that are limited for the whole fleet: slots of rate limits and of the ramp of a service
// that came back, and tokens of retry budgets. It withdraws a little ahead, a few times a second at most, and spends that
// as quota of lanes; what it does not use in time is lost to it, so that nobody makes up for it in a burst.
import { type Budget, type BudgetSettings, deposit, initialBudget, withdraw } from "../core/budget.ts";
import type { ActiveLane, LaneKind } from "../core/lane.ts";
import { type Interval, intervalOf, type RateBucket, type RateSettings, reserve } from "../core/rate.ts";
import type { Limits } from "../core/service.ts";
import { rampInterval } from "../core/service-record.ts";
import type { ServiceWatch } from "../queue/service-watch.ts";
import type { Cell, CellChange, Store } from "../store/store.ts";

/** What allowances need. */
export interface AllowancesOptions {
  readonly store: Pick<Store, "cells" | "setCells">;
  readonly watch: ServiceWatch;
  readonly limits: Limits;
}

/** How far ahead slots are reserved. */
const AHEAD_MS = 250;
/** More are reserved when the last one is this close. */
const SHORT_MS = 30;
/** A slot not used this long after its time is lost. */
const LOST_MS = 30;
/** How often tokens for retries are asked for. */
const BUDGET_MS = 250;
/** How long to wait before asking again where there was nothing. */
const NOTHING_MS = 20;

interface Rate {
  slots: number[];
  /** Not before this time anything is to be had. */
  nothingBefore: number;
}

interface Purse {
  tokens: number;
  /** Successes not yet deposited. */
  successes: number;
  askedAt: number;
}

/** The allowances of one worker. */
export class Allowances {
  readonly #options: AllowancesOptions;
  readonly #rates = new Map<string, Rate>();
  readonly #purses = new Map<string, Purse>();

  constructor(options: AllowancesOptions) {
    this.#options = options;
  }

  /** False while nothing is limited and no service has just come back: then nobody needs to be asked. */
  areNeeded(): boolean {
    const { watch, limits } = this.#options;
    if (limits.areSpread) return true;
    const { now } = watch;
    for (const service of watch.services()) {
      const { breaker } = watch.record(service);
      if (breaker.state === "closed" && breaker.rampUntil > now) return true;
    }
    return false;
  }

  /** Withdraws what these lanes lack, up to so many starts each. */
  async prepare(lanes: readonly ActiveLane[], want: number): Promise<void> {
    if (want <= 0) return;
    const { now } = this.#options.watch;
    const names = new Map<string, { readonly interval: Interval; readonly burst: number }>();
    const services = new Map<string, BudgetSettings>();
    for (const lane of lanes) {
      for (const [name, limit] of this.#ratesOf(lane, now)) if (this.#lacksSlots(name, now)) names.set(name, limit);
      const budget = lane.service === null ? null : this.#options.limits.service(lane.service).budget;
      if (lane.service !== null && budget && lane.kind !== "first" && this.#lacksTokens(lane.service, now))
        services.set(lane.service, budget);
    }
    if (names.size + services.size === 0) return;
    await this.#draw(names, services, want, now);
  }

  /** Adds what may be started now to the grants of a claim; at most `most` of what is spread over time. */
  grant(grants: Map<string, number>, lanes: readonly ActiveLane[], most: number): void {
    const { now } = this.#options.watch;
    const lower = (name: string, to: number): void => {
      grants.set(name, Math.min(grants.get(name) ?? to, to));
    };
    for (const lane of lanes) {
      for (const [name] of this.#ratesOf(lane, now)) lower(name, Math.min(most, this.#usable(name, now)));
      const { service } = lane;
      if (service !== null && this.#options.limits.service(service).budget)
        lower(`retry:${service}`, Math.floor(this.#purses.get(service)?.tokens ?? 0));
    }
  }

  /** When the next slot falls due, in milliseconds from now; null where nothing is waited for. */
  nextMs(): number | null {
    const { now } = this.#options.watch;
    let next: number | null = null;
    for (const { slots, nothingBefore } of this.#rates.values()) {
      const at = slots.find((slot) => slot > now) ?? (nothingBefore > now ? nothingBefore : null);
      if (at !== null) next = Math.min(next ?? at, at);
    }
    return next === null ? null : Math.max(1, Math.ceil(next - now));
  }

  /** Spends what the jobs that were taken cost. */
  spend(jobs: readonly (Pick<ActiveLane, "type" | "service" | "tenant"> & { readonly attempts: number })[]): void {
    if (this.#rates.size + this.#purses.size === 0) return;
    for (const { type, service, tenant, attempts } of jobs) {
      for (const name of [`type:${type}`, `service:${service}`, `tenant:${tenant}`])
        this.#rates.get(name)?.slots.shift();
      const purse = attempts > 0 && service !== null ? this.#purses.get(service) : undefined;
      if (purse) purse.tokens -= 1;
    }
  }

  /** A success pays into the budget of its service. */
  earn(service: string): void {
    if (!this.#options.limits.service(service).budget) return;
    this.#purseOf(service).successes += 1;
  }

  /** The rate limits of a lane, and the ramp of its service. */
  *#ratesOf(lane: LimitedLane, now: number): Generator<readonly [string, { interval: Interval; burst: number }]> {
    const { watch, limits } = this.#options;
    const limited = (rate: RateSettings) => ({ interval: intervalOf(rate), burst: rate.burst });
    const type = limits.type(lane.type);
    if (type) yield [`type:${lane.type}`, limited(type)];
    const tenant = lane.tenant === null ? null : limits.tenant(lane.tenant).rate;
    if (tenant) yield [`tenant:${lane.tenant}`, limited(tenant)];
    if (lane.service === null) return;
    const { rate, breaker } = limits.service(lane.service);
    const ramp = breaker && rampInterval(watch.record(lane.service), breaker, now);
    if (!rate && !ramp) return;
    const steady = rate ? intervalOf(rate) : () => 0;
    yield [
      `service:${lane.service}`,
      { interval: ramp ? (at) => Math.max(ramp(at), steady(at)) : steady, burst: ramp ? 1 : (rate?.burst ?? 1) },
    ];
  }

  #usable(name: string, now: number): number {
    const rate = this.#rates.get(name);
    if (!rate) return 0;
    rate.slots = rate.slots.filter((slot) => slot > now - LOST_MS);
    return rate.slots.filter((slot) => slot <= now).length;
  }

  #lacksSlots(name: string, now: number): boolean {
    const rate = this.#rates.get(name);
    return !rate || (rate.nothingBefore <= now && (rate.slots.at(-1) ?? 0) < now + SHORT_MS);
  }

  #lacksTokens(service: string, now: number): boolean {
    const { tokens, askedAt } = this.#purseOf(service);
    return tokens < 1 && askedAt + BUDGET_MS <= now;
  }

  #purseOf(service: string): Purse {
    const known = this.#purses.get(service);
    if (known) return known;
    const purse = { tokens: 0, successes: 0, askedAt: 0 };
    this.#purses.set(service, purse);
    return purse;
  }

  async #draw(
    names: ReadonlyMap<string, { readonly interval: Interval; readonly burst: number }>,
    services: ReadonlyMap<string, BudgetSettings>,
    want: number,
    now: number,
  ): Promise<void> {
    const { store } = this.#options;
    const { cells } = await store.cells([
      ...[...names.keys()].map((name) => ({ kind: "rate", name })),
      ...[...services.keys()].map((name) => ({ kind: "budget", name })),
    ]);
    const found = new Map(cells.map((cell) => [`${cell.kind} ${cell.name}`, cell]));
    const changes: CellChange[] = [];
    const drawn: (() => void)[] = [];
    for (const [name, limit] of names) {
      const cell = found.get(`rate ${name}`);
      const { slots, bucket } = reserve(valueOf<RateBucket>(cell), limit, { want, now, until: now + AHEAD_MS });
      const rate = this.#rates.get(name) ?? { slots: [], nothingBefore: 0 };
      this.#rates.set(name, rate);
      rate.nothingBefore = now + NOTHING_MS;
      if (slots.length === 0) continue;
      changes.push({ kind: "rate", name, holder: "", version: cell?.version ?? 0, value: JSON.stringify(bucket) });
      drawn.push(() => {
        rate.nothingBefore = 0;
        rate.slots.push(...slots);
      });
    }
    for (const [service, settings] of services) {
      const cell = found.get(`budget ${service}`);
      const purse = this.#purseOf(service);
      const { successes } = purse;
      const paid = deposit(valueOf<Budget>(cell) ?? initialBudget(now), successes, settings, now);
      const { granted, budget } = withdraw(paid, want, settings, now);
      purse.askedAt = now;
      changes.push({
        kind: "budget",
        name: service,
        holder: "",
        version: cell?.version ?? 0,
        value: JSON.stringify(budget),
      });
      drawn.push(() => {
        purse.successes -= successes;
        purse.tokens += granted;
      });
    }
    if (changes.length === 0) return;
    // Whoever was faster has changed the bucket; the next look asks again.
    const written = await store.setCells(changes);
    for (const [at, take] of drawn.entries()) if (written[at]) take();
  }
}

type LimitedLane = Pick<ActiveLane, "type" | "service" | "tenant"> & { readonly kind: LaneKind };

function valueOf<T>(cell: Cell | undefined): T | null {
  return cell ? (JSON.parse(cell.value) as T) : null;
}
