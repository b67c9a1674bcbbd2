// What the fleet agrees on about a service: every transition, its probes, holds, ramps and parked times.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { resolveBreaker } from "../../src/core/breaker.ts";
import { pausedMs } from "../../src/core/paused.ts";
import {
  closed,
  heldFor,
  initialRecord,
  isHeldBack,
  mayProbe,
  opened,
  openedByHand,
  parkedSpans,
  probed,
  rampStepMs,
  recordFrom,
  renewed,
  resetAt,
  type ServiceRecord,
  shownAt,
  withoutBreaker,
  withProbe,
} from "../../src/core/service-record.ts";

const breaker = resolveBreaker({ openFor: "30s", probes: 3, closeAfter: 2 });
const settings = { breaker, rampMs: 20_000 };
const NOW = 1_700_000_000_000;
const PROBE_MS = 10_000;

const open = opened(initialRecord, "5 failures in a row", breaker, NOW - 30_000);
const half = withProbe(open, "a", PROBE_MS, NOW);
const byHand = openedByHand(initialRecord, "maintenance", null, NOW - 1_000);
const RECORDS = {
  closed: initialRecord,
  open: opened(initialRecord, "x", breaker, NOW - 1),
  openOver: open,
  half,
  nearly: probed(withProbe(half, "b", PROBE_MS, NOW), "b", "success", settings, NOW),
  byHand,
  byHandOver: openedByHand(initialRecord, "maintenance", NOW, NOW - 1_000),
} satisfies Record<string, ServiceRecord>;

const EVENTS = {
  probe: (record: ServiceRecord) => (mayProbe(record, breaker, NOW) ? withProbe(record, "c", PROBE_MS, NOW) : record),
  success: (record: ServiceRecord) => probed(record, "a", "success", settings, NOW),
  failure: (record: ServiceRecord) => probed(record, "a", "failure", settings, NOW),
  neutral: (record: ServiceRecord) => probed(record, "a", "neutral", settings, NOW),
  stranger: (record: ServiceRecord) => probed(record, "z", "failure", settings, NOW),
  byHand: (record: ServiceRecord) => openedByHand(record, "m", NOW + 5_000, NOW),
  close: (record: ServiceRecord) => closed(record, 20_000, NOW),
  reset: (record: ServiceRecord) => resetAt(record, NOW),
  off: (record: ServiceRecord) => withoutBreaker(record, NOW),
};

function short({ breaker: state }: ServiceRecord): string {
  if (state.state === "half_open") return `half ${state.probes.length}/${state.successes}`;
  if (state.state === "closed") return `closed${state.rampUntil > NOW ? " ramp" : ""}`;
  return state.until === null ? state.state : `${state.state} ${state.until - NOW}`;
}

/** Every record against every event; "=" for the same object. */
const TABLE: Record<keyof typeof RECORDS, Record<keyof typeof EVENTS, string>> = {
  closed: {
    probe: "=",
    success: "=",
    failure: "=",
    neutral: "=",
    stranger: "=",
    byHand: "isolated 5000",
    close: "=",
    reset: "closed",
    off: "=",
  },
  open: {
    probe: "=",
    success: "=",
    failure: "=",
    neutral: "=",
    stranger: "=",
    byHand: "isolated 5000",
    close: "closed ramp",
    reset: "closed",
    off: "closed",
  },
  openOver: {
    probe: "half 1/0",
    success: "=",
    failure: "=",
    neutral: "=",
    stranger: "=",
    byHand: "isolated 5000",
    close: "closed ramp",
    reset: "closed",
    off: "closed",
  },
  half: {
    probe: "half 2/0",
    success: "half 0/1",
    failure: "open 30000",
    neutral: "half 0/0",
    stranger: "=",
    byHand: "isolated 5000",
    close: "closed ramp",
    reset: "closed",
    off: "closed",
  },
  nearly: {
    probe: "half 2/1",
    success: "closed ramp",
    failure: "open 30000",
    neutral: "half 0/1",
    stranger: "=",
    byHand: "isolated 5000",
    close: "closed ramp",
    reset: "closed",
    off: "closed",
  },
  byHand: {
    probe: "=",
    success: "=",
    failure: "=",
    neutral: "=",
    stranger: "=",
    byHand: "isolated 5000",
    close: "closed ramp",
    reset: "closed",
    off: "=",
  },
  byHandOver: {
    probe: "half 1/0",
    success: "=",
    failure: "=",
    neutral: "=",
    stranger: "=",
    byHand: "isolated 5000",
    close: "closed ramp",
    reset: "closed",
    off: "closed",
  },
};

