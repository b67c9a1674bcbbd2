// The rate limits that apply to a lane: those of its type, its tenant and its service, and the ramp of a service after
// an outage.
import type { ActiveLane } from "../core/lane.ts";
import { type RateSettings, type Spread, spreadOf } from "../core/rate.ts";
import type { Limits } from "../core/service.ts";
import { rampStepMs } from "../core/service-record.ts";
import type { ServiceWatch } from "./service-watch.ts";

/** A rate limit under its name. */
export interface NamedSpread {
  readonly name: string;
  readonly spread: Spread;
}

/** The rate limits of a lane at this time. */
export type RatesOf = (lane: ActiveLane, now: number) => readonly NamedSpread[];

/** Most lanes whose limits are cached, because every claim asks for them. */
const LANES_MOST = 10_000;

/** Finds the limits of lanes. */
export function openLaneRates({ watch, limits }: { readonly watch: ServiceWatch; readonly limits: Limits }): RatesOf {
  const known = new Map<number, readonly NamedSpread[]>();
  const steadyOf = (lane: ActiveLane): readonly NamedSpread[] => {
    const before = known.get(lane.lane);
    if (before) return before;
    const rates = steadyRates(lane, limits);
    if (known.size >= LANES_MOST) known.clear();
    known.set(lane.lane, rates);
    return rates;
  };
  return (lane, now) => {
    const steady = steadyOf(lane);
    const { service } = lane;
    const breaker = service === null ? null : limits.service(service).breaker;
    const rampMs = service !== null && breaker ? rampStepMs(watch.record(service), breaker, now) : 0;
    if (rampMs === 0) return steady;
    const name = `service:${service}`;
    const ownMs = steady.find((rate) => rate.name === name)?.spread.stepMs ?? 0;
    const ramp = { name, spread: { stepMs: Math.max(rampMs, ownMs), burst: 1 } };
    return [...steady.filter((rate) => rate.name !== name), ramp];
  };
}

function steadyRates({ type, tenant, service }: ActiveLane, limits: Limits): NamedSpread[] {
  const rates: NamedSpread[] = [];
  const add = (name: string, rate: RateSettings | null): void => {
    if (rate) rates.push({ name, spread: spreadOf(rate) });
  };
  add(`type:${type}`, limits.type(type));
  if (tenant !== null) add(`tenant:${tenant}`, limits.tenant(tenant).rate);
  if (service !== null) add(`service:${service}`, limits.service(service).rate);
  return rates;
}
