// The simulation can find bugs: every planted defect is found within a few seeds, by a rule that is about it.
import { describe, expect, it } from "vitest";
import { DEFECTS } from "./planted.ts";
import { simulate } from "./simulate.ts";

const MOST_SEEDS = 25;

describe("the simulation finds", () => {
  for (const { name, rules, wrap } of DEFECTS) {
    it(name, { timeout: 60_000 }, async () => {
      const seen = new Set<string>();
      for (let seed = 1; seed <= MOST_SEEDS; seed++) {
        const { report } = await simulate({ store: "memory", seed, wrap });
        for (const violation of report.violations) seen.add(violation.rule);
        if (rules.some((rule) => seen.has(rule))) return;
      }
      expect.fail(
        `not found in ${MOST_SEEDS} seeds by ${rules.join(" or ")}; broken were ${[...seen].join(", ") || "none"}`,
      );
    });
  }
});
