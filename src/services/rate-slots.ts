// The slots of one rate limit that a worker has reserved: what may start now, what expired, and when to ask for more.
import { isTight, type Lost, type Slots, usable, without, withoutLost } from "../core/rate.ts";

/** What a worker holds of a rate limit. */
export interface RateSlots {
  slots: Slots[];
  lost: Lost | null;
  /** Before this time no slots are available. */
  nothingBefore: number;
}

/** More are reserved when the last one is this close. */
const SHORT_MS = 30;

/** How many may start now; of slots whose time must be kept only what can start within moments. */
export function usableOf(rate: RateSlots | undefined, now: number, soon: number): number {
  if (!rate) return 0;
  const last = rate.slots.at(-1);
  if (rate.slots.some((slots) => withoutLost(slots, now) !== slots))
    rate.slots = rate.slots.map((slots) => withoutLost(slots, now)).filter(({ count }) => count > 0);
  if (last && rate.slots.length === 0) rate.lost = { from: last.from, end: last.from + last.count * last.stepMs };
  let [strict, spare] = [0, 0];
  for (const slots of rate.slots) {
    if (slots.isSpare) spare += usable(slots, now);
    else strict += usable(slots, now);
  }
  return spare + Math.min(strict, soon);
}

/** Uses one of them. */
export function useOne(rate: RateSlots | undefined): void {
  if (rate?.slots[0]) rate.slots[0] = without(rate.slots[0], 1);
  if (rate?.slots[0]?.count === 0) rate.slots.shift();
}

/** True when it is time to reserve more. */
export function lacksSlots(rate: RateSlots | undefined, now: number): boolean {
  if (!rate) return true;
  const last = rate.slots.at(-1);
  const end = last ? last.from + (last.count - 1) * last.stepMs + last.lateMs : 0;
  return rate.nothingBefore <= now && end < now + SHORT_MS;
}

/** True while nothing may start, and the time of the next look is known. */
export function isSpentUp({ slots, nothingBefore }: RateSlots, now: number): boolean {
  return (slots[0]?.from ?? nothingBefore) > now;
}

/** True while work waits for a start at its exact time. */
export function isAwaited(rate: RateSlots, now: number): boolean {
  if (isSpentUp(rate, now)) return true;
  return rate.slots.some((slots) => isTight(slots) && withoutLost(slots, now).count > 0);
}
