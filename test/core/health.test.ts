// How health is judged: the score of each trouble, the share of runs that failed, and the limits that users may set.
import { describe, expect, it } from "vitest";
import {
  endedRuns,
  HEALTH_LIMITS,
  type HealthFacts,
  type HealthOptions,
  judgeHealth,
  type MinuteCounts,
  resolveHealth,
} from "../../src/core/health.ts";

const NOW = 1_800_000_000_000;
const MINUTE = 60_000;
const IDLE: HealthFacts["upkeep"] = { toldMs: 1_000, unattended: [], failing: [], late: [] };
const WELL: HealthFacts = {
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
  upkeep: IDLE,
};
const runs = (completed: number, retried: number, dead: number): Pick<HealthFacts, "ended"> => ({
  ended: { minutes: 5, completed, retried, dead, badSince: null },
});
const schedule = (lateMs: number): Partial<HealthFacts> => ({ upkeep: { ...IDLE, late: [{ name: "s", lateMs }] } });

describe("the judgement", () => {
  it.each<[string, Partial<HealthFacts>, string, number]>([
    ["nothing wrong", {}, "healthy", 1],
    ["no worker and no work", { workers: 0 }, "healthy", 1],
    ["no worker, work due just now", { workers: 0, oldestDueMs: 500 }, "degraded", 0.7],
    ["no worker, work due for a minute", { workers: 0, oldestDueMs: 60_000 }, "unhealthy", 0.4],
    ["work due for less than a minute", { oldestDueMs: 59_999 }, "healthy", 1],
    ["work due for a minute", { oldestDueMs: 60_000 }, "degraded", 0.75],
    ["work due for five minutes", { oldestDueMs: 300_000 }, "degraded", 0.5],
    ["a backlog that is not late", { oldestDueMs: 10, backlog: 5_000 }, "healthy", 1],
    ["a late backlog at the limit", { oldestDueMs: 60_000, backlog: 1_000 }, "degraded", 0.75],
    ["a late backlog", { oldestDueMs: 60_000, backlog: 1_001 }, "degraded", 0.65],
    ["orphaned runs", { orphans: 3, orphansSince: NOW - 5 }, "degraded", 0.75],
    [
      "a sink of alerts that fails",
      { failingSinks: [{ name: "webhook a.example", since: NOW, error: "it answered 500" }] },
      "healthy",
      0.9,
    ],
    ["a service that is down", { breakers: [{ service: "pricing", since: NOW }] }, "degraded", 0.75],
    ["dead jobs kept longer than good ones", { jobs: { ...WELL.jobs, completed: 0, dead: 2 } }, "healthy", 1],
    ["2 deaths after 1,000 successes", runs(1_000, 0, 2), "healthy", 1],
    ["a tenth of the runs failing", runs(90, 5, 5), "healthy", 1],
    ["more than a tenth failing", runs(89, 6, 5), "degraded", 0.75],
    ["half of them failing", runs(50, 50, 0), "degraded", 0.75],
    ["most of them failing", runs(49, 51, 0), "unhealthy", 0.4],
    ["100 dead letters", { deadLetters: 100 }, "healthy", 1],
    ["101 dead letters", { deadLetters: 101 }, "degraded", 0.75],
    ["letters whose archive no worker opens", { unarchived: [{ type: "mail", count: 2 }] }, "healthy", 0.9],
    ["upkeep that no worker runs", { upkeep: { ...IDLE, unattended: ["a schedule"] } }, "degraded", 0.7],
    ["a schedule ten seconds late", schedule(10_000), "healthy", 0.9],
    ["a schedule a minute late", schedule(60_000), "degraded", 0.75],
    ["a schedule five minutes late", schedule(300_000), "degraded", 0.5],
    ["upkeep that fails", { upkeep: { ...IDLE, failing: ["retention: no room"] } }, "healthy", 0.9],
    [
      "everything at once",
      { ...runs(1, 0, 200), workers: 0, oldestDueMs: 1e6, orphans: 1, deadLetters: 200 },
      "unhealthy",
      0,
    ],
  ])("of %s", (_name, facts, status, score) => {
    const health = judgeHealth({ ...WELL, ...facts });
    expect(health).toMatchObject({ status, score });
    expect(health.reasons.length > 0).toBe(score < 1);
    for (const { text, help } of health.reasons) expect([text, help]).not.toContain("");
  });

  it("names the worst first, each with since, subject and the next command", () => {
    const breakers = [
      { service: "pricing", since: NOW - 9 },
      { service: "smtp", since: NOW - 3 },
    ];
    const late = { oldestDueMs: 400_000, waitingTypes: ["mail"] };
    expect(judgeHealth({ ...WELL, ...late, orphans: 1, orphansSince: NOW - 7, breakers }).reasons).toEqual([
      { text: "a job has been due for 6.7m", since: NOW - 400_000, subject: "type:mail", help: "redrive doctor" },
      {
        text: "1 run belongs to workers that do not respond",
        since: NOW - 7,
        subject: null,
        help: "redrive doctor",
      },
      {
        text: "the breakers of these services are not closed: pricing, smtp",
        since: NOW - 9,
        subject: "service:pricing",
        help: "redrive breakers list",
      },
    ]);
  });

  it("follows the limits of the user", () => {
    const limits = resolveHealth({ errorRate: 0.5, deadLetters: 1_000, backlog: 5, late: "10m" });
    const facts = { ...WELL, ...runs(60, 40, 0), deadLetters: 900, oldestDueMs: 300_000, backlog: 9 };
    expect(judgeHealth(facts, limits)).toMatchObject({ score: 1 });
    expect(judgeHealth({ ...facts, oldestDueMs: 600_000 }, limits)).toMatchObject({ score: 0.65 });
  });

  it("gives the share of jobs that completed, of those that ended", () => {
    expect(judgeHealth({ ...WELL, ...runs(30, 500, 10) }).successRate).toBe(0.75);
    expect(judgeHealth({ ...WELL, ...runs(0, 500, 0) }).successRate).toBeNull();
    expect(judgeHealth(WELL).successRate).toBeNull();
  });
});