describe.each(Object.keys(RECORDS) as (keyof typeof RECORDS)[])("a record that is %s", (name) => {
  test.each(Object.keys(EVENTS) as (keyof typeof EVENTS)[])("after %s", (event) => {
    const before = RECORDS[name];
    const after = EVENTS[event](before);
    expect(after === before ? "=" : short(after)).toBe(TABLE[name][event]);
  });

  test("comes back from its text as it was", () => {
    expect(recordFrom(JSON.stringify(RECORDS[name]))).toEqual(RECORDS[name]);
  });
});

describe("what callers see of a breaker", () => {
  const shown = (record: ServiceRecord, now = NOW) => Object.values(shownAt(record, now));

  test("is its state, and why and until when it is open", () => {
    expect(shown(RECORDS.closed)).toEqual(["closed", null, null]);
    expect(shown(RECORDS.open)).toEqual(["open", "x", NOW + 29_999]);
    expect(shown(RECORDS.half)).toEqual(["half_open", null, null]);
    expect(shown(RECORDS.byHand)).toEqual(["isolated", "maintenance", null]);
  });

  test("is half-open once its time is over, though no probe was taken", () => {
    expect(shown(RECORDS.openOver, NOW - 1)).toEqual(["open", "5 failures in a row", NOW]);
    expect(shown(RECORDS.openOver)).toEqual(["half_open", null, null]);
    expect(shown(RECORDS.byHandOver)).toEqual(["half_open", null, null]);
  });

  test("is open while the service asked to be left alone", () => {
    const held = heldFor(initialRecord, 10_000, NOW);
    expect(shown(held)).toEqual(["open", "it asked to wait", NOW + 10_000]);
    expect(shown(held, NOW + 10_000)).toEqual(["closed", null, null]);
  });
});

describe("probes", () => {
  const step = fc.record({
    passMs: fc.nat(8_000),
    worker: fc.constantFrom("a", "b", "c", "d", "e"),
    what: fc.constantFrom("probe", "probe", "success", "failure", "neutral", "lost"),
  });

  test("that run at one time are never more than their number, with the successes that count", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        let now = NOW;
        let record: ServiceRecord = open;
        for (const { passMs, worker, what } of steps) {
          now += passMs;
          if (what === "probe" && mayProbe(record, breaker, now)) record = withProbe(record, worker, PROBE_MS, now);
          if (what !== "probe" && what !== "lost") record = probed(record, worker, what, settings, now);
          if (record.breaker.state === "closed") record = opened(record, "again", breaker, now);
          if (record.breaker.state !== "half_open") continue;
          const running = record.breaker.probes.filter(({ until }) => until > now).length;
          expect(running + record.breaker.successes).toBeLessThanOrEqual(breaker.probes);
        }
        // However it went, one day it may be probed again.
        expect(mayProbe(record, breaker, now + 60_000)).toBe(true);
      }),
      { seed: 15 },
    );
  });

  test("expire with the worker that had them", () => {
    const full = ["b", "c"].reduce((record, worker) => withProbe(record, worker, PROBE_MS, NOW), half);
    expect(mayProbe(full, breaker, NOW + PROBE_MS - 1)).toBe(false);
    expect(mayProbe(full, breaker, NOW + PROBE_MS)).toBe(true);
    const next = withProbe(full, "d", PROBE_MS, NOW + PROBE_MS);
    expect(next.breaker).toMatchObject({ probes: [{ worker: "d" }] });
    // News of one that was given up for lost comes too late.
    expect(probed(next, "a", "failure", settings, NOW + PROBE_MS + 1)).toBe(next);
  });
});

