// The alert rules: which settings are legal, and for which facts and subjects each rule holds.
import { describe, expect, it } from "vitest";
import {
  ALERT_RULES,
  type AlertFacts,
  type AlertRule,
  conditionsIn,
  resolveRules,
} from "../../../src/core/alerting/rules.ts";
import { type HealthFacts, resolveHealth } from "../../../src/core/health.ts";

const NOW = 1_800_000_000_000;
const MINUTE = 60_000;
const HEALTH: HealthFacts = {
  now: NOW,
  type: null,
  jobs: { queued: 0, running: 0, completed: 100, dead: 0, cancelled: 0 },
  workers: 2,
  orphans: 0,
  orphansSince: null,
  oldestDueMs: null,
  waitingTypes: [],
  backlog: 0,
  paused: [],
  breakers: [],
  deadLetters: 0,
  deadLettersSince: null,
  unarchived: [],
  failingSinks: [],
  ended: null,
  upkeep: { toldMs: 1_000, unattended: [], failing: [], late: [] },
};
const WELL: AlertFacts = {
  health: HEALTH,
  score: 1,
  newCauses: [],
  backCauses: [],
  objectives: [],
  unserved: [],
  staleWrites: 0,
};
const health = (facts: Partial<HealthFacts>): Partial<AlertFacts> => ({ health: { ...HEALTH, ...facts } });
const ended = (failed: number) =>
  health({ ended: { minutes: 5, completed: 100 - failed, retried: failed, dead: 0, badSince: NOW - MINUTE } });
const cause = { fingerprint: "f1", name: "Error", message: "gone", live: 2, since: NOW - 5_000 };
const RULES = resolveRules({});

const holding = (facts: Partial<AlertFacts>, rules = RULES) => conditionsIn({ ...WELL, ...facts }, rules);

describe("a rule", () => {
  it.each<[AlertRule, string, Partial<AlertFacts>, string | null, number | null]>([
    ["errorRate", "11 of 100 runs fail", ended(11), null, NOW - MINUTE],
    ["score", "below a half", { score: 0.49 }, null, null],
    ["deadLetters", "101", health({ deadLetters: 101, deadLettersSince: NOW - 9 }), null, NOW - 9],
    ["backlog", "1,001 and late", health({ backlog: 1_001, oldestDueMs: 90_000 }), null, NOW - 90_000],
    ["newCause", "a first letter", { newCauses: [cause] }, "cause:f1", NOW - 5_000],
    ["causeBack", "a fix that did not hold", { backCauses: [cause] }, "cause:f1", NOW - 5_000],
    [
      "letterAge",
      "older than its objective",
      { objectives: [{ type: "mail", objectiveMs: MINUTE, oldestAt: NOW - MINUTE - 1 }] },
      "type:mail",
      NOW - 1,
    ],
    ["breakerOpen", "not closed", health({ breakers: [{ service: "api", since: 7 }] }), "service:api", 7],
    ["noWorker", "no worker at all", health({ workers: 0, oldestDueMs: 5 }), null, NOW - 5],
    ["noWorker", "none for a type", { unserved: [{ type: "mail", since: 8 }] }, "type:mail", 8],
    [
      "scheduleLate",
      "late",
      health({ upkeep: { ...HEALTH.upkeep, late: [{ name: "nightly", lateMs: 70_000 }] } }),
      "schedule:nightly",
      NOW - 70_000,
    ],
    ["staleWrites", "one", { staleWrites: 1 }, null, null],
  ])("%s holds for %s", (rule, _case, facts, subject, since) => {
    expect(holding(facts).filter((each) => each.rule === rule)).toMatchObject([{ rule, subject, since }]);
    expect(holding(facts, resolveRules({ [rule]: false })).filter((each) => each.rule === rule)).toEqual([]);
  });

  it("does not hold at its limit, nor for facts that say nothing", () => {
    expect(holding({})).toEqual([]);
    expect(holding({ ...ended(10), score: 0.5, staleWrites: 0 })).toEqual([]);
    expect(holding(health({ deadLetters: 100, backlog: 1_000, oldestDueMs: 90_000 }))).toEqual([]);
    expect(holding(health({ backlog: 5_000, oldestDueMs: null }))).toEqual([]);
    expect(holding({ objectives: [{ type: "mail", objectiveMs: MINUTE, oldestAt: NOW - MINUTE }] })).toEqual([]);
  });

  it("names ten subjects, the oldest first, and counts the others", () => {
    const breakers = Array.from({ length: 13 }, (_, n) => ({ service: `s${n}`, since: n }));
    const found = holding(health({ breakers: breakers.toReversed() }));
    expect(found.map(({ subject }) => subject)).toEqual([
      ...breakers.slice(0, 10).map(({ service }) => `service:${service}`),
      null,
    ]);
    expect(found.at(-1)).toMatchObject({
      value: 3,
      text: "3 more, the first of them: the breaker of s10 is not closed",
    });
  });
});

describe("settings of rules", () => {
  it("begin with the limits of health, and with the table", () => {
    const own = resolveRules({ errorRate: { for: "10m" } }, resolveHealth({ errorRate: 0.3, deadLetters: 7 }));
    expect([...own.keys()]).toEqual(ALERT_RULES);
    expect(own.get("errorRate")).toEqual({ limit: 0.3, forMs: 600_000, repeatMs: 14_400_000, severity: "error" });
    expect([own.get("deadLetters")?.limit, own.get("score")?.limit, own.get("newCause")?.limit]).toEqual([
      7,
      0.5,
      null,
    ]);
    expect(resolveRules({ newCause: { repeat: "never", severity: "info" } }).get("newCause")).toMatchObject({
      repeatMs: null,
      severity: "info",
    });
  });

  it.each<[string, object, string]>([
    ["an unknown rule", { errorrate: {} }, 'did you mean "errorRate"?'],
    ["every rule is named", { x: {} }, "errorRate, score, deadLetters, backlog, newCause"],
    [
      "NaN",
      { errorRate: { limit: Number.NaN } },
      "alerts.rules.errorRate.limit: expected a number from 0 to 1; got NaN",
    ],
    ["a negative limit", { deadLetters: { limit: -1 } }, "a whole number from 0 to 1000000000; got -1"],
    [
      "a share over its range",
      { score: { limit: 50 } },
      "alerts.rules.score.limit: expected a number from 0 to 1; got 50",
    ],
    ["a fraction of a letter", { deadLetters: { limit: 0.5 } }, "a whole number"],
    ["an unknown severity", { score: { severity: "fatal" } }, 'expected info, warning, error, critical; got "fatal"'],
    ["a limit of a rule without one", { breakerOpen: { limit: 1 } }, "an object with for, repeat, severity"],
    ["a repeat that is too short", { score: { repeat: "1s" } }, "from 1m to 30d"],
    ["a number without a unit", { score: { for: "5" } }, 'add a unit, e.g. "5s"'],
    ["true", { score: true }, "alerts.rules.score: expected an object"],
  ])("refuse %s, with the legal names and range", (_case, rules, message) => {
    expect(() => resolveRules(rules)).toThrow(message);
  });
});
