// Delays: the exact series of the mission, bounds under jitter, and custom functions that misbehave.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Backoff,
  custom,
  DEFAULT_BACKOFF,
  delayBefore,
  exponential,
  fixed,
  immediate,
  type Jitter,
  linear,
  MAX_DELAY_MS,
  resolveBackoff,
} from "../../src/core/backoff.ts";
import type { Failure } from "../../src/core/job.ts";

const failure: Failure = {
  class: "transient",
  severity: "warning",
  name: "Error",
  message: "boom",
  stack: null,
  fingerprint: "0".repeat(16),
};
const limited = (retryAfterMs: number): Failure => ({ ...failure, class: "rate_limited", retryAfterMs });
const ask = (
  backoff: Backoff,
  attempt: number,
  more: { failure?: Failure; previousDelayMs?: number; random?: number } = {},
) =>
  delayBefore(backoff, {
    attempt,
    failure: more.failure ?? failure,
    previousDelayMs: more.previousDelayMs ?? 0,
    random: () => more.random ?? 0.5,
  });
const series = (backoff: Backoff, count: number) =>
  Array.from({ length: count }, (_, index) => ask(backoff, index + 1));

describe("series without jitter", () => {
  test.each<[string, Backoff, number[]]>([
    ["exponential", exponential({ jitter: "none" }), [1000, 3000, 9000, 27_000]],
    ["linear", linear({ initial: "1s", factor: "1.5s", jitter: "none" }), [1000, 2500, 4000, 5500]],
    ["fixed", fixed("1s"), [1000, 1000, 1000]],
    ["immediate", immediate(), [0, 0, 0]],
    ["custom", custom((attempt) => attempt * 10), [10, 20, 30]],
    [
      "records",
      exponential({ initial: "2m", multiplier: 2, max: "32m", jitter: "none" }),
      [120_000, 240_000, 480_000, 960_000, 1_920_000, 1_920_000],
    ],
    ["capped", exponential({ max: "5s", jitter: "none" }), [1000, 3000, 5000, 5000]],
    ["floored", exponential({ initial: 10, min: "0.1s", jitter: "none" }), [100, 100, 100, 270]],
    ["zero", exponential({ initial: 0, jitter: "none" }), [0, 0, 0]],
  ])("%s", (_name, backoff, expected) => {
    expect(series(backoff, expected.length)).toEqual(expected);
  });
});

describe("jitter", () => {
  const jitters = fc.constantFrom<Jitter>("full", "equal", "none", "decorrelated");

  test("keeps every delay whole, finite and between floor and cap, up to attempt 10,000", () => {
    const bounds = fc
      .tuple(fc.nat(1000), fc.nat(10_000), fc.nat(MAX_DELAY_MS - 20_000))
      .map(([min, initial, more]) => ({
        min,
        initial,
        max: Math.max(min, initial) + more,
      }));
    const attempt = fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 10_000 }));
    const dice = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(
        bounds,
        jitters,
        attempt,
        dice,
        fc.nat(MAX_DELAY_MS),
        (range, jitter, charged, random, previousDelayMs) => {
          for (const backoff of [exponential({ ...range, jitter }), linear({ ...range, jitter, factor: "1h" })]) {
            const ms = ask(backoff, charged, { random, previousDelayMs });
            expect(Number.isSafeInteger(ms)).toBe(true);
            expect(ms).toBeGreaterThanOrEqual(range.min);
            expect(ms).toBeLessThanOrEqual(range.max);
          }
        },
      ),
      { seed: 4, numRuns: 500 },
    );
  });

  test("never shrinks without jitter", () => {
    const delays = series(exponential({ jitter: "none", max: "7d" }), 10_000);
    expect(delays.every((ms, index) => index === 0 || ms >= (delays[index - 1] ?? 0))).toBe(true);
    expect(delays.at(-1)).toBe(MAX_DELAY_MS);
  });

  test.each<[Jitter, number, number, number]>([
    ["none", 0.5, 9000, 9000],
    ["full", 0.5, 100, 9000],
    ["equal", 0.5, 4500, 9000],
  ])("%s spreads the third delay from its lower to its upper end", (jitter, _random, low, high) => {
    const backoff = exponential({ min: "0.1s", jitter });
    expect(ask(backoff, 3, { random: 0 })).toBe(low);
    expect(ask(backoff, 3, { random: 1 - 1e-9 })).toBe(high);
  });

  test("decorrelated continues from the previous delay", () => {
    const backoff = exponential({ jitter: "decorrelated", max: "20s" });
    expect(ask(backoff, 1, { random: 1 - 1e-9 })).toBe(3000);
    expect(ask(backoff, 2, { random: 0, previousDelayMs: 3000 })).toBe(1000);
    expect(ask(backoff, 2, { random: 0.5, previousDelayMs: 3000 })).toBe(5000);
    expect(ask(backoff, 9, { random: 1 - 1e-9, previousDelayMs: 15_000 })).toBe(20_000);
  });

  test("never makes a fixed delay longer", () => {
    expect(ask(fixed("10s", { jitter: "equal" }), 1, { random: 0 })).toBe(5000);
    expect(ask(fixed("10s", { jitter: "full" }), 1, { random: 1 - 1e-9 })).toBe(10_000);
  });
});