describe("a breaker that is half-open when the thresholds change", () => {
  const SOME = [1, 2, 3, 4];
  const ALL = SOME.flatMap((probes) => SOME.filter((n) => n <= probes).map((closeAfter) => ({ probes, closeAfter })));
  const PAIRS = ALL.flatMap((before) => ALL.map((after) => ({ before, after })));

  test.each(PAIRS)("from $before to $after closes after a few good probes", ({ before, after }) => {
    const old = { breaker: resolveBreaker({ openFor: "30s", ...before }), rampMs: 0 };
    const next = { breaker: resolveBreaker({ openFor: "30s", ...after }), rampMs: 0 };
    const probe = (record: ServiceRecord, { breaker: of, rampMs }: typeof old): ServiceRecord =>
      mayProbe(record, of, NOW)
        ? probed(withProbe(record, "a", PROBE_MS, NOW), "a", "success", { breaker: of, rampMs }, NOW)
        : record;
    for (let good = 1; good < before.closeAfter; good++) {
      let record: ServiceRecord = open;
      for (let done = 0; done < good; done++) record = probe(record, old);
      expect(record.breaker).toMatchObject({ state: "half_open", successes: good });
      for (let more = 0; more < Math.max(1, after.closeAfter - good); more++) record = probe(record, next);
      expect(record.breaker.state).toBe("closed");
    }
  });
});

describe("a probe that still runs", () => {
  const full = ["a", "b"].reduce((record, worker) => withProbe(record, worker, PROBE_MS, NOW), half);
  const later = NOW + PROBE_MS / 2;

  test("is waited for on, and no other with it", () => {
    const kept = renewed(full, "a", 1, PROBE_MS, later);
    expect(kept.breaker).toMatchObject({
      probes: [
        { worker: "a", until: later + PROBE_MS },
        { worker: "a", until: NOW + PROBE_MS },
        { worker: "b", until: NOW + PROBE_MS },
      ],
    });
    expect(mayProbe(kept, breaker, later)).toBe(false);
    expect(mayProbe(kept, breaker, NOW + PROBE_MS)).toBe(true);
  });

  test("is waited for no longer than until its end", () => {
    const next = withProbe(full, "c", PROBE_MS, NOW + PROBE_MS);
    expect(next.breaker).toMatchObject({ probes: [{ worker: "c", until: NOW + 2 * PROBE_MS }] });
  });

  test("is not written down for a moment's sake, nor once it was given up or the breaker is not half-open", () => {
    expect(renewed(full, "a", 2, PROBE_MS, NOW + 1_000)).toBe(full);
    expect(renewed(full, "c", 1, PROBE_MS, later)).toBe(full);
    expect(renewed(full, "a", 2, PROBE_MS, NOW + PROBE_MS)).toBe(full);
    for (const record of [initialRecord, open, byHand]) expect(renewed(record, "a", 1, PROBE_MS, NOW)).toBe(record);
  });
});

describe("a hold", () => {
  test("holds work back until its end, and is never cut short", () => {
    const held = heldFor(initialRecord, 10_000, NOW);
    expect([NOW, NOW + 9_999, NOW + 10_000].map((now) => isHeldBack(held, now))).toEqual([true, true, false]);
    expect(heldFor(held, 5_000, NOW)).toBe(held);
    expect(heldFor(held, 10_100, NOW)).toBe(held);
    expect(heldFor(held, 20_000, NOW).holdUntil).toBe(NOW + 20_000);
    expect(resetAt(held, NOW).holdUntil).toBe(0);
  });

  test("is no longer than any delay, whatever the service asks for", () => {
    expect(heldFor(initialRecord, 260 * 365 * 86_400_000, NOW).holdUntil).toBe(NOW + 7 * 86_400_000);
  });

  test("is remembered for deadlines: longer where it is asked for again meanwhile, no longer than until a reset", () => {
    const spans = (record: ServiceRecord) => parkedSpans(record, "s").map(({ from, until }) => [from, until]);
    const once = heldFor(initialRecord, 10_000, NOW);
    const longer = heldFor(once, 10_000, NOW + 5_000);
    expect(spans(longer)).toEqual([[NOW, NOW + 15_000]]);
    const again = heldFor(longer, 1_000, NOW + 20_000);
    expect(spans(again)).toEqual([
      [NOW, NOW + 15_000],
      [NOW + 20_000, NOW + 21_000],
    ]);
    expect(spans(resetAt(again, NOW + 20_500)).at(-1)).toEqual([NOW + 20_000, NOW + 20_500]);
    expect(recordFrom(JSON.stringify(again))).toEqual(again);
    expect(recordFrom(JSON.stringify({ ...again, held: [{}] }))).toBe(initialRecord);
  });

  test("takes no place from what the breaker held back", () => {
    let record = closed(openedByHand(initialRecord, "r", null, NOW), 0, NOW + 60_000);
    for (let n = 1; n <= 200; n++) record = heldFor(record, 1_000, NOW + 60_000 + n * 5_000);
    expect(parkedSpans(record, "s")[0]).toMatchObject({ from: NOW, until: NOW + 60_000 });
    expect(parkedSpans(record, "s")).toHaveLength(51);
  });
});

