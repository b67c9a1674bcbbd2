// Every state of the breaker against every event, then its thresholds, window and probes.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  admits,
  BREAKER_DEFAULTS,
  type Breaker,
  type BreakerEvent,
  initialBreaker,
  resolveBreaker,
  step,
} from "../../src/core/breaker.ts";
import { FAILURE_CLASSES } from "../../src/core/job.ts";

const settings = resolveBreaker({
  failures: 3,
  minimumCalls: 10,
  window: "60s",
  openFor: "30s",
  probes: 2,
  closeAfter: 2,
});
const NOW = 600_000;
const times = <T>(length: number, value: T): T[] => Array.from({ length }, () => value);
const bucket = (successes: number, failures: number) => ({ startedAt: NOW, successes, failures });

const STATES = {
  closed: initialBreaker,
  failing: { state: "closed", consecutive: 2, buckets: [bucket(0, 2)] },
  open: { state: "open", openedAt: NOW - 1, untilMs: NOW + 1, reason: "x" },
  openOver: { state: "open", openedAt: NOW - 30_000, untilMs: NOW, reason: "x" },
  half: { state: "half_open", heardAt: NOW, left: 2, running: 0, successes: 0 },
  probing: { state: "half_open", heardAt: NOW, left: 0, running: 2, successes: 0 },
  nearly: { state: "half_open", heardAt: NOW, left: 0, running: 1, successes: 1 },
  silent: { state: "half_open", heardAt: NOW - 300_000, left: 0, running: 2, successes: 1 },
  isolated: { state: "isolated", openedAt: 0, untilMs: null, reason: "x" },
  isolatedOver: { state: "isolated", openedAt: 0, untilMs: NOW, reason: "x" },
} satisfies Record<string, Breaker>;

const EVENTS = {
  success: { kind: "success" },
  failure: { kind: "failure", class: "network" },
  neutral: { kind: "failure", class: "validation" },
  noCounts: { kind: "counts", successes: 0, failures: 0 },
  goodCounts: { kind: "counts", successes: 2, failures: 0 },
  badCounts: { kind: "counts", successes: 0, failures: 3 },
  tick: { kind: "tick" },
  taken: { kind: "probe_taken" },
  lost: { kind: "probe_lost" },
  forceOpen: { kind: "force_open", reason: "maintenance", untilMs: null },
  forceClose: { kind: "force_close" },
  reset: { kind: "reset" },
} satisfies Record<string, BreakerEvent>;

/** The result as a short word: the state, and for half-open its probes left/running/succeeded. */
const short = (breaker: Breaker) =>
  breaker.state === "half_open"
    ? `half ${breaker.left}/${breaker.running}/${breaker.successes}`
    : breaker.state === "closed"
      ? `closed ${breaker.consecutive}`
      : breaker.state;

describe("every state and every event", () => {
  const columns = Object.keys(EVENTS) as (keyof typeof EVENTS)[];
  const I = "isolated";
  const C = "closed 0";
  const O = "open";
  const table: Record<keyof typeof STATES, string[]> = {
    // In the order of EVENTS.
    closed: [C, "closed 1", C, C, C, O, C, C, C, I, C, C],
    failing: [C, O, "closed 2", "closed 2", C, O, "closed 2", "closed 2", "closed 2", I, "closed 2", C],
    open: [O, O, O, O, O, O, O, O, O, I, C, C],
    openOver: [...times(7, "half 2/0/0"), "half 1/1/0", "half 2/0/0", I, C, C],
    half: [...times(7, "half 2/0/0"), "half 1/1/0", "half 2/0/0", I, C, C],
    probing: ["half 0/1/1", O, "half 1/1/0", "half 0/2/0", C, O, "half 0/2/0", "half 0/2/0", "half 1/1/0", I, C, C],
    nearly: [C, O, "half 1/0/1", "half 0/1/1", C, O, "half 0/1/1", "half 0/1/1", "half 1/0/1", I, C, C],
    silent: [...times(7, "half 2/0/1"), "half 1/1/1", "half 2/0/1", I, C, C],
    isolated: [I, I, I, I, I, I, I, I, I, I, C, C],
    isolatedOver: [...times(7, "half 2/0/0"), "half 1/1/0", "half 2/0/0", I, C, C],
  };
  const cases = Object.entries(table).flatMap(([state, row]) =>
    columns.map((event, index) => [state as keyof typeof STATES, event, row[index] ?? "missing"] as const),
  );

  test.each(cases)("%s on %s is %s", (state, event, expected) => {
    const before = structuredClone(STATES[state]);
    expect(short(step(STATES[state], EVENTS[event], settings, NOW))).toBe(expected);
    expect(STATES[state]).toEqual(before);
  });
});

