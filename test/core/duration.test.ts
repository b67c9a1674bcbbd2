// Durations and options at the door: what is accepted, and that everything else is refused in words.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatDuration, MAX_DURATION_MS, parseDuration } from "../../src/core/duration.ts";
import { parseNumber, parseOptions } from "../../src/core/options.ts";
import { isRedriveError } from "../../src/core/errors.ts";

const thrownBy = (action: () => unknown): Error => {
  try {
    action();
  } catch (error) {
    return error as Error;
  }
  throw new Error("nothing was thrown");
};

describe("parseDuration", () => {
  test.each([
    [0, 0],
    [-0, 0],
    [1500, 1500],
    ["250ms", 250],
    ["0s", 0],
    ["0.1s", 100],
    ["5s", 5000],
    ["2m", 120_000],
    ["1.5h", 5_400_000],
    ["1.1h", 3_960_000],
    ["7d", 604_800_000],
    ["1h30m", 5_400_000],
    ["1d2h3m4s5ms", 93_784_005],
  ])("reads %j as %d ms", (value, ms) => {
    expect(parseDuration(value, "delay")).toBe(ms);
  });

  test.each([
    -1,
    1.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    Number.MAX_SAFE_INTEGER,
    1e300,
    "",
    " ",
    "5",
    "-5s",
    "5 s",
    "5S",
    "5sec",
    "1.5ms",
    "1.s",
    ".5s",
    "30m1h",
    "5m5m",
    "1e3s",
    "99999999d",
    "s".repeat(100_000),
    `${"9".repeat(63)}d`,
    null,
    undefined,
    true,
    5n,
    {},
    [],
    Symbol("5s"),
    () => 5,
  ])("refuses %s", (value) => {
    const error = thrownBy(() => parseDuration(value, "retry.delay"));
    expect(isRedriveError(error, "invalid_argument")).toBe(true);
    expect(error.message).toMatch(/^retry\.delay: expected a duration .* got .*; /);
    expect(error.message.length).toBeLessThan(300);
  });

  test("refuses what is outside the range and names the range", () => {
    const range = { minMs: 1000, maxMs: 60_000 };
    expect(parseDuration("1s", "lease", range)).toBe(1000);
    expect(thrownBy(() => parseDuration("999ms", "lease", range)).message).toContain("from 1s to 1m");
    expect(thrownBy(() => parseDuration("61s", "lease", range)).message).toContain('got "61s"');
  });

  test("suggests a unit for a number in quotes", () => {
    expect(thrownBy(() => parseDuration("30", "delay")).message).toContain('add a unit, e.g. "30s"');
  });

  test("reads every whole number of milliseconds in every unit it can be written in", () => {
    const units = fc.constantFrom(["ms", 1] as const, ["s", 1000] as const, ["h", 3_600_000] as const);
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 800_000 }), units, (count, [unit, unitMs]) => {
        expect(parseDuration(`${count}${unit}`, "d")).toBe(count * unitMs);
      }),
      { seed: 1 },
    );
  });

  test("answers a legal number or throws a RedriveError for any text", () => {
    const text = fc.oneof(fc.string(), fc.stringMatching(/^[\d.]{0,8}(ms|s|m|h|d)?[\d.]{0,8}(ms|s|m|h|d)?$/));
    fc.assert(
      fc.property(text, (value) => {
        try {
          const ms = parseDuration(value, "d");
          expect(Number.isSafeInteger(ms) && ms >= 0 && ms <= MAX_DURATION_MS).toBe(true);
        } catch (error) {
          expect(isRedriveError(error, "invalid_argument")).toBe(true);
        }
      }),
      { seed: 2, numRuns: 500 },
    );
  });
});

describe("formatDuration", () => {
  test.each([
    [0, "0ms"],
    [250, "250ms"],
    [999, "999ms"],
    [1000, "1s"],
    [5000, "5s"],
    [57_000, "57s"],
    [59_999, "1m"],
    [90_000, "1.5m"],
    [4_320_000, "1.2h"],
    [86_399_999, "1d"],
    [604_800_000, "7d"],
    [-5000, "-5s"],
    [Number.NaN, "NaN"],
  ])("shows %d ms as %s", (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  test("stays within 6 percent of the value and can be read back", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: MAX_DURATION_MS }), (ms) => {
        const back = parseDuration(formatDuration(ms), "d");
        expect(Math.abs(back - ms) / ms).toBeLessThan(0.06);
      }),
      { seed: 3 },
    );
  });
});

describe("parseOptions", () => {
  test("refuses an unknown key and names the nearest known one", () => {
    const message = thrownBy(() =>
      parseOptions({ jiter: "full" }, ["initial", "jitter", "max"], "exponential"),
    ).message;
    expect(message).toContain('got "jiter"');
    expect(message).toContain('did you mean "jitter"?');
  });

  test.each(["__proto__", "constructor", "prototype"])("refuses the key %s", (key) => {
    const options = JSON.parse(`{"${key}":{"polluted":true}}`) as object;
    expect(() => parseOptions(options, ["max"], "options")).toThrow(/expected an object with max/);
  });

  test.each([null, 5, "max", [], undefined])("refuses %j in place of an object", (value) => {
    expect(() => parseOptions(value, ["max"], "options")).toThrow(/pass an object/);
  });

  test("leaves out undefined and inherits nothing", () => {
    const options = parseOptions({ max: undefined, min: 1 }, ["max", "min", "toString" as never], "options");
    expect(Object.entries(options)).toEqual([["min", 1]]);
    expect("toString" in options).toBe(false);
  });
});

describe("parseNumber", () => {
  test("accepts the bounds and refuses what is outside, fractional, or not a number", () => {
    const range = { min: 1, max: 9, integer: true };
    expect([1, 9].map((value) => parseNumber(value, "n", range))).toEqual([1, 9]);
    for (const value of [0, 10, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "5", null, 5n]) {
      expect(() => parseNumber(value, "n", range)).toThrow(/expected a whole number from 1 to 9; got /);
    }
    expect(parseNumber(Number.POSITIVE_INFINITY, "n", { ...range, infinite: true })).toBe(Number.POSITIVE_INFINITY);
  });
});
