// Limits of alerts: what may be asked for, and when a figure is beyond it.
import { describe, expect, test } from "vitest";
import { alertsFrom, resolveAlerts, RETRIES_COUNTED } from "../../src/core/alerts.ts";

const MOST = 1_000_000_000;
const FINE = { successRate: 1, retryQueue: 0, deadLetters: 0, averageRetries: 0, ms: 0 };

describe("resolveAlerts", () => {
  test("takes every limit up to its bound, and asks for none that was not given", () => {
    expect(resolveAlerts(undefined)).toEqual({});
    const most = {
      minSuccessRate: 1,
      maxRetryQueue: RETRIES_COUNTED - 1,
      maxDeadLetters: MOST,
      maxAverageRetries: MOST,
    };
    expect(resolveAlerts({ ...most, maxTime: "2s" })).toEqual({
      successRate: 1,
      retryQueue: RETRIES_COUNTED - 1,
      deadLetters: MOST,
      averageRetries: MOST,
      ms: 2_000,
    });
  });

  test.each([
    { minSuccessRate: 1.1 },
    { minSuccessRate: -0.1 },
    { maxRetryQueue: RETRIES_COUNTED },
    { maxRetryQueue: 1.5 },
    { maxDeadLetters: MOST + 1 },
    { maxDeadLetters: 0.5 },
    { maxAverageRetries: MOST + 1 },
  ])("refuses %o", (options) => {
    const [field] = Object.keys(options);
    expect(() => resolveAlerts(options)).toThrow(`alerts.${field}: expected`);
  });
});

describe("alertsFrom", () => {
  test("speaks of a figure beyond its limit, not of one that is at it, unknown or without one", () => {
    const limits = { successRate: 0.9, deadLetters: 3, averageRetries: 0.5 };
    expect(alertsFrom({ ...FINE, successRate: 0.9, deadLetters: 3, averageRetries: 0.5, ms: 9 }, limits)).toEqual([]);
    expect(alertsFrom({ ...FINE, successRate: null }, limits)).toEqual([]);
    const messages = alertsFrom({ ...FINE, successRate: 0.8999, deadLetters: 4, averageRetries: 0.51 }, limits);
    expect(messages.map(({ message }) => message)).toEqual([
      "the success rate is 89.9 %, under 90.0 %",
      "the number of dead letters is 4, over 3",
      "the average number of retries is 0.51, over 0.50",
    ]);
  });
});
