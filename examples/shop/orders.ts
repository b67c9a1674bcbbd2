// What the shop enqueues on its bad day: jobs of four types for a few customers, and for some of them a fate that no
// retry can change. Fixed by its seed.
import { seededDice } from "./dice.ts";
import type { SeededFate } from "./weather.ts";

/** One job to be. */
export interface PlannedJob {
  readonly order: number;
  readonly type: keyof typeof SERVICE_OF;
  readonly customer: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly fate: SeededFate;
  /** In place of what its type says. */
  readonly maxAttempts?: number;
  /** When it is enqueued, as a part of the day from 0 to 1. */
  readonly at: number;
}

/** Which service a job type calls. */
export const SERVICE_OF = {
  "charge-card": "payments",
  "resize-image": "media",
  "send-email": "mail",
  "sync-crm": "crm",
} as const;

/** The customer whose account at the service was closed. */
export const REFUSED_CUSTOMER = "borealis";

const CUSTOMERS = ["aurora", "cumulus", "delta-bikes", "ember", "fjord"];
/** Charging cards is two fifths of the work. */
const TYPES = ["charge-card", ...Object.keys(SERVICE_OF)] as PlannedJob["type"][];
const FIRST_ORDER = 1001;
/** This part of all jobs is there when the day begins; the rest comes in over the day. */
const AT_ONCE = 0.22;
/** Each takes a whole timeout. */
const HANGING_ATTEMPTS = 3;

/** The jobs of a day in the order of their enqueue. */
export function planOrders(count: number, seed: number): PlannedJob[] {
  const dice = seededDice(seed, count);
  const pick = <T>(from: readonly T[]): T => from[Math.floor(dice() * from.length)] as T;
  const fates = fatesOf(count, dice);
  return Array.from({ length: count }, (_, index): PlannedJob => {
    const fate = fates.get(index) ?? "fine";
    const type = typeFor(fate, pick(TYPES), dice);
    const customer = fate === "refused" ? REFUSED_CUSTOMER : pick(CUSTOMERS);
    const order = FIRST_ORDER + index;
    const part = index / count;
    const at = part < AT_ONCE ? 0 : (part - AT_ONCE) / (1 - AT_ONCE);
    const payload = payloadFor(type, order, customer, fate, dice);
    return { order, type, customer, payload, fate, at, ...(fate === "hangs" && { maxAttempts: HANGING_ATTEMPTS }) };
  });
}

function fatesOf(count: number, dice: () => number): Map<number, SeededFate> {
  const fates = new Map<number, SeededFate>();
  const cast = (fate: SeededFate, times: number, from: number, to: number): void => {
    for (let cast = 0; cast < times; ) {
      const index = Math.floor((from + dice() * (to - from)) * count);
      if (fates.has(index)) continue;
      fates.set(index, fate);
      cast += 1;
    }
  };
  // Who hangs comes early, because three timeouts take their time.
  cast("hangs", 1, 0.05, 0.3);
  cast("hangs once", Math.max(1, Math.round(count / 120)), 0.3, 0.75);
  cast("broken", Math.max(2, Math.round(count / 45)), 0.05, 0.95);
  cast("refused", Math.max(2, Math.round(count / 60)), 0.05, 0.95);
  return fates;
}

function typeFor(fate: SeededFate, otherwise: PlannedJob["type"], dice: () => number): PlannedJob["type"] {
  if (fate === "hangs" || fate === "hangs once" || fate === "refused") return "sync-crm";
  if (fate === "broken") return dice() < 0.7 ? "charge-card" : "send-email";
  return otherwise;
}

function payloadFor(
  type: PlannedJob["type"],
  order: number,
  customer: string,
  fate: SeededFate,
  dice: () => number,
): PlannedJob["payload"] {
  const amount = Math.round(500 + dice() * 20_000) / 100;
  // What an older release of the shop wrote: money as text, and no address where there was none.
  if (fate === "broken")
    return type === "charge-card" ? { order, customer, amount: `${amount} EUR` } : { order, customer };
  if (type === "charge-card") return { order, customer, amount };
  if (type === "resize-image") return { order, customer, image: `items/${order}.jpg` };
  return type === "send-email" ? { order, customer, to: `orders@${customer}.example` } : { order, customer };
}
