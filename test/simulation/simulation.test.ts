// Many workers in seeded worlds of crashes, pauses, lost answers and outages: whatever happens, the guarantees hold.
import { describe, expect, it } from "vitest";
import { STORES } from "./simulate.ts";
import { explain, sweep } from "./sweep.ts";

/** Seeds that once found something in a store, in the driver or in the checker; a seed joins when that is fixed. */
const REGRESSIONS: readonly number[] = [28, 51, 159, 205, 5472, 5559, 6704, 6758];

const SEEDS_PER_STORE = 100;
const SHARE = 20;

describe("the guarantees hold", () => {
  for (const store of STORES) {
    it(`on ${store} for seeds that once broke them`, { timeout: 60_000 }, async () => {
      const { bad } = await sweep(store, REGRESSIONS);
      expect(bad.map(explain).join("\n")).toBe("");
    });

    const start = 1 + SEEDS_PER_STORE * STORES.indexOf(store);
    for (let from = start; from < start + SEEDS_PER_STORE; from += SHARE) {
      const to = from + SHARE - 1;
      it(`on ${store} for seeds ${from} to ${to}`, { timeout: 60_000 }, async () => {
        const { bad, totals } = await sweep(
          store,
          Array.from({ length: SHARE }, (_, i) => from + i),
        );
        expect(bad.map(explain).join("\n")).toBe("");
        // A storm in which nothing goes wrong would prove nothing.
        expect(totals.crashes).toBeGreaterThan(0);
        expect(totals.staleRefused).toBeGreaterThan(0);
        expect(totals.ambiguous).toBeGreaterThan(0);
      });
    }
  }
});
