// A rate limit as a plain value: the time of the next start. A worker reserves slots, points in time one interval
// apart, and starts one job at each. So no second has more starts than the limit, whichever worker makes them.
import { type Duration, parseDuration } from "./duration.ts";
import { fieldsFrom, parseNumber, namesOf, parseOptions } from "./options.ts";

/** The state of a rate limit: when the next start may happen; shared by the whole fleet. */
export interface RateBucket {
  readonly nextAt: number;
}

/** Reads a bucket from a stored text; null for an invalid text. */
export function bucketFrom(text: string): RateBucket | null {
  const { nextAt } = fieldsFrom(text);
  return typeof nextAt === "number" ? { nextAt } : null;
}

/** Resolved settings of a rate limit. */
export interface RateSettings {
  readonly limit: number;
  readonly perMs: number;
  readonly burst: number;
}

/** A rate limit. */
export interface RateOptions {
  /** Starts allowed in the time: 0.001 to 1,000,000. */
  readonly limit: number;
  /** The time they are spread over; default 1 s, from 1 ms to 1 d. */
  readonly per?: Duration;
  /** Starts allowed at once after a quiet time; default 1, from 1 to 1,000,000. */
  readonly burst?: number;
}

const FIELDS = namesOf<RateOptions>()(["limit", "per", "burst"]);
/** How late a slot may still be used: the time that a look and a claim take. */
const LATE_MS = 30;
/**
 * How much of an idle limit with short steps is reserved at once, in milliseconds of its rate, and how long that stays
 * valid. No worker has more of it at a time, so using it late adds no more to a second than using it at once.
 */
const SPARE_MS = 4;
const SPARE_LATE_MS = 2_000;
/** How far the clocks of two workers may differ. */
const SKEW_MS = 1_000;

/** Complete settings from options; throws `invalid_argument` for a bad value. */
export function resolveRate(options: unknown, name: string): RateSettings {
  const given = parseOptions(options, FIELDS, name);
  return Object.freeze({
    limit: parseNumber(given.limit, `${name}.limit`, { min: 0.001, max: 1_000_000 }),
    perMs: parseDuration(given.per ?? 1000, `${name}.per`, { minMs: 1, maxMs: 86_400_000 }),
    burst: parseNumber(given.burst ?? 1, `${name}.burst`, { min: 1, max: 1_000_000, integer: true }),
  });
}

/** How a limit spreads starts. */
export interface Spread {
  /** Milliseconds between two starts. */
  readonly stepMs: number;
  /** Starts that may happen at once after a quiet time. */
  readonly burst: number;
}

/** How a rate limit spreads starts. */
export function spreadOf({ limit, perMs, burst }: RateSettings): Spread {
  return { stepMs: perMs / limit, burst };
}

/** How many starts a bucket whose next slot is at `nextAt` allows at once. */
export function startsLeft(nextAt: number, { stepMs, burst }: Spread, now: number): number {
  return nextAt > now ? 0 : Math.min(burst, Math.floor((now - nextAt) / stepMs) + 1);
}

/** Slots that belong to one worker: `count` starts, the first at `from` and each a step later. */
export interface Slots {
  readonly from: number;
  readonly stepMs: number;
  readonly count: number;
  /** How long after its time each may still be used. */
  readonly lateMs: number;
  /** Reserved from an idle bucket, beyond what was wanted: they need not be used at once. */
  readonly isSpare: boolean;
}

/** Slots that expired unused: the first of them, and the end of their reservation. */
export interface Lost {
  readonly from: number;
  readonly end: number;
}

/**
 * Reserves up to `want` slots that fall due before `until`, and answers the bucket without them. Lost slots can be
 * reserved again if no worker has reserved any since: a limit of one an hour must not wait for the next hour. A bucket
 * further ahead than this limit ever reserves belongs to another limit, or to a clock that stepped back, and is
 * ignored.
 */
export function reserve(
  bucket: RateBucket | null,
  { stepMs, burst }: Spread,
  { want, now, until }: { readonly want: number; readonly now: number; readonly until: number },
  lost: Lost | null = null,
): { readonly slots: Slots; readonly bucket: RateBucket } {
  const before = lost && bucket?.nextAt === lost.end ? lost.from : (bucket?.nextAt ?? Number.NEGATIVE_INFINITY);
  const nextAt = before > until + stepMs + SKEW_MS ? now : before;
  const madeUpMs = (burst - 1) * stepMs + Math.min(LATE_MS, stepMs);
  const from = Math.max(nextAt, now - madeUpMs);
  // From an idle bucket a little more at once, without hurry to use it: no other worker waits for it.
  const isIdle = nextAt <= now;
  const spare = isIdle ? Math.floor(SPARE_MS / stepMs) : 0;
  const room = until < from ? 0 : Math.floor((until - from) / stepMs) + 1;
  const count = Math.min(Math.max(want, spare), room);
  const isSpare = count > want;
  const lateMs = (burst === 1 ? 0 : madeUpMs) + (isSpare ? SPARE_LATE_MS : LATE_MS);
  return { slots: { from, stepMs, count, lateMs, isSpare }, bucket: { nextAt: from + count * stepMs } };
}

/** True for a limit with steps so short that an idle bucket gives more slots than wanted. */
export function canSpare({ stepMs }: Spread): boolean {
  return stepMs <= SPARE_MS;
}

/** True for slots that must start at their time: not spare ones, of a limit with long steps. */
export function isTight({ stepMs, isSpare }: Slots): boolean {
  return !isSpare && stepMs > SPARE_MS;
}

/** The slots without those whose time has passed. */
export function withoutLost(slots: Slots, now: number): Slots {
  const lost = Math.ceil((now - slots.lateMs - slots.from) / slots.stepMs);
  return lost <= 0 ? slots : without(slots, lost);
}

/** The slots without the first so many. */
export function without(slots: Slots, used: number): Slots {
  const taken = Math.min(used, slots.count);
  const { stepMs, lateMs, isSpare } = slots;
  return { from: slots.from + taken * stepMs, stepMs, count: slots.count - taken, lateMs, isSpare };
}

/** How many of the slots may be used now. */
export function usable({ from, stepMs, count }: Slots, now: number): number {
  return now < from ? 0 : Math.min(count, Math.floor((now - from) / stepMs) + 1);
}