describe("opening", () => {
  const feed = (events: readonly BreakerEvent[], everyMs = 0, options = settings) =>
    events.reduce<Breaker>(
      (breaker, event, index) => step(breaker, event, options, NOW + index * everyMs),
      initialBreaker,
    );
  const { success, failure } = EVENTS;

  test("happens at the configured failures in a row, says so, and lasts openMs", () => {
    expect(feed([failure, failure]).state).toBe("closed");
    expect(feed([failure, failure, success, failure, failure]).state).toBe("closed");
    expect(feed([failure, failure, failure])).toEqual({
      state: "open",
      openedAt: NOW,
      untilMs: NOW + 30_000,
      reason: "3 failures in a row",
    });
  });

  test("happens at the failure rate once there are enough calls", () => {
    const mixed = (count: number) => Array.from({ length: count }, (_, index) => (index % 2 === 0 ? success : failure));
    expect(feed(mixed(9)).state).toBe("closed");
    expect(feed(mixed(10))).toMatchObject({ state: "open", reason: "5 of 10 calls failed" });
  });

  test("forgets calls that left the window", () => {
    const mixed = Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? success : failure));
    expect(feed(mixed, 8000).state).toBe("closed");
    const breaker = feed(mixed, 8000);
    expect(breaker.state === "closed" && breaker.buckets.length).toBeLessThanOrEqual(7);
  });

  test("is not caused by failures that speak of the job", () => {
    const opens = FAILURE_CLASSES.filter(
      (found) => feed(times<BreakerEvent>(100, { kind: "failure", class: found })).state === "open",
    );
    expect(opens).toEqual(["transient", "network", "system", "timeout"]);
  });

  test("never happens by count or rate that is set to Infinity", () => {
    const never = resolveBreaker({ failures: Number.POSITIVE_INFINITY, failureRate: Number.POSITIVE_INFINITY });
    expect(feed(times(1000, failure), 0, never).state).toBe("closed");
  });

  test("survives a clock that steps back", () => {
    const once = step(initialBreaker, failure, settings, NOW);
    expect(step(once, failure, settings, NOW - 50_000)).toMatchObject({ buckets: [{ failures: 2 }] });
  });
});

describe("admits", () => {
  test.each<[keyof typeof STATES, number]>([
    ["closed", Number.POSITIVE_INFINITY],
    ["open", 0],
    ["openOver", 1],
    ["half", 2],
    ["probing", 0],
    ["isolated", 0],
    ["isolatedOver", 1],
  ])("%s lets %d start", (state, count) => {
    expect(admits(STATES[state], NOW)).toBe(count);
  });

  test("never lets more probes run at once than configured, whatever happens", () => {
    const events = fc.constantFrom<BreakerEvent>(
      ...Object.values(EVENTS).filter((event) => event.kind !== "force_open"),
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(events, fc.nat(20_000)), { maxLength: 200 }), (history) => {
        let breaker: Breaker = initialBreaker;
        let now = NOW;
        for (const [event, passMs] of history) {
          now += passMs;
          const before = breaker;
          breaker = step(breaker, event, settings, now);
          expect(JSON.parse(JSON.stringify(breaker))).toEqual(breaker);
          if (breaker.state === "half_open") {
            expect(breaker.left + breaker.running + breaker.successes).toBeLessThanOrEqual(settings.probes + 1);
            expect(breaker.left + breaker.running).toBeLessThanOrEqual(settings.probes);
          }
          if (before.state === "open" && now < before.untilMs) expect(admits(before, now)).toBe(0);
        }
      }),
      { seed: 6, numRuns: 300 },
    );
  });
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
