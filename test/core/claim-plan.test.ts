// Which lanes a claim takes from: strict priority, fair turns, grants, suspects, and the cost of many tenants.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ActiveLane, firstLane, isSuspect, LANE_KINDS, laneOfKind } from "../../src/core/lane.ts";
import { type Appetite, jobsByLane, jobsIn, planClaim, type Quota } from "../../src/core/claim-plan.ts";

let made = 0;

function lane(overrides: Partial<Omit<ActiveLane, "lane">> = {}): ActiveLane {
  const all = {
    type: "a",
    queue: "default",
    service: null,
    tenant: null,
    group: null,
    groupConcurrency: null,
    room: null,
    priority: 0,
    kind: "first" as const,
    headRunAt: 0,
  };
  const given = { ...all, ...overrides };
  return { ...given, lane: laneOfKind(firstLane(made++, given.priority), given.kind) };
}

function grouped(group: string, room: number, overrides: Partial<Omit<ActiveLane, "lane">> = {}): ActiveLane {
  return lane({ group, groupConcurrency: room, room, ...overrides });
}

function appetite(overrides: Partial<Appetite> = {}): Appetite {
  return { want: 10, serves: new Set(["a", "b"]), queues: null, grants: new Map(), suspects: 1, turn: 0, ...overrides };
}

/** What a store takes by a plan, from lanes that hold so many jobs each. */
function taken(quotas: readonly Quota[], stock: ReadonlyMap<number, number>, want: number): Map<number, number> {
  const got = new Map<number, number>();
  let left = want;
  for (const { lane: each, limit } of quotas) {
    const count = Math.min(limit, left, (stock.get(each) ?? 0) - (got.get(each) ?? 0));
    got.set(each, (got.get(each) ?? 0) + count);
    left -= count;
  }
  return got;
}

/** Jobs taken from each of these lanes when every lane holds plenty. */
function take(lanes: readonly ActiveLane[], hunger: Appetite, stock = 1_000): number[] {
  const got = taken(planClaim(lanes, hunger), new Map(lanes.map((each) => [each.lane, stock])), hunger.want);
  return lanes.map((each) => got.get(each.lane) ?? 0);
}

describe("a plan", () => {
  it("is empty where nothing is due", () => {
    expect(planClaim([], appetite())).toEqual([]);
  });

  it("takes everything from one lane", () => {
    expect(take([lane()], appetite())).toEqual([10]);
  });

  it("takes nothing where nothing is wanted", () => {
    expect(take([lane(), lane({ priority: 9 })], appetite({ want: 0 }))).toEqual([0, 0]);
  });

  it("leaves lower priorities what the higher ones do not need", () => {
    const lanes = [lane({ priority: 0 }), lane({ priority: 9 }), lane({ priority: 5 })];
    expect(take(lanes, appetite())).toEqual([0, 10, 0]);
    expect(take(lanes, appetite(), 4)).toEqual([2, 4, 4]);
  });

  it("serves a retry of a high priority before a first try of a low one", () => {
    expect(take([lane({ priority: 1 }), lane({ priority: 2, kind: "retry" })], appetite({ want: 1 }))).toEqual([0, 1]);
  });

  it("names no lane twice where there are as many as jobs are wanted", () => {
    const lanes = Array.from({ length: 30 }, (_, n) => lane({ tenant: `t${n}` }));
    const quotas = planClaim(lanes, appetite({ want: 10 }));
    expect(quotas.map(({ limit }) => limit)).toEqual(Array.from({ length: 10 }, () => 1));
    expect(new Set(quotas.map((quota) => quota.lane)).size).toBe(10);
  });

  it("leaves out types that this worker has no handler for", () => {
    expect(take([lane({ type: "z", priority: 9 }), lane()], appetite())).toEqual([0, 10]);
  });

  it("leaves out queues that this worker does not serve", () => {
    const lanes = [lane({ queue: "slow", priority: 9 }), lane()];
    expect(take(lanes, appetite({ queues: new Set(["default"]) }))).toEqual([0, 10]);
    expect(take(lanes, appetite({ queues: new Set() }))).toEqual([0, 0]);
  });

  it("goes on to the next priority where the lanes of a higher one hold one job each", () => {
    const lanes = [lane({ priority: 9, tenant: "x" }), lane({ priority: 9, tenant: "y" }), lane()];
    const stock = new Map(lanes.map((each) => [each.lane, each.priority === 9 ? 1 : 100]));
    const got = taken(planClaim(lanes, appetite({ want: 4 })), stock, 4);
    expect(lanes.map((each) => got.get(each.lane) ?? 0)).toEqual([1, 1, 2]);
  });

  it("passes over a tenant that has nothing but suspects while none may be taken", () => {
    const lanes = [lane({ tenant: "x", kind: "suspect" }), lane({ tenant: "y" })];
    expect(take(lanes, appetite({ want: 1, suspects: 0 }))).toEqual([0, 1]);
  });

  it("passes over a tenant for whom another used up the grant", () => {
    const lanes = [lane({ tenant: "x", service: "s" }), lane({ tenant: "y", service: "s" }), lane({ tenant: "z" })];
    const grants = new Map([["service:s", 1]]);
    expect(take(lanes, appetite({ want: 2, grants }))).toEqual([1, 0, 1]);
  });

  it("changes neither lanes nor grants", () => {
    const lanes = Object.freeze([lane({ tenant: "b" }), lane({ tenant: "a" })]);
    const grants = new Map([["tenant:a", 3]]);
    const hunger = appetite({ grants });
    expect(planClaim(lanes, hunger)).toEqual(planClaim(lanes, hunger));
    expect(grants).toEqual(new Map([["tenant:a", 3]]));
  });

  it("bounds every quota by what is wanted", () => {
    const lanes = Array.from({ length: 30 }, (_, i) => lane({ tenant: `t${i % 7}`, priority: i % 3 }));
    for (const want of [1, 3, 50]) {
      expect(Math.max(...planClaim(lanes, appetite({ want })).map(({ limit }) => limit))).toBeLessThanOrEqual(want);
    }
  });
});

