// The simulation can find bugs: every planted defect is found within a few seeds, by a rule that is about it.
import { afterEach, describe, expect, it, vi } from "vitest";
import { BUSY, STORE_DEFECTS } from "./planted.ts";
import { DRIVER_DEFECTS } from "./planted-redrives.ts";
import { WORKER_DEFECTS } from "./planted-workers.ts";
import { simulate } from "./simulate.ts";

const DEFECTS = [...STORE_DEFECTS, ...WORKER_DEFECTS, ...DRIVER_DEFECTS];

afterEach(() => vi.resetModules());

describe("the simulation finds", () => {
  for (const { name, rules, within, foundBy = 1, plant } of DEFECTS) {
    it(`${name}: by ${rules.join(" or ")}, within ${within} seeds`, async () => {
      const defect = await plant();
      const seen = new Set<string>();
      const others = Array.from({ length: within }, (_, i) => i + 1).filter((seed) => seed !== foundBy);
      for (const seed of [foundBy, ...others]) {
        const { report } = await simulate({
          store: "memory",
          seed,
          ...defect,
          settings: { ...BUSY, ...defect.settings },
        });
        for (const violation of report.violations) seen.add(violation.rule);
        if (rules.some((rule) => seen.has(rule))) return;
      }
      expect.fail(`not found; broken were ${[...seen].join(", ") || "none"}`);
    });
  }

  it("at least fifteen defects, each named once", () => {
    expect(DEFECTS.length).toBeGreaterThanOrEqual(15);
    expect(new Set(DEFECTS.map(({ name }) => name)).size).toBe(DEFECTS.length);
  });
});
