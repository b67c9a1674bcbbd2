// The search for the bad one: how many runs it takes, wherever the bad ones are.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Search, searchAmong } from "../../src/core/bisect.ts";

interface Found {
  readonly bad: number | null;
  readonly good: readonly number[];
  readonly aside: readonly number[];
  readonly runs: number;
}

/** Searches as a worker does, given which items are bad. */
function found(count: number, isBad: (item: number) => boolean): Found {
  const good: number[] = [];
  let search: Search<number> = searchAmong(Array.from({ length: count }, (_, at) => at));
  for (let runs = 1; runs <= 100; runs++) {
    const { next, rest, aside } = search;
    if (next.some(isBad)) {
      if (next.length === 1) return { bad: next[0] as number, good, aside: [...aside, ...rest], runs };
      search = searchAmong(next, [...aside, ...rest]);
      continue;
    }
    good.push(...next);
    if (rest.length === 0) return { bad: null, good, aside, runs };
    search = searchAmong(rest, aside);
  }
  throw new Error("the search does not end");
}

describe("a search", () => {
  it("finds one bad item in log2 runs, the one alone among them, or one more", () => {
    for (const count of [2, 3, 10, 16, 100, 1_000]) {
      let total = 0;
      for (let bad = 0; bad < count; bad++) {
        const { runs, ...what } = found(count, (item) => item === bad);
        expect(what.bad).toBe(bad);
        expect(runs).toBeLessThanOrEqual(Math.ceil(Math.log2(count)) + 1);
        total += runs;
      }
      expect(total / count).toBeLessThanOrEqual(Math.log2(count) + 1);
    }
  });

  it("loses and doubles nothing, and finds a bad one whenever there is one", () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 200 }), fc.func(fc.boolean()), (count, dice) => {
        const isBad = (item: number): boolean => dice(item);
        const { bad, good, aside } = found(count, isBad);
        const all = [...(bad === null ? [] : [bad]), ...good, ...aside].sort((a, b) => a - b);
        expect(all).toEqual(Array.from({ length: count }, (_, at) => at));
        expect(good.some(isBad)).toBe(false);
        expect(bad === null ? aside.length === 0 : isBad(bad)).toBe(true);
      }),
    );
  });
});
