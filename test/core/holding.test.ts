// What holds work back, to the millisecond.
import { describe, expect, test } from "vitest";
import { type Holding, holdUntilOf, isHeld, nothingHeld, pausesInForce } from "../../src/core/holding.ts";
import { heldFor, initialRecord } from "../../src/core/service-record.ts";

const NOW = 1_700_000_000_000;
const belonging = { type: "mail", queue: "default", tenant: null, group: null, groupConcurrency: 1, priority: 5 };
const work = { ...belonging, service: "smtp" };
const asked = heldFor(initialRecord, 1_000, NOW);
const at = (now: number): Holding => ({ ...nothingHeld(now), services: new Map([["smtp", asked]]) });

describe("a service that asked to be left alone", () => {
  test("holds its work back until then and not at that moment", () => {
    expect(holdUntilOf(work, at(NOW + 999))).toBe(NOW + 1_000);
    expect(isHeld(work, at(NOW + 999))).toBe(true);
    expect(holdUntilOf(work, at(NOW + 1_000))).toBe(null);
    expect(isHeld(work, at(NOW + 1_000))).toBe(false);
  });

  test("holds no work of others back", () => {
    expect(isHeld({ ...work, service: "other" }, at(NOW))).toBe(false);
    expect(isHeld({ ...work, service: null }, at(NOW))).toBe(false);
  });
});

test("a pause is in force from its first moment until its last", () => {
  const pause = { kind: "type", name: "mail", from: NOW, until: NOW + 10, reason: "" } as const;
  const inForce = (now: number): number => pausesInForce({ pauses: [pause], now }).length;
  expect([NOW - 1, NOW, NOW + 9, NOW + 10].map(inForce)).toEqual([0, 1, 1, 0]);
});
