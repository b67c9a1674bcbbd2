// Rate limits: slots are given once, whoever asks in whatever order, and no window holds more than the limit allows.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  bucketFrom,
  canSpare,
  isTight,
  type RateBucket,
  reserve,
  resolveRate,
  type Slots,
  type Spread,
  spreadOf,
  startsLeft,
  usable,
  without,
  withoutLost,
} from "../../src/core/rate.ts";

const AHEAD_MS = 250;
const ask = (want: number, now: number) => ({ want, now, until: now + AHEAD_MS });
const timesOf = ({ from, stepMs, count }: Slots): number[] =>
  Array.from({ length: count }, (_, i) => from + i * stepMs);
const ten = spreadOf(resolveRate({ limit: 10 }, "rate"));

describe("what is left of a limit", () => {
  test.each([
    ["none before the next slot", 1_001, 3, 0],
    ["one at its time", 1_000, 3, 1],
    ["more after a quiet time", 900, 3, 2],
    ["no more than the burst", 0, 3, 3],
  ])("is %s", (_name, nextAt, burst, left) => expect(startsLeft(nextAt, { stepMs: 100, burst }, 1_000)).toBe(left));
});

describe("reserve", () => {
  test("gives slots one interval apart, none beyond the time ahead", () => {
    const { slots, bucket } = reserve({ nextAt: 1_000 }, ten, ask(10, 1_000));
    expect(timesOf(slots)).toEqual([1_000, 1_100, 1_200]);
    expect(bucket).toEqual({ nextAt: 1_300 });
    expect(reserve(bucket, ten, ask(10, 1_000)).slots.count).toBe(0);
    expect(reserve(bucket, ten, ask(10, 1_050)).slots.count).toBe(1);
  });

  test("gives no more than was wanted", () => {
    expect(reserve({ nextAt: 1_000 }, ten, ask(1, 1_000)).slots.count).toBe(1);
    expect(reserve({ nextAt: 1_000 }, ten, ask(0, 1_000))).toMatchObject({
      slots: { count: 0 },
      bucket: { nextAt: 1_000 },
    });
  });

  test("makes up for a quiet time with the burst and no more", () => {
    const spread = spreadOf(resolveRate({ limit: 10, burst: 5 }, "rate"));
    for (const bucket of [null, { nextAt: 0 }]) {
      const { slots } = reserve(bucket, spread, ask(100, 1_000_000));
      expect(usable(withoutLost(slots, 1_000_000), 1_000_000)).toBe(5);
      expect(usable(withoutLost(slots, 1_000_025), 1_000_025)).toBe(5);
    }
  });

  test("gives lost slots again where nobody has reserved since, and else not", () => {
    const hourly = spreadOf(resolveRate({ limit: 1, per: "1h" }, "rate"));
    const first = reserve(null, hourly, ask(1, 1_000_000));
    const lost = { from: first.slots.from, end: first.bucket.nextAt };
    expect(reserve(first.bucket, hourly, ask(1, 1_060_000)).slots.count).toBe(0);
    const again = reserve(first.bucket, hourly, ask(1, 1_060_000), lost);
    expect(usable(again.slots, 1_060_000)).toBe(1);
    expect(reserve(again.bucket, hourly, ask(1, 1_070_000), lost).slots.count).toBe(0);
  });

  test("gives a little more from a bucket that nobody waits for, to be used in peace", () => {
    const { slots } = reserve({ nextAt: 0 }, spreadOf(resolveRate({ limit: 10_000 }, "rate")), ask(1, 1_000));
    expect(slots).toMatchObject({ count: 40, isSpare: true });
    expect(slots.lateMs).toBeGreaterThan(reserve({ nextAt: 0 }, ten, ask(1, 1_000)).slots.lateMs);
  });

  test("waits for a clock that stepped back a little, and not for one that stepped back far", () => {
    expect(reserve({ nextAt: 10_900 }, ten, ask(5, 10_000)).slots.count).toBe(0);
    const { slots, bucket } = reserve({ nextAt: 3_600_000 }, ten, ask(5, 10_000));
    expect(timesOf(slots)[0]).toBe(10_000);
    expect(bucket.nextAt).toBeLessThan(11_000);
  });

  test("keeps a slot of a slow limit, however far ahead it is", () => {
    const daily = spreadOf(resolveRate({ limit: 1, per: "1d" }, "rate"));
    const { bucket } = reserve(null, daily, ask(5, 1_000_000));
    expect(reserve(bucket, daily, ask(5, 1_000_001)).slots.count).toBe(0);
    expect(reserve(bucket, daily, ask(5, 1_000_000 + 86_400_000)).slots.count).toBe(1);
  });
});