describe("tenants", () => {
  const tenants = (count: number) => Array.from({ length: count }, (_, i) => lane({ tenant: `t${i}` }));

  it("share alike where all have plenty", () => {
    expect(take(tenants(5), appetite({ want: 20 }))).toEqual([4, 4, 4, 4, 4]);
  });

  it("share alike however many lanes each has", () => {
    const lanes = [
      lane({ tenant: "small" }),
      ...Array.from({ length: 9 }, (_, i) => lane({ tenant: "big", service: `s${i}` })),
    ];
    const [small, ...big] = take(lanes, appetite({ want: 20 }));
    expect(small).toBe(10);
    expect(big.reduce((sum, each) => sum + each, 0)).toBe(10);
  });

  it("give to others what they cannot use", () => {
    const lanes = tenants(2);
    const stock = new Map([
      [lanes[0]?.lane ?? 0, 1],
      [lanes[1]?.lane ?? 0, 100],
    ]);
    const got = taken(planClaim(lanes, appetite()), stock, 10);
    expect([...got.values()]).toEqual([1, 9]);
  });

  it("take turns: over a round everyone gets the same", () => {
    const lanes = tenants(7);
    for (const want of [1, 2, 3, 5]) {
      const sum = lanes.map(() => 0);
      for (let turn = 0; turn < 7; turn++)
        take(lanes, appetite({ want, turn })).forEach((each, i) => (sum[i] = (sum[i] ?? 0) + each));
      expect(sum).toEqual(lanes.map(() => want));
    }
  });

  it("include the jobs without tenant as one", () => {
    expect(take([lane({ tenant: null }), lane({ tenant: "t" })], appetite())).toEqual([5, 5]);
  });

  it("begin with their oldest lane", () => {
    const lanes = [
      lane({ headRunAt: 30 }),
      lane({ headRunAt: 10, service: "s" }),
      lane({ headRunAt: 20, kind: "retry" }),
    ];
    expect(take(lanes, appetite({ want: 1 }))).toEqual([0, 1, 0]);
  });
});

describe("weights", () => {
  const weightOf = (weights: Record<string, number>) => (tenant: string) => weights[tenant] ?? 1;
  const lanes = [lane({ tenant: "a" }), lane({ tenant: "b" }), lane({ tenant: null })];

  it("share what is wanted, jobs without tenant counting as one of weight 1", () => {
    expect(take(lanes, appetite({ want: 20, weightOf: weightOf({ a: 3 }) }))).toEqual([12, 4, 4]);
    expect(take(lanes, appetite({ want: 24, weightOf: weightOf({ a: 0.5, b: 2.5 }) }))).toEqual([3, 15, 6]);
  });

  it("give turns where one is wanted at a time", () => {
    const sum = [0, 0, 0];
    for (let turn = 0; turn < 60; turn++)
      take(lanes, appetite({ want: 1, turn, weightOf: weightOf({ a: 4 }) })).forEach(
        (each, i) => (sum[i] = (sum[i] ?? 0) + each),
      );
    expect(sum).toEqual([40, 10, 10]);
  });

  it("leave nobody out, however light, and nothing unused", () => {
    const weights = weightOf({ a: 0.01, b: 100 });
    const sum = [0, 0, 0];
    for (let turn = 0; turn < 10_101; turn += 1)
      take(lanes, appetite({ want: 1, turn, weightOf: weights })).forEach((each, i) => (sum[i] = (sum[i] ?? 0) + each));
    expect(sum).toEqual([1, 10_000, 100]);
    const stock = new Map([[lanes[0]?.lane ?? 0, 100]]);
    const got = taken(planClaim(lanes, appetite({ weightOf: weights })), stock, 10);
    expect(got.get(lanes[0]?.lane ?? 0)).toBe(10);
  });

  it("do not come before priority", () => {
    const urgent = lane({ tenant: "light", priority: 1 });
    expect(take([...lanes, urgent], appetite({ weightOf: weightOf({ light: 0.01, a: 100 }) }))).toEqual([0, 0, 0, 10]);
  });
});

