// Whether a lease that has ended may be held against its worker.
import { describe, expect, it } from "vitest";
import { hasLasted, type HoldUp, lapsedWorkers, steppedAhead, withHoldUp } from "../../src/core/lapse.ts";

const FOREVER = Number.POSITIVE_INFINITY;

/** What is known after these hold-ups, in their order. */
const after = (...holdUps: readonly [until: number, ms: number][]): HoldUp[] =>
  holdUps.reduce<HoldUp[]>((known, [until, ms]) => withHoldUp(known, { until, ms }), []);

describe("contact has lasted for a lease", () => {
  const CASES: readonly (readonly [string, HoldUp[], number, number, boolean])[] = [
    ["where nothing is known to have held it up", after(), 10, 0, true],
    ["one moment before it is as old as the lease: not yet", after([100, FOREVER]), 10, 109, false],
    ["once it is as old as the lease", after([100, FOREVER]), 10, 110, true],
    ["of a short lease, while a longer one still has to wait", after([100, FOREVER]), 60, 110, false],
    ["despite a hold-up of half the lease", after([100, 5]), 10, 101, true],
    ["not just after a hold-up of more than half of it", after([100, 6]), 10, 109, false],
    ["a lease after a hold-up of more than half of it", after([100, 6]), 10, 110, true],
    ["of a long lease, for which the hold-up was short", after([100, 6]), 60, 101, true],
    ["not where a shorter hold-up came after a long one", after([100, 6], [101, 1]), 10, 105, false],
    ["not where a long hold-up came after a shorter one", after([100, 1], [101, 6]), 10, 105, false],
  ];
  for (const [name, known, leaseMs, now, answer] of CASES) {
    it(name, () => expect(hasLasted(known, leaseMs, now)).toBe(answer));
  }

  it("with a memory that stays short", () => {
    const known = after(...Array.from({ length: 10_000 }, (_, n): [number, number] => [n * 10, 20_000 - n]));
    expect(known.length).toBeLessThan(5_000);
    expect(after([0, FOREVER], [1, 10], [2, 0], [30, 1])).toEqual([
      { until: 0, ms: FOREVER },
      { until: 30, ms: 1 },
    ]);
  });
});

describe("a step of the store's clock", () => {
  const reading = (storeTime: number, asked: number, answered: number) => ({ storeTime, asked, answered });
  it("is what the store's time gained on the steady clock", () => {
    expect(steppedAhead(reading(1_000, 10, 10), reading(2_000, 1_010, 1_010))).toBe(0);
    expect(steppedAhead(reading(1_000, 10, 10), reading(9_000, 1_010, 1_010))).toBe(7_000);
  });

  it("is not hidden by answers that took long", () => {
    expect(steppedAhead(reading(1_000, 0, 500), reading(9_000, 1_000, 1_500))).toBeGreaterThanOrEqual(7_000);
  });

  it("back is none, for it ends no lease", () => {
    expect(steppedAhead(reading(9_000, 0, 0), reading(1_000, 10, 10))).toBe(0);
  });
});

describe("workers that may be given up for their lease", () => {
  const worker = (id: string, leaseEnd: number, leaseMs: number, givenUp = false) => ({
    id,
    leaseEnd,
    beatAt: leaseEnd - leaseMs,
    givenUp,
  });
  it("are those whose lease has ended and for whose lease contact has lasted", () => {
    const workers = [
      worker("living", 1_001, 10),
      worker("ended", 1_000, 10),
      worker("long", 900, 61),
      worker("known", 500, 10, true),
    ];
    expect(lapsedWorkers(workers, 1_000, (leaseMs) => leaseMs <= 60)).toEqual(["ended"]);
    expect(lapsedWorkers(workers, 1_000, () => false)).toEqual([]);
  });
});
