// Many real workers in seeded worlds of crashes, pauses, lost answers and outages: whatever happens, the guarantees hold.
import { describe, expect, it } from "vitest";
import { REGRESSIONS } from "./regressions.ts";
import type { StoreName } from "./simulate.ts";
import { explain, sweep } from "./sweep.ts";

/**
 * 130 in all, most of them on the faster store, where every planted defect is found within 100; `npm run prove -- simulate`
 * plays as many as it is asked for.
 */
const PLAYED: readonly { readonly store: StoreName; readonly from: number; readonly to: number }[] = [
  { store: "memory", from: 1, to: 100 },
  { store: "sqlite", from: 951, to: 980 },
];
/** They were found before there were redrive runs in any world. */
const ALONE = { settings: { runs: false } };
const SHARE = 50;
const MINUTES = 60_000;

for (const { store, from, to } of PLAYED) {
  describe(`the guarantees hold on ${store}`, () => {
    it("for seeds that once broke them", { timeout: MINUTES }, async () => {
      const { bad } = await sweep(store, REGRESSIONS, ALONE);
      expect(bad.map(explain).join("\n")).toBe("");
    });

    for (let first = from; first <= to; first += SHARE) {
      const last = Math.min(first + SHARE - 1, to);
      it(`for seeds ${first} to ${last}`, { timeout: 2 * MINUTES }, async () => {
        const seeds = Array.from({ length: last - first + 1 }, (_, i) => first + i);
        const { bad, totals } = await sweep(store, seeds);
        expect(bad.map(explain).join("\n")).toBe("");
        // A storm in which nothing goes wrong would prove nothing.
        expect(totals.crashes).toBeGreaterThan(0);
        expect(totals.staleRefused).toBeGreaterThan(0);
        expect(totals.extraRuns).toBeGreaterThan(0);
        expect(totals.ambiguous).toBeGreaterThan(0);
      });
    }
  });
}
