// Lane numbers: their order is the order of service, and kinds are neighbours.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { firstLane, kindOfLane, LANE_KINDS, laneKind, laneOfKind } from "../../src/core/lane.ts";

const n = fc.integer({ min: 0, max: 2 ** 38 - 1 });
const priority = fc.integer({ min: 0, max: 9 });
const kind = fc.constantFrom(...LANE_KINDS);

describe("a lane number", () => {
  it("is a safe integer from 0 on", () => {
    fc.assert(
      fc.property(n, priority, kind, (each, p, k) => {
        const lane = laneOfKind(firstLane(each, p), k);
        expect(Number.isSafeInteger(lane) && lane >= 0).toBe(true);
      }),
    );
  });

  it("is smaller for a higher priority, whatever the belonging and the kind", () => {
    fc.assert(
      fc.property(n, n, priority, priority, kind, kind, (a, b, p, q, k, l) => {
        fc.pre(p > q);
        expect(laneOfKind(firstLane(a, p), k)).toBeLessThan(laneOfKind(firstLane(b, q), l));
      }),
    );
  });

  it("belongs to one belonging, priority and kind only", () => {
    fc.assert(
      fc.property(fc.tuple(n, priority, kind), fc.tuple(n, priority, kind), (a, b) => {
        const lane = ([each, p, k]: typeof a) => laneOfKind(firstLane(each, p), k);
        expect(lane(a) === lane(b)).toBe(a.join() === b.join());
      }),
    );
  });

  it("finds its siblings and its kind by arithmetic alone", () => {
    fc.assert(
      fc.property(n, priority, kind, kind, (each, p, k, l) => {
        const lane = laneOfKind(firstLane(each, p), k);
        expect(kindOfLane(lane)).toBe(k);
        expect(laneOfKind(lane, l)).toBe(laneOfKind(firstLane(each, p), l));
        expect(laneOfKind(lane, "first")).toBe(firstLane(each, p));
      }),
    );
  });

  it("orders first tries, retries, suspects and those with their last crash left side by side", () => {
    const lanes = LANE_KINDS.map((each) => laneOfKind(firstLane(7, 3), each));
    expect(lanes).toEqual([0, 1, 2, 3].map((offset) => firstLane(7, 3) + offset));
  });
});

describe("the kind of a waiting job", () => {
  it.each([
    [0, 0, 3, "first"],
    [0, 0, 1, "first"],
    [1, 0, 3, "retry"],
    [9, 0, 1, "retry"],
    [0, 1, 3, "suspect"],
    [3, 1, 3, "suspect"],
    [0, 2, 3, "last"],
    [3, 2, 3, "last"],
    [0, 1, 2, "last"],
    [0, 5, 3, "last"],
  ] as const)("with %i attempts and %i crashes of %i is %s", (attempts, crashes, maxCrashes, expected) => {
    expect(laneKind(attempts, crashes, maxCrashes)).toBe(expected);
  });
});