describe("the runs that ended of late", () => {
  const minute = (ago: number, completed: number, retried = 0, dead = 0): MinuteCounts => ({
    at: NOW - (NOW % MINUTE) - ago * MINUTE,
    completed,
    retried,
    dead,
  });
  const at = (minutes: readonly MinuteCounts[]) => endedRuns(minutes, HEALTH_LIMITS.errorRate, NOW);

  it("are those of 5 minutes if 20 ended, else of 60, else unknown", () => {
    expect(at([minute(1, 20), minute(30, 100)])).toMatchObject({ minutes: 5, completed: 20 });
    expect(at([minute(1, 19), minute(30, 1)])).toMatchObject({ minutes: 60, completed: 20 });
    expect(at([minute(1, 19)])).toBeNull();
    expect(at([])).toBeNull();
  });

  it("are bad since the first minute of the last stretch of bad ones", () => {
    const minutes = [minute(9, 0, 9), minute(8, 100), minute(4, 0, 10), minute(2, 0), minute(1, 10, 10)];
    expect(at(minutes)).toMatchObject({ minutes: 5, retried: 20, badSince: minute(4, 0).at });
    expect(at([minute(1, 100, 1)])).toMatchObject({ badSince: null });
  });
});

describe("the limits", () => {
  it("have defaults", () => {
    expect(HEALTH_LIMITS).toEqual({
      errorRate: 0.1,
      deadLetters: 100,
      backlog: 1_000,
      lateMs: 60_000,
      drainsEveryMs: null,
    });
  });

  it.each<[unknown, RegExp]>([
    [{ errorRate: Number.NaN }, /^health\.errorRate: expected a number from 0 to 1; got NaN/],
    [{ errorRate: 1.1 }, /from 0 to 1; got 1\.1/],
    [{ errorRate: -0.1 }, /from 0 to 1; got -0\.1/],
    [{ deadLetters: -1 }, /^health\.deadLetters: expected a whole number from 0 to 1000000000; got -1/],
    [{ backlog: 0.5 }, /^health\.backlog: expected a whole number/],
    [{ late: "0s" }, /^health\.late: .* from 1s to 30d; got "0s"/],
    [{ late: Number.NaN }, /^health\.late/],
    [{ drains: { every: "31d" } }, /^health\.drains\.every: .* from 1s to 30d/],
    [{ drains: { often: "5m" } }, /^health\.drains: expected an object with every; got "often"/],
    [{ drains: {} }, /^health\.drains\.every/],
    [{ errors: 1 }, /with errorRate, deadLetters, backlog, late, drains; got "errors"; did you mean "errorRate"/],
    [5, /^health: expected an object/],
  ])("refuse %j with the legal names and range", (options, message) => {
    expect(() => resolveHealth(options as HealthOptions)).toThrow(message);
  });
});
