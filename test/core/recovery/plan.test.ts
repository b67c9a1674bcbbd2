// The plan of a redrive: its counts, warnings, rate and proof, and when it is too old to start.
import { describe, expect, it } from "vitest";
import {
  type FleetFacts,
  lastBusyHour,
  planFrom,
  type PlanFacts,
  planRedrive,
  safeRate,
  staleness,
} from "../../../src/core/recovery/plan.ts";

const FACTS: PlanFacts = {
  count: 100,
  looked: 100,
  types: { charge: 100 },
  services: { stripe: 100 },
  tenants: 3,
  groups: 0,
  groupsRanOn: 0,
  superseded: {},
  firstDiedAt: 1,
  lastDiedAt: 2,
};
const FLEET: FleetFacts = { open: [], pauses: [], isServed: true, limits: [], completed: [], misfits: [] };
const OPTIONS = { id: "p_1", selection: { through: 5 }, superseded: false, patch: null, by: "ada", now: 1_000 };

function planned(facts: Partial<PlanFacts> = {}, fleet: Partial<FleetFacts> = {}, superseded = false) {
  return planRedrive({ ...FACTS, ...facts }, { ...FLEET, ...fleet }, { ...OPTIONS, superseded });
}

describe("a plan", () => {
  it("has counts, a rate, a duration and what the canary proves", () => {
    expect(planned()).toMatchObject({
      count: 100,
      toSend: 100,
      warnings: [],
      rate: 10,
      durationMs: 10_000,
      proves: [{ good: 5 }, { good: 50 }],
      expiresAt: 901_000,
      started: null,
    });
  });

  it("skips letters whose key a newer job has, unless asked", () => {
    const superseded = { completed: 31, queued: 6 };
    expect(planned({ superseded })).toMatchObject({
      toSend: 63,
      warnings: [
        { kind: "superseded", count: 37, text: "37 letters have a newer job under their key (31 completed): skipped" },
      ],
    });
    expect(planned({ superseded }, {}, true)).toMatchObject({ toSend: 100, warnings: [{ kind: "superseded" }] });
  });

  it("says of how many letters a warning is, where it has looked at a part of them", () => {
    const facts = { looked: 40, superseded: { queued: 1 }, groups: 3, groupsRanOn: 2 };
    expect(planned(facts)).toMatchObject({
      toSend: 99,
      warnings: [
        { text: "1 letter of the first 40 has a newer job under its key (0 completed): skipped" },
        { text: expect.stringMatching(/^2 of 3 groups of the first 40 letters: /) },
      ],
    });
  });

  it.each<[string, Partial<PlanFacts>, Partial<FleetFacts>]>([
    ["breaker", {}, { open: [{ service: "stripe", state: "open" }] }],
    ["paused", {}, { pauses: ["queue mail"] }],
    ["groups", { groups: 9, groupsRanOn: 4 }, {}],
    ["no_worker", {}, { isServed: false }],
    ["misfits", {}, { misfits: ["a", "b"] }],
  ])("warns of: %s", (kind, facts, fleet) => {
    expect(planned(facts, fleet).warnings.map((warning) => warning.kind)).toEqual([kind]);
  });

  it("does not send misfits", () => {
    expect(planned({}, { misfits: ["a", "b"] })).toMatchObject({ toSend: 98, misfits: ["a", "b"] });
  });

  it("is read from its text, and an invalid text is refused", () => {
    const plan = planned();
    expect(planFrom(JSON.stringify(plan))).toEqual(plan);
    for (const bad of ["", "{}", JSON.stringify({ ...plan, selection: {} })]) expect(planFrom(bad)).toBeNull();
  });
});

describe("a safe rate", () => {
  it.each([
    ["is half of the service's limit", [{ service: "s", perSecond: 40 }], [{ type: "t", perSecond: 3 }], 20],
    [
      "is half of the lowest limit",
      [
        { service: "s", perSecond: 40 },
        { service: "z", perSecond: 8 },
      ],
      [],
      4,
    ],
    ["may be less than one a second", [{ service: "s", perSecond: 0.5 }], [], 0.25],
    [
      "is what the slowest type completed in its last busy hour",
      [],
      [
        { type: "t", perSecond: 7.6 },
        { type: "u", perSecond: 30 },
      ],
      7,
    ],
    ["is at least one a second by that", [], [{ type: "t", perSecond: 0.01 }], 1],
    ["is 10 a second where nothing is known", [], [], 10],
  ])("%s", (_, limits, completed, rate) => {
    expect(safeRate({ limits, completed }).rate).toBe(rate);
  });

  it("takes the last hour that was about as busy as the busiest", () => {
    const hours = (...counts: number[]) => counts.map((completed) => ({ completed }));
    expect(lastBusyHour(hours(7_200, 36_000, 18_000, 100))).toBe(5);
    expect(lastBusyHour(hours(0, 0))).toBeNull();
    expect(lastBusyHour([])).toBeNull();
  });
});

describe("a plan is refused", () => {
  const plan = planned({}, { open: [{ service: "stripe", state: "open" }] });

  it.each<[string, { count?: number; come?: number; open?: string[] }, number, string | null]>([
    ["not when nothing has changed", {}, 1_000, null],
    ["not at 15 minutes", {}, 901_000, null],
    ["after 15 minutes", {}, 901_001, "it is 15m old, and good for 15m"],
    ["not when five letters have gone", { count: 95 }, 1_000, null],
    [
      "when six have",
      { count: 94 },
      1_000,
      "100 dead letters matched then; 6 of them are gone, and 0 others have come",
    ],
    [
      "when six have come",
      { come: 6 },
      1_000,
      "100 dead letters matched then; 0 of them are gone, and 6 others have come",
    ],
    ["not when others have come for two", { count: 98, come: 2 }, 1_000, null],
    [
      "when others have come for five",
      { count: 95, come: 1 },
      1_000,
      "100 dead letters matched then; 5 of them are gone, and 1 other has come",
    ],
    ["not for a breaker that was open then", { open: ["stripe"] }, 1_000, null],
    ["for one that has opened since", { open: ["stripe", "mailer"] }, 1_000, "the breaker of mailer has opened since"],
  ])("%s", (_, facts, now, why) => {
    expect(staleness(plan, { count: 100, come: 0, open: [], ...facts }, now)).toBe(why);
  });

  it("only beyond 5 % of many", () => {
    const many = planned({ count: 10_000 });
    expect(staleness(many, { count: 9_500, come: 0, open: [] }, 1_000)).toBeNull();
    expect(staleness(many, { count: 9_499, come: 0, open: [] }, 1_000)).not.toBeNull();
  });
});
