// A rate limit as a plain value: the time of the next start. Whoever wants to start work reserves slots, points in time
// one interval apart, and starts one job at each. So no second holds more starts than the limit, whoever makes them.
import { type Duration, parseDuration } from "./duration.ts";
import { parseNumber, parseOptions } from "./options.ts";

/** The state of a rate limit: when the next start may be; shared by the whole fleet. */
export interface RateBucket {
  readonly nextAt: number;
}

/** Resolved settings of a rate limit. */
export interface RateSettings {
  readonly limit: number;
  readonly perMs: number;
  readonly burst: number;
}

/** A rate limit as people write it. */
export interface RateOptions {
  /** Starts allowed in the time: 0.001 to 1,000,000. */
  readonly limit: number;
  /** The time they are spread over; default 1 s, from 1 ms to 1 d. */
  readonly per?: Duration;
  /** Starts that may be made up for at once after a quiet time; default 1, from 1 to 1,000,000. */
  readonly burst?: number;
}

/** How much later than its time a slot may still be used: what a look and a claim take. */
const LATE_MS = 20;

/** Complete settings from options; throws `invalid_argument` for what makes no sense. */
export function resolveRate(options: unknown, name: string): RateSettings {
  const given = parseOptions(options, ["limit", "per", "burst"], name);
  return Object.freeze({
    limit: parseNumber(given.limit, `${name}.limit`, { min: 0.001, max: 1_000_000 }),
    perMs: parseDuration(given.per ?? 1000, `${name}.per`, { minMs: 1, maxMs: 86_400_000 }),
    burst: parseNumber(given.burst ?? 1, `${name}.burst`, { min: 1, max: 1_000_000, integer: true }),
  });
}

/** Milliseconds between two starts at a time; constant for a limit, shrinking for a ramp. */
export type Interval = (at: number) => number;

/** The interval of a rate limit. */
export function intervalOf({ limit, perMs }: RateSettings): Interval {
  const ms = perMs / limit;
  return () => ms;
}

/** Slots that were reserved, as points in time in their order, and the bucket without them. */
export interface Reservation {
  readonly slots: readonly number[];
  readonly bucket: RateBucket;
}

/** Reserves up to `want` slots that fall due before `until`; those before `now` may be used at once. */
export function reserve(
  bucket: RateBucket | null,
  { interval, burst }: { readonly interval: Interval; readonly burst: number },
  { want, now, until }: { readonly want: number; readonly now: number; readonly until: number },
): Reservation {
  const ms = interval(now);
  let nextAt = Math.max(bucket?.nextAt ?? now, now - (burst - 1) * ms - Math.min(LATE_MS, ms));
  const slots: number[] = [];
  while (slots.length < want && nextAt <= until) {
    slots.push(nextAt);
    nextAt += interval(Math.max(now, nextAt));
  }
  return { slots, bucket: { nextAt } };
}

/** The bucket with unused slots given back; as it is where somebody has reserved since. */
export function giveBack(bucket: RateBucket, before: RateBucket, slots: readonly number[]): RateBucket {
  const [first] = slots;
  return first === undefined || bucket.nextAt !== before.nextAt ? bucket : { nextAt: Math.min(first, bucket.nextAt) };
}
