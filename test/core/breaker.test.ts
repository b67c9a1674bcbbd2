// The thresholds of a breaker, and the failures that count against a service.
import { describe, expect, test } from "vitest";
import { BREAKER_DEFAULTS, countsAgainstService, resolveBreaker } from "../../src/core/breaker.ts";
import { FAILURE_CLASSES } from "../../src/core/job.ts";

test("failures that speak of the job do not count against the service", () => {
  expect(FAILURE_CLASSES.filter(countsAgainstService)).toEqual(["transient", "network", "system", "timeout"]);
});

describe("resolveBreaker", () => {
  test("has defaults", () => {
    expect(resolveBreaker()).toEqual(BREAKER_DEFAULTS);
    expect(resolveBreaker({ probes: 1 })).toMatchObject({ probes: 1, closeAfter: 1 });
  });

  test.each([
    { failures: 0 },
    { failures: 1.5 },
    { failureRate: 0 },
    { failureRate: 2 },
    { window: "1ms" },
    { openFor: "8d" },
    { probes: 2, closeAfter: 3 },
    { closeAfter: Number.POSITIVE_INFINITY },
    { treshold: 5 },
  ])("refuses %j", (options) => {
    expect(() => resolveBreaker(options as never)).toThrow(/^breaker.*expected/);
  });
});
