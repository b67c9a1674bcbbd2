// Ids of plans and runs.
import { expect, it } from "vitest";
import { newPlanId, runIdOf } from "../../../src/core/recovery/run-id.ts";

it("ids are short, and in the order of their making", () => {
  const at = Date.UTC(2026, 10, 18);
  const ids = [0, 1_000, 60_000, 86_400_000].map((later) => newPlanId(at + later, () => 0.999_999));
  expect(ids.every((id) => /^p_[0-9a-hjkmnp-tv-z]{10}$/.test(id))).toBe(true);
  expect(ids.toSorted()).toEqual(ids);
  expect(newPlanId(at, () => 0)).toMatch(/^p_.{6}0000$/);
});

it("a run has the digits of its plan", () => {
  expect(runIdOf("p_1t0k5gq4zx")).toBe("r_1t0k5gq4zx");
});
