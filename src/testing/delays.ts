// The waits of a backoff as a list, for unit tests of a policy: no queue, no clock, only the caller's random numbers.
import { type Backoff, type CustomDelay, delayBefore, resolveBackoff } from "../core/backoff.ts";
import { failureFrom } from "../core/failure.ts";
import { invalid, parseNumber } from "../core/options.ts";

/** The failure that a user's function is called with. */
const FAILURE = failureFrom(new Error("a failure in a test"), { class: "transient", severity: "warning" });

/**
 * The first `count` waits of a backoff in milliseconds, 1 to 10,000 of them. `random` supplies random numbers, from 0
 * to 1; default always 1, which gives the longest waits that jitter allows.
 */
export function delays(backoff: Backoff | CustomDelay, count: number, random: () => number = () => 1): number[] {
  const rule = resolveBackoff(backoff, "backoff");
  parseNumber(count, "count", { min: 1, max: 10_000, integer: true });
  if (typeof random !== "function") throw invalid("random", "a function () => number", random, "pass one, or nothing");
  const chance = (): number => parseNumber(random(), "random", { min: 0, max: 1 });
  const waits: number[] = [];
  for (let attempt = 1; attempt <= count; attempt++)
    waits.push(delayBefore(rule, { attempt, previousDelayMs: waits.at(-1) ?? 0, failure: FAILURE, random: chance }));
  return waits;
}
