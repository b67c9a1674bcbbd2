// Retry budgets: the bound under total failure, and a clock that misbehaves.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BUDGET_DEFAULTS, deposit, initialBudget, putBack, resolveBudget, withdraw } from "../../src/core/budget.ts";

const settings = resolveBudget({ share: 0.2, floorPerSecond: 1, capacity: 50 });

describe("withdraw", () => {
  test("grants nothing from an empty budget and one retry per second of floor", () => {
    const empty = withdraw(initialBudget(0), 5, settings, 0);
    expect(empty.granted).toBe(0);
    expect(withdraw(empty.budget, 5, settings, 3000).granted).toBe(3);
  });

  test("grants the share of the successes", () => {
    const paid = deposit(initialBudget(0), 10, settings, 0);
    expect(withdraw(paid, 5, settings, 0)).toEqual({ granted: 2, budget: { tokens: 0, countedAt: 0 } });
  });

  test("gets nothing for no success", () => {
    for (const none of [0, -3]) expect(deposit(initialBudget(0), none, settings, 0)).toEqual(initialBudget(0));
  });

  test("saves no more than its capacity", () => {
    expect(withdraw(deposit(initialBudget(0), 1e9, settings, 1e12), 1e9, settings, 1e12).granted).toBe(50);
  });

  test("grants nothing for zero, negative or fractional requests under one", () => {
    const paid = deposit(initialBudget(0), 100, settings, 0);
    expect([0, -3, 0.9].map((n) => withdraw(paid, n, settings, 0).granted)).toEqual([0, 0, 0]);
  });

  test("does not mint tokens when the clock steps back and forth", () => {
    let budget = initialBudget(10_000);
    let total = 0;
    for (const now of [10_000, 0, 10_000, 5000, 10_000, 11_000]) {
      const answer = withdraw(budget, 10, settings, now);
      budget = answer.budget;
      total += answer.granted;
    }
    expect(total).toBe(1);
  });
});

test("what comes back is there again, up to the capacity", () => {
  const { budget } = withdraw(deposit(initialBudget(0), 100, settings, 0), 15, settings, 0);
  expect(putBack(budget, 10, settings, 0).tokens).toBe(15);
  expect(putBack(budget, 10, settings, 2_000).tokens).toBe(17);
  expect(putBack(budget, 1_000, settings, 0).tokens).toBe(50);
});

test("retries never exceed share × successes + floor × seconds, whatever the order of calls", () => {
  const call = fc.record({ passMs: fc.nat(2000), successes: fc.nat(20), retries: fc.nat(50) });
  fc.assert(
    fc.property(fc.array(call, { maxLength: 200 }), (calls) => {
      let budget = initialBudget(0);
      let now = 0;
      let successes = 0;
      let retries = 0;
      for (const step of calls) {
        now += step.passMs;
        successes += step.successes;
        budget = deposit(budget, step.successes, settings, now);
        const answer = withdraw(budget, step.retries, settings, now);
        budget = answer.budget;
        retries += answer.granted;
        expect(retries).toBeLessThanOrEqual(settings.share * successes + (settings.floorPerSecond * now) / 1000 + 1e-6);
      }
    }),
    { seed: 5 },
  );
});

test("an hour of total failure costs the floor and no more", () => {
  let budget = initialBudget(0);
  let retries = 0;
  for (let now = 0; now <= 3_600_000; now += 250) {
    const answer = withdraw(budget, 1000, settings, now);
    budget = answer.budget;
    retries += answer.granted;
  }
  expect(retries).toBe(3600);
});

describe("resolveBudget", () => {
  test("has defaults and refuses nonsense", () => {
    expect(resolveBudget()).toEqual(BUDGET_DEFAULTS);
    expect(() => resolveBudget({ share: -1 })).toThrow(/budget\.share/);
    expect(() => resolveBudget({ floorPerSecond: Number.NaN })).toThrow(/budget\.floorPerSecond/);
    expect(() => resolveBudget({ capacity: 0 })).toThrow(/budget\.capacity/);
    expect(() => resolveBudget({ floor: 1 } as never)).toThrow(/did you mean/);
    expect(() => resolveBudget({ share: 0, floorPerSecond: 0 })).toThrow(/no retry would ever run/);
  });
});