describe("grants for retries", () => {
  const of = (kind: ActiveLane["kind"], service: string | null = "s") => lane({ service, kind });

  it("bound retries of the service, and neither its first tries nor other services", () => {
    const lanes = [of("first"), of("retry"), of("retry", "other"), of("retry", null)];
    const grants = new Map([["retry:s", 2]]);
    const got = take(lanes, appetite({ want: 400, grants }), 50);
    expect(got).toEqual([50, 2, 50, 50]);
  });

  it("bound suspects and last chances too", () => {
    const lanes = [of("suspect"), of("last")];
    expect(take(lanes, appetite({ grants: new Map([["retry:s", 0]]) }))).toEqual([0, 0]);
  });

  it("come beside the grant of the service", () => {
    const lanes = [of("first"), of("retry")];
    const grants = new Map([
      ["retry:s", 5],
      ["service:s", 3],
    ]);
    const got = take(lanes, appetite({ grants }));
    expect(got.reduce((sum, each) => sum + each, 0)).toBe(3);
  });
});

describe("grants", () => {
  it.each(["type:a", "queue:default", "service:s", "tenant:t"])("of 0 for %s keep the lane closed", (name) => {
    const closed = lane({ service: "s", tenant: "t", priority: 9 });
    const open = lane({ type: "b", queue: "q" });
    const grants = new Map([[name, 0]]);
    expect(take([closed, open], appetite({ grants }))).toEqual([0, 10]);
    expect(planClaim([closed], appetite({ grants }))).toEqual([]);
  });

  it("below 0 count as 0", () => {
    expect(planClaim([lane()], appetite({ grants: new Map([["type:a", -3]]) }))).toEqual([]);
  });

  it("bound all lanes of a name together", () => {
    const lanes = [
      lane({ service: "s", tenant: "x" }),
      lane({ service: "s", tenant: "y" }),
      lane({ service: "s", priority: 9 }),
    ];
    const got = take(lanes, appetite({ want: 50, grants: new Map([["service:s", 7]]) }));
    expect(got.reduce((sum, each) => sum + each, 0)).toBe(7);
  });

  it("of several names bound a lane by the smallest", () => {
    const grants = new Map([
      ["type:a", 6],
      ["service:s", 4],
      ["tenant:t", 9],
    ]);
    expect(take([lane({ service: "s", tenant: "t" })], appetite({ grants }))).toEqual([4]);
  });

  it("are told apart by kind and name", () => {
    const grants = new Map([
      ["service:a", 0],
      ["tenant:default", 0],
      ["type:b", 0],
    ]);
    expect(take([lane({ service: "b", tenant: "b" })], appetite({ grants }))).toEqual([10]);
  });
});

describe("suspects", () => {
  it("are taken one at a time over all their lanes", () => {
    const lanes = [lane({ kind: "suspect", tenant: "x" }), lane({ kind: "last", tenant: "y", priority: 9 }), lane()];
    expect(take(lanes, appetite({ want: 20 }))).toEqual([0, 1, 19]);
  });

  it("wait while one is held", () => {
    expect(take([lane({ kind: "suspect", priority: 9 }), lane()], appetite({ suspects: 0 }))).toEqual([0, 10]);
  });
});

