// A rate limit as a plain value: the time of the next start. Whoever wants to start work reserves slots, points in time
// one interval apart, and starts one job at each. So no second holds more starts than the limit, whoever makes them.
import { type Duration, parseDuration } from "./duration.ts";
import { fieldsFrom, parseNumber, namesOf, parseOptions } from "./options.ts";

/** The state of a rate limit: when the next start may be; shared by the whole fleet. */
export interface RateBucket {
  readonly nextAt: number;
}

/** The bucket of a text from the store; null for a text that is none. */
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

/** How much later than its time a slot may still be used: what a look and a claim take. */
const LATE_MS = 30;
/**
 * What is reserved at once of a limit that is far away, in milliseconds of its rate, and how long that is good: nobody has
 * more of it at a time, so a worker that uses it late adds no more to a second than one that uses it at once.
 */
const FIELDS = namesOf<RateOptions>()(["limit", "per", "burst"]);
const SPARE_MS = 4;
const SPARE_LATE_MS = 2_000;
/** How far the clocks of two workers may be apart. */
const SKEW_MS = 1_000;

/** Complete settings from options; throws `invalid_argument` for what makes no sense. */
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
  /** Starts that may be made up for at once. */
  readonly burst: number;
}

/** How a rate limit spreads starts. */
export function spreadOf({ limit, perMs, burst }: RateSettings): Spread {
  return { stepMs: perMs / limit, burst };
}

/** Slots that belong to one worker: `count` starts, the first at `from` and each a step later. */
export interface Slots {
  readonly from: number;
  readonly stepMs: number;
  readonly count: number;
  /** How long after its time each may still be used. */
  readonly lateMs: number;
  /** From a bucket that nobody else was waiting for: they may be used in peace. */
  readonly isSpare: boolean;
}

/** When the slots that were reserved before end, and the first of them that was lost; nobody may have missed them. */
export interface Lost {
  readonly from: number;
  readonly end: number;
}

/**
 * Reserves up to `want` slots that fall due before `until`, and answers the bucket without them. Slots that were lost
 * are to be had again where nobody has reserved any since: a limit of one an hour must not wait for the next hour. A bucket
 * further ahead than this limit ever reserves is of another limit, or of a clock that stepped back, and counts no more.
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
  // From a bucket that is not in demand a little more at once, to be used in peace: nobody misses it.
  const isIdle = nextAt <= now;
  const spare = isIdle ? Math.floor(SPARE_MS / stepMs) : 0;
  const room = until < from ? 0 : Math.floor((until - from) / stepMs) + 1;
  const count = Math.min(Math.max(want, spare), room);
  const isSpare = count > want;
  const lateMs = (burst === 1 ? 0 : madeUpMs) + (isSpare ? SPARE_LATE_MS : LATE_MS);
  return { slots: { from, stepMs, count, lateMs, isSpare }, bucket: { nextAt: from + count * stepMs } };
}

/** True for a limit of which something is left over where nobody waits for it. */
export function canSpare({ stepMs }: Spread): boolean {
  return stepMs <= SPARE_MS;
}

/** True for slots of a limit that is never far away. */
export function isTight({ stepMs, isSpare }: Slots): boolean {
  return !isSpare && stepMs > SPARE_MS;
}

/** The slots without those whose time is over. */
export function withoutLost(slots: Slots, now: number): Slots {
  const lost = Math.ceil((now - slots.lateMs - slots.from) / slots.stepMs);
  return lost <= 0 ? slots : without(slots, lost);
}

/** The slots without the first of them. */
export function without(slots: Slots, used: number): Slots {
  const taken = Math.min(used, slots.count);
  const { stepMs, lateMs, isSpare } = slots;
  return { from: slots.from + taken * stepMs, stepMs, count: slots.count - taken, lateMs, isSpare };
}

/** How many of the slots may be used now. */
export function usable({ from, stepMs, count }: Slots, now: number): number {
  return now < from ? 0 : Math.min(count, Math.floor((now - from) / stepMs) + 1);
}