describe("the ramp", () => {
  const back = closed(half, 20_000, NOW);

  test("begins with as many a second as there are probes, doubles ten times, and ends", () => {
    expect(rampStepMs(back, breaker, NOW)).toBeCloseTo(1_000 / 3);
    expect(rampStepMs(back, breaker, NOW - 5_000)).toBeCloseTo(1_000 / 3);
    expect(rampStepMs(back, breaker, NOW + 2_000)).toBeCloseTo(1_000 / 6);
    expect(rampStepMs(back, breaker, NOW + 19_999)).toBeLessThan(0.4);
    expect(rampStepMs(back, breaker, NOW + 20_000)).toBe(0);
    expect(rampStepMs(closed(half, 0, NOW), breaker, NOW)).toBe(0);
    expect(rampStepMs(half, breaker, NOW)).toBe(0);
  });

  test("never slows down", () => {
    fc.assert(
      fc.property(fc.nat(20_000), fc.nat(20_000), (a, b) => {
        const [early, late] = [Math.min(a, b), Math.max(a, b)].map((ms) => rampStepMs(back, breaker, NOW + ms));
        expect(late as number).toBeLessThanOrEqual(early as number);
      }),
    );
  });
});

describe("parked times", () => {
  const job = { type: "t", queue: "q", service: "s", tenant: null, priority: 0, group: null, groupConcurrency: null };
  const parkedMs = (record: ServiceRecord, from: number, to: number) =>
    pausedMs(parkedSpans(record, "s"), job, from, to);

  test("go on through failed probes and openings by hand until it is closed", () => {
    let record = opened(initialRecord, "x", breaker, 1_000);
    record = withProbe(record, "a", PROBE_MS, 31_000);
    record = probed(record, "a", "failure", settings, 32_000);
    record = openedByHand(record, "m", null, 33_000);
    expect(parkedMs(record, 0, 40_000)).toBe(39_000);
    record = closed(record, 0, 41_000);
    expect(record.parked).toEqual([{ from: 1_000, until: 41_000 }]);
    expect([parkedMs(record, 0, 99_000), parkedMs(record, 40_000, 99_000), parkedMs(record, 50_000, 99_000)]).toEqual([
      40_000, 1_000, 0,
    ]);
  });

  test("are remembered for the last fifty times, and end with a reset", () => {
    let record: ServiceRecord = initialRecord;
    for (let n = 0; n < 80; n++) record = resetAt(opened(record, "x", breaker, n * 1_000), n * 1_000 + 500);
    expect(record.parked.length).toBe(50);
    expect(parkedMs(record, 0, 80_000)).toBe(25_000);
  });
});

test.each([
  "",
  "junk",
  "null",
  "[]",
  "5",
  "{}",
  '{"breaker":null,"holdUntil":0,"parked":[]}',
  '{"breaker":{"state":"banana","since":1},"holdUntil":0,"parked":[]}',
  '{"breaker":{"state":"half_open","since":1},"holdUntil":0,"parked":[]}',
  '{"breaker":{"state":"half_open","since":1,"probes":[null],"successes":0},"holdUntil":0,"parked":[]}',
  '{"breaker":{"state":"open","since":1,"reason":"x"},"holdUntil":0,"parked":[]}',
  '{"breaker":{"state":"isolated","since":1,"until":"x","reason":"x"},"holdUntil":0,"parked":[]}',
  '{"breaker":{"state":"closed","since":1,"rampUntil":0},"parked":[]}',
  '{"breaker":{"state":"closed","since":1,"rampUntil":0},"holdUntil":0,"parked":[null]}',
  '{"breaker":{"state":"closed","since":1,"rampUntil":0},"holdUntil":0,"parked":[{"from":1}]}',
])("a text that is no record, %s, is a service nobody knows", (text) => {
  expect(recordFrom(text)).toBe(initialRecord);
});