describe("any plan", () => {
  const anyLane = fc.record({
    type: fc.constantFrom("a", "b", "z"),
    queue: fc.constantFrom("default", "q"),
    service: fc.constantFrom(null, "s1", "s2"),
    tenant: fc.constantFrom(null, "t1", "t2", "t3"),
    priority: fc.integer({ min: 0, max: 2 }),
    kind: fc.constantFrom(...LANE_KINDS),
    headRunAt: fc.nat(5),
  });
  const names = ["type:a", "queue:q", "service:s1", "service:s2", "tenant:t1", "tenant:t2"];
  const anyGrants = fc.dictionary(fc.constantFrom(...names), fc.nat(6)).map((given) => new Map(Object.entries(given)));
  const holding = fc.record({ lane: anyLane, stock: fc.integer({ min: 1, max: 8 }) });

  it("takes what it may, no more than wanted, and never a lower priority while a higher one could give more", () => {
    fc.assert(
      fc.property(
        fc.array(holding),
        fc.nat(20),
        anyGrants,
        fc.nat(1),
        fc.nat(9),
        (held, want, grants, suspects, turn) => {
          const lanes = held.map((each) => ({ ...lane(each.lane), stock: each.stock }));
          const stock = new Map(lanes.map((each) => [each.lane, each.stock]));
          const quotas = planClaim(lanes, appetite({ want, grants, suspects, turn }));
          const got = taken(quotas, stock, want);
          const sum = (pick: (each: ActiveLane) => boolean) =>
            lanes.filter(pick).reduce((total, each) => total + (got.get(each.lane) ?? 0), 0);
          expect(sum(() => true)).toBeLessThanOrEqual(want);
          expect(sum((each) => each.type === "z")).toBe(0);
          expect(sum((each) => isSuspect(each.kind))).toBeLessThanOrEqual(suspects);
          for (const [name, most] of grants) {
            const [kind = "", value] = name.split(":");
            expect(
              sum((each) => Reflect.get(each, kind) === value),
              name,
            ).toBeLessThanOrEqual(most);
          }
          const order = quotas.map((quota) => lanes.find((each) => each.lane === quota.lane)?.priority ?? -1);
          expect(order).toEqual(order.toSorted((a, b) => b - a));
          if (grants.size > 0) return;
          // Without grants nothing is held back: either enough was taken, or everything that may be taken was.
          const there = lanes.filter((each) => each.type !== "z" && !isSuspect(each.kind));
          const all = there.reduce((total, each) => total + each.stock, 0);
          const calm = sum((each) => !isSuspect(each.kind));
          expect(calm === all || sum(() => true) === want).toBe(true);
        },
      ),
      { numRuns: 1_000 },
    );
  });
});

describe("100,000 tenants", () => {
  it("are planned for in well under a second", () => {
    const lanes = Array.from({ length: 100_000 }, (_, i) => lane({ tenant: `t${i}`, headRunAt: i % 1_000 }));
    const grants = new Map([["service:s", 5]]);
    // Processor time, because others may keep the machine busy.
    const tries = Array.from({ length: 5 }, () => {
      const before = process.cpuUsage();
      const quotas = planClaim(lanes, appetite({ want: 100, grants, turn: 12_345 }));
      return { quotas, ms: process.cpuUsage(before).user / 1_000 };
    });
    expect(Math.min(...tries.map(({ ms }) => ms))).toBeLessThan(1_000);
    expect(tries[0]?.quotas[0]).toEqual({ lane: lanes[12_345]?.lane, limit: 1 });
  });
});

describe("groups", () => {
  it("get no more than they have room for, over all of their lanes", () => {
    const lanes = [grouped("g", 2), grouped("g", 2, { kind: "retry" }), grouped("h", 1), lane()];
    const quotas = planClaim(lanes, appetite({ want: 100 }));
    const of = (name: string | null): number =>
      quotas
        .filter((quota) => lanes.find((each) => each.lane === quota.lane)?.group === name)
        .reduce((sum, { limit }) => sum + limit, 0);
    expect([of("g"), of("h")]).toEqual([2, 1]);
    expect(of(null)).toBeGreaterThan(90);
  });

  it("of the same name are different groups in different types", () => {
    const quotas = planClaim([grouped("g", 1), grouped("g", 1, { type: "b" })], appetite());
    expect(quotas.map(({ limit }) => limit)).toEqual([1, 1]);
  });

  it("however many, do not get a tenant more than its share", () => {
    const many = Array.from({ length: 1_000 }, (_, n) => grouped(`g${n}`, 1, { tenant: "a" }));
    const one = lane({ tenant: "b" });
    const stock = new Map([...many.map((each) => [each.lane, 1] as const), [one.lane, 1_000]]);
    for (const turn of [0, 1]) {
      const quotas = planClaim([...many, one], appetite({ want: 100, turn }));
      expect(taken(quotas, stock, 100).get(one.lane)).toBe(50);
      expect(quotas.length).toBeLessThan(300);
    }
  });
});

describe("what quotas bring", () => {
  it("is a job a slot, or a batch, as far as the slots go", () => {
    const quotas = [
      { lane: 0, limit: 2 },
      { lane: 4, limit: 25, per: 10 },
      { lane: 0, limit: 3 },
    ];
    expect([0, 1, 2, 3, 4, 5, 6, 9].map((slots) => jobsIn(quotas, slots))).toEqual([0, 1, 2, 12, 22, 27, 28, 30]);
  });

  it("is counted for each lane", () => {
    const quotas = [
      { lane: 0, limit: 2 },
      { lane: 4, limit: 25 },
      { lane: 0, limit: 3 },
    ];
    expect([...jobsByLane(quotas)]).toEqual([
      [0, 5],
      [4, 25],
    ]);
  });
});
