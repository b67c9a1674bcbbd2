// What a worker may start of work that is limited for the whole fleet: slots of rate limits and of the ramp after an
// outage, and tokens of retry budgets. It withdraws a little ahead, a few times a second at most, and spends that as
// quota of lanes. Unused slots and tokens expire, so that no worker makes up for them in a burst.
import type { BudgetSettings } from "../core/budget.ts";
import type { ActiveLane } from "../core/lane.ts";
import { bucketFrom, canSpare, reserve, type Spread } from "../core/rate.ts";
import type { Limits } from "../core/service.ts";
import type { ServiceWatch } from "./service-watch.ts";
import type { CellChange, Store } from "../store/store.ts";
import { type RateSlots, isAwaited, isSpentUp, lacksSlots, useOne, usableOf } from "./rate-slots.ts";
import { openLaneRates, type RatesOf } from "./lane-rates.ts";
import { noTokens, filled, fillsAt, type BudgetTokens, tokensOf } from "./budget-tokens.ts";

/** What allowances need. */
export interface AllowancesOptions {
  readonly store: Pick<Store, "cells" | "setCells">;
  readonly watch: ServiceWatch;
  readonly limits: Limits;
  /** Jobs that can start within moments. */
  readonly soon: () => number;
}

/** How far ahead slots are reserved. */
const AHEAD_MS = 250;
/** The least and the longest wait before asking again after an empty answer. */
const NOTHING_MS = 20;
const NOTHING_MOST_MS = 1_000;

/** Most names that are remembered although nothing is reserved for them. */
const NAMES_MOST = 10_000;

/** Most lanes asked for in one call. */
const NAMES_AT_ONCE = 1_000;

/** A withdrawal from a bucket; 0 starts to take only what no other worker waits for. */
interface Wish {
  readonly spread: Spread;
  readonly want: number;
}

/** The allowances of one worker. */
export class Allowances {
  readonly #options: AllowancesOptions;
  readonly #rates = new Map<string, RateSlots>();
  readonly #budgetTokens = new Map<string, BudgetTokens>();
  readonly #ratesOf: RatesOf;
  #forgotten = 0;

  constructor(options: AllowancesOptions) {
    this.#options = options;
    this.#ratesOf = openLaneRates(options);
  }

  /** False while nothing is limited and no service is in its ramp: then no bucket needs to be read. */
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