describe("slots", () => {
  const slots = reserve({ nextAt: 1_000 }, ten, ask(3, 1_000)).slots;

  test("may be used from their time on", () => {
    expect([999, 1_000, 1_099, 1_100, 1_199, 1_200, 9_999].map((now) => usable(slots, now))).toEqual([
      0, 1, 1, 2, 2, 3, 3,
    ]);
  });

  test("are lost when their time is over", () => {
    expect([1_000, 1_030, 1_031, 1_130, 1_131, 1_231].map((now) => withoutLost(slots, now).count)).toEqual([
      3, 3, 2, 2, 1, 0,
    ]);
  });

  test("are tight where the limit has none to spare, and never where they are spare", () => {
    const every = (limit: number): Spread => spreadOf(resolveRate({ limit }, "rate"));
    const wanted = (limit: number): Slots => reserve({ nextAt: 1_001 }, every(limit), ask(1, 1_000)).slots;
    expect([10, 249, 250, 251].map((limit) => [isTight(wanted(limit)), canSpare(every(limit))])).toEqual([
      [true, false],
      [true, false],
      [false, true],
      [false, true],
    ]);
    expect(isTight({ ...wanted(10), isSpare: true })).toBe(false);
  });

  test("are used from the first on", () => {
    expect(without(slots, 1)).toMatchObject({ from: 1_100, count: 2 });
    expect(without(slots, 9)).toMatchObject({ from: 1_300, count: 0 });
  });
});

describe("whatever several workers reserve in whatever order", () => {
  const rates = fc.record({
    limit: fc.integer({ min: 1, max: 2_000 }),
    per: fc.constantFrom(1_000, 10_000),
    burst: fc.integer({ min: 1, max: 20 }),
  });
  /** One turn of a worker: time passes, it asks or not, and starts as much of what it may as it likes. */
  const turn = fc.record({ worker: fc.nat(3), passMs: fc.nat(60), want: fc.nat(50), use: fc.nat(50) });

  test("no slot is given twice, and no window holds more starts than limit, burst and lateness allow", () => {
    fc.assert(
      fc.property(rates, fc.array(turn, { minLength: 10, maxLength: 150 }), (options, turns) => {
        const settings = resolveRate(options, "rate");
        const spread = spreadOf(settings);
        let now = 1_700_000_000_000;
        let bucket: RateBucket | null = null;
        const hands: Slots[][] = [[], [], [], []];
        const given: number[] = [];
        const starts: number[] = [];
        for (const { worker, passMs, want, use } of turns) {
          now += passMs;
          const answer = reserve(bucket, spread, ask(want, now));
          bucket = bucketFrom(JSON.stringify(answer.bucket));
          given.push(...timesOf(answer.slots));
          const own = [...(hands[worker] ?? []), answer.slots].map((slots) => withoutLost(slots, now));
          let left = use;
          hands[worker] = own.map((slots) => {
            const used = Math.min(left, usable(slots, now));
            left -= used;
            for (let n = 0; n < used; n++) starts.push(now);
            return without(slots, used);
          });
        }
        for (let i = 1; i < given.length; i++)
          expect((given[i] as number) - (given[i - 1] as number)).toBeGreaterThanOrEqual(spread.stepMs * 0.99);
        // Each start lies at most this long behind its slot, and the burst that long before it.
        const late = 250;
        const most = settings.limit * (1 + late / settings.perMs) + settings.burst + 2;
        for (let from = 0, to = 0; to < starts.length; to++) {
          while ((starts[to] as number) - (starts[from] as number) >= settings.perMs) from++;
          expect(to - from + 1).toBeLessThanOrEqual(most);
        }
      }),
      { seed: 11, numRuns: 300 },
    );
  });

  test("a clock that steps back never has more waiting than a limit's step and the time ahead", () => {
    fc.assert(
      fc.property(rates, fc.integer({ min: 0, max: 10 ** 9 }), (options, backMs) => {
        const spread = spreadOf(resolveRate(options, "rate"));
        const before = reserve(null, spread, ask(50, 10 ** 12)).bucket;
        const now = 10 ** 12 - backMs;
        const waitMs = AHEAD_MS + spread.stepMs + 1_000;
        const first = reserve(before, spread, ask(1, now));
        const later = reserve(first.bucket, spread, ask(1, now + waitMs));
        expect(first.slots.count + later.slots.count).toBeGreaterThan(0);
      }),
      { seed: 12 },
    );
  });
});

describe("what people write", () => {
  test("has defaults", () => {
    expect(resolveRate({ limit: 5 }, "rate")).toEqual({ limit: 5, perMs: 1_000, burst: 1 });
  });

  test.each([
    [undefined, /^rate: expected an object with limit, per, burst; got undefined; /],
    [{}, /^rate\.limit: expected a number from 0\.001 to 1000000; got undefined; change it$/],
    [{ limit: 0 }, /^rate\.limit: expected .*; got 0; /],
    [{ limit: "5" }, /^rate\.limit: expected .*; got "5"; /],
    [{ limit: 5, per: 0 }, /^rate\.per: expected a duration .*1ms to 1d; got 0; /],
    [{ limit: 5, per: "2d" }, /^rate\.per: expected .*; got "2d"; /],
    [{ limit: 5, burst: 0 }, /^rate\.burst: expected a whole number from 1 to 1000000; got 0; /],
    [{ limit: 5, burst: 1.5 }, /^rate\.burst: expected a whole number .*; got 1\.5; /],
    [{ limit: 5, bursts: 2 }, /did you mean "burst"\?$/],
  ])("%j is refused with what to do", (options, message) => {
    expect(() => resolveRate(options, "rate")).toThrow(message);
  });
});

test.each(["", "junk", "null", "[]", "{}", '{"nextAt":null}', '{"nextAt":"soon"}', '"x"', "5"])(
  "a text that is no bucket, %s, is none",
  (text) => {
    expect(bucketFrom(text)).toBeNull();
  },
);