describe("a delay the other side asked for", () => {
  test("is waited for even over the cap", () => {
    const backoff = exponential({ max: "5s", jitter: "none" });
    expect(ask(backoff, 1, { failure: limited(30_000) })).toBe(30_000);
    expect(ask(immediate(), 1, { failure: limited(1500) })).toBe(1500);
  });

  test("gives way to what the handler asked for", () => {
    expect(ask(immediate(), 1, { failure: { ...limited(1500), delayMs: 700 } })).toBe(700);
  });

  test("never shortens the own delay and never exceeds 7 days", () => {
    expect(ask(fixed("10s"), 1, { failure: limited(1) })).toBe(10_000);
    expect(ask(fixed("10s"), 1, { failure: limited(Number.MAX_SAFE_INTEGER) })).toBe(MAX_DELAY_MS);
    expect(ask(fixed("10s"), 1, { failure: limited(Number.NaN) })).toBe(10_000);
    expect(ask(fixed("10s"), 1, { failure: limited(-5) })).toBe(10_000);
  });
});

describe("custom", () => {
  test.each<[string, () => unknown]>([
    ["NaN", () => Number.NaN],
    ["a negative number", () => -1],
    ["text", () => "5s"],
    ["nothing", () => undefined],
    ["a promise", () => Promise.resolve(5)],
    [
      "an exception",
      () => {
        throw new Error("bug");
      },
    ],
  ])("falls back to the default delays on %s", (_name, answer) => {
    const backoff = custom(answer as () => number);
    expect(ask(backoff, 3)).toBe(ask(DEFAULT_BACKOFF, 3));
  });

  test("rounds fractions up and caps at 7 days", () => {
    expect(
      ask(
        custom(() => 0.2),
        1,
      ),
    ).toBe(1);
    expect(
      ask(
        custom(() => 1e300),
        1,
      ),
    ).toBe(MAX_DELAY_MS);
    expect(
      ask(
        custom(() => Number.POSITIVE_INFINITY),
        1,
      ),
    ).toBe(MAX_DELAY_MS);
  });

  test("gets the attempt and the failure", () => {
    const seen: unknown[] = [];
    ask(
      custom((...given) => seen.push(...given)),
      2,
    );
    expect(seen).toEqual([2, failure]);
  });
});

describe("options", () => {
  test.each<[string, () => unknown, RegExp]>([
    ["an unknown key", () => exponential({ factor: 2 } as never), /got "factor"; did you mean/],
    ["a misspelt key", () => linear({ factr: "1s" } as never), /did you mean "factor"/],
    [
      "a shrinking multiplier",
      () => exponential({ multiplier: 0.5 }),
      /exponential\.multiplier: expected a number from 1/,
    ],
    ["a bad duration", () => exponential({ initial: "1 second" }), /exponential\.initial: expected a duration/],
    ["over 7 days", () => fixed("8d"), /from 0ms to 7d/],
    ["max under initial", () => exponential({ initial: "2h" }), /exponential\.max: expected at least 2h/],
    ["max under min", () => linear({ min: "2s", max: "1s" }), /linear\.max/],
    ["an unknown jitter", () => exponential({ jitter: "some" as never }), /full, equal, none, decorrelated/],
    ["decorrelated fixed", () => fixed("1s", { jitter: "decorrelated" as never }), /fixed\.jitter/],
    ["no function", () => custom(5 as never), /expected a function/],
    ["linear factor in seconds", () => linear({ factor: 1.5 }), /linear\.factor/],
  ])("refuses %s", (_name, make, message) => {
    expect(make).toThrow(message);
  });

  test("resolveBackoff takes factories' results, copies of them as JSON, and functions", () => {
    for (const made of [exponential(), linear({ max: "2h" }), fixed("4h", { jitter: "equal" }), immediate()]) {
      expect(resolveBackoff(JSON.parse(JSON.stringify(made)), "backoff")).toEqual(made);
    }
    expect(
      ask(
        resolveBackoff(() => 7, "backoff"),
        1,
      ),
    ).toBe(7);
    for (const bad of [null, undefined, 5, "5s", {}, { kind: "exponential", multiplier: -1 }, { kind: "other" }]) {
      expect(() => resolveBackoff(bad, "backoff")).toThrow(/expected/);
    }
  });
});