  /** How many of the wanted jobs to take: few are fetched ahead where a start must happen at its time. */
  most(want: number): number {
    const { watch, soon } = this.#options;
    const { now } = watch;
    for (const rate of this.#rates.values()) if (isAwaited(rate, now)) return Math.min(want, soon());
    return want;
  }

  /**
   * Withdraws what the first of these lanes lack for their quotas, at most so many starts; and, since it asks anyway,
   * what no other worker waits for, for the other lanes.
   */
  async withdraw(
    lanes: readonly ActiveLane[],
    quotas: ReadonlyMap<number, number>,
    want: number,
    others: readonly ActiveLane[],
  ): Promise<void> {
    const { watch, soon } = this.#options;
    const { now } = watch;
    const names = new Map<string, Wish>();
    const services = new Map<string, BudgetSettings>();
    const first = Math.max(1, soon());
    for (const [at, lane] of lanes.entries()) {
      const isSoon = at < first;
      for (const { name, spread } of this.#ratesOf(lane, now)) {
        const wished = names.get(name)?.want ?? 0;
        if (wished === 0 && !lacksSlots(this.#rates.get(name), now)) continue;
        const more = isSoon ? (quotas.get(lane.lane) ?? want) : 0;
        if (isSoon || canSpare(spread)) names.set(name, { spread, want: Math.min(want, wished + more) });
      }
      const budget = isSoon ? this.#budgetOf(lane) : null;
      if (budget && this.#lacksTokens(lane.service as string, now)) services.set(lane.service as string, budget);
    }
    if (names.size + services.size === 0) return;
    for (const lane of others.slice(0, NAMES_AT_ONCE))
      for (const { name, spread } of this.#ratesOf(lane, now))
        if (!names.has(name) && lacksSlots(this.#rates.get(name), now)) names.set(name, { spread, want: 0 });
    await this.#draw(names, services, now);
  }

  /** The grants without what is known to be used up for now. */
  spentUp(grants: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
    const { now } = this.#options.watch;
    const lower = new Map(grants);
    for (const [name, rate] of this.#rates) if (isSpentUp(rate, now)) lower.set(name, 0);
    for (const [service, own] of this.#budgetTokens)
      if ((fillsAt(own, now) ?? 0) > now) lower.set(`retry:${service}`, 0);
    return lower;
  }

  /**
   * True if everything that the quotas of these lanes ask for, up to so many starts, may start at this moment; `least`
   * jobs start at once, however many the worker holds.
   */
  covers(lanes: readonly ActiveLane[], quotas: ReadonlyMap<number, number>, want: number, least = 0): boolean {
    const { watch, soon } = this.#options;
    const { now } = watch;
    const most = Math.max(least, soon());
    const needs = new Map<string, number>();
    for (const lane of lanes) {
      if (this.#budgetOf(lane)) return false;
      for (const { name } of this.#ratesOf(lane, now))
        needs.set(name, (needs.get(name) ?? 0) + (quotas.get(lane.lane) ?? want));
    }
    for (const [name, need] of needs)
      if (usableOf(this.#rates.get(name), now, most) < Math.min(need, want)) return false;
    return true;
  }

  /** The grants, lowered to what may start of these lanes at this moment; `least` as above. */
  lowered(grants: ReadonlyMap<string, number>, lanes: readonly ActiveLane[], least = 0): ReadonlyMap<string, number> {
    const { watch, soon } = this.#options;
    const { now } = watch;
    const most = Math.max(least, soon());
    const lower = new Map(grants);
    const put = (name: string, to: number): void => void lower.set(name, Math.min(lower.get(name) ?? to, to));
    for (const lane of lanes) {
      for (const { name } of this.#ratesOf(lane, now)) put(name, usableOf(this.#rates.get(name), now, most));
      if (this.#budgetOf(lane)) put(`retry:${lane.service}`, tokensOf(this.#purseOf(lane.service as string), now));
    }
    return lower;
  }

  /** When the next slot is due or tokens are asked for again, in milliseconds from now; null for never. */
  nextMs(): number | null {
    const { now } = this.#options.watch;
    let next: number | null = null;
    for (const { slots, nothingBefore } of this.#rates.values()) {
      const at = slots[0]?.from ?? nothingBefore;
      if (at > now) next = Math.min(next ?? at, at);
    }
    for (const own of this.#budgetTokens.values()) {
      const at = fillsAt(own, now);
      if (at !== null && at > now) next = Math.min(next ?? at, at);
    }
    return next === null ? null : Math.max(1, Math.ceil(next - now));
  }

  /** Spends the cost of the jobs that were taken. */
  spend(jobs: readonly (Pick<ActiveLane, "type" | "service" | "tenant"> & { readonly attempts: number })[]): void {
    if (this.#rates.size + this.#budgetTokens.size === 0) return;
    // Adjacent jobs are often of one kind.
    const [ofType, ofService, ofTenant] = [this.#finder("type"), this.#finder("service"), this.#finder("tenant")];
    for (const { type, service, tenant, attempts } of jobs) {
      useOne(ofType(type));
      useOne(ofService(service));
      useOne(ofTenant(tenant));
      const own = attempts > 0 && service !== null ? this.#budgetTokens.get(service) : undefined;
      if (own) own.tokens -= 1;
    }
  }

  /** Voids the slots of a service that was held back or came back: its ramp may need them further apart. */
  forget(service: string): void {
    this.#rates.delete(`service:${service}`);
    this.#forgotten += 1;
  }

  /** A success adds to the budget of its service. */
  earn(service: string): void {
    if (!this.#options.limits.service(service).budget) return;
    this.#purseOf(service).successes += 1;
  }

  /** Finds the rate of a name; remembers the last answer. */
  #finder(kind: string): (name: string | null) => RateSlots | undefined {
    let last: { readonly name: string | null; readonly rate: RateSlots | undefined } | null = null;
    return (name) => {
      if (last?.name !== name) last = { name, rate: name === null ? undefined : this.#rates.get(`${kind}:${name}`) };
      return last.rate;
    };
  }

  /** The retry budget that a lane uses. */
  #budgetOf({ service, kind }: ActiveLane): BudgetSettings | null {
    return service === null || kind === "first" ? null : this.#options.limits.service(service).budget;
  }

  #lacksTokens(service: string, now: number): boolean {
    const at = fillsAt(this.#purseOf(service), now);
    return at !== null && at <= now;
  }

  #purseOf(service: string): BudgetTokens {
    const known = this.#budgetTokens.get(service);
    if (known) return known;
    const own = noTokens();
    this.#budgetTokens.set(service, own);
    return own;
  }

  async #draw(
    names: ReadonlyMap<string, Wish>,
    services: ReadonlyMap<string, BudgetSettings>,
    now: number,
  ): Promise<void> {
    const { store } = this.#options;
    if (this.#rates.size > NAMES_MOST)
      for (const [name, { slots }] of this.#rates) if (slots.length === 0) this.#rates.delete(name);
    const forgotten = this.#forgotten;
    const { cells } = await store.cells([
      ...[...names.keys()].map((name) => ({ kind: "rate", name })),
      ...[...services.keys()].map((name) => ({ kind: "budget", name })),
    ]);
    // The withdrawal was made before a reset; the next look asks again.
    if (this.#forgotten !== forgotten) return;
    const found = new Map(cells.map((cell) => [`${cell.kind} ${cell.name}`, cell]));
    const changes: CellChange[] = [];
    const drawn: (() => void)[] = [];
    for (const [name, { spread, want: starts }] of names) {
      const cell = found.get(`rate ${name}`);
      const rate = this.#rates.get(name) ?? { slots: [], lost: null, nothingBefore: 0 };
      this.#rates.set(name, rate);
      const wish = { want: starts, now, until: now + AHEAD_MS };
      const { slots, bucket } = reserve(cell ? bucketFrom(cell.value) : null, spread, wish, rate.lost);
      const isAhead = slots.from > wish.until;
      if (isAhead) rate.nothingBefore = Math.min(now + NOTHING_MOST_MS, slots.from - AHEAD_MS);
      if (starts > 0) rate.nothingBefore = Math.max(now + NOTHING_MS, isAhead ? rate.nothingBefore : 0);
      if (slots.count === 0) continue;
      changes.push({ kind: "rate", name, holder: "", version: cell?.version ?? 0, value: JSON.stringify(bucket) });
      drawn.push(() => {
        rate.nothingBefore = 0;
        rate.lost = null;
        rate.slots.push(slots);
      });
    }
    for (const [service, settings] of services) {
      const cell = found.get(`budget ${service}`);
      const { value, take } = filled(this.#purseOf(service), cell?.value ?? null, settings, now);
      changes.push({ kind: "budget", name: service, holder: "", version: cell?.version ?? 0, value });
      drawn.push(take);
    }
    if (changes.length === 0) return;
    // Another worker changed the bucket first; the next look asks again.
    const written = await store.setCells(changes);
    for (const [at, take] of drawn.entries()) if (written[at]) take();
  }
}
