// How a queue is doing, judged from facts, and the facts as a store tells them.
import { describe, expect, it } from "vitest";
import { gatherHealth, type HealthFacts, judgeHealth } from "../../src/upkeep/health.ts";
import { inlineStore } from "../support/database-file.ts";
import { newJob } from "../support/new-job.ts";

const WELL: HealthFacts = {
  jobs: { queued: 0, running: 0, completed: 100, dead: 0, cancelled: 0 },
  workers: 2,
  orphans: 0,
  oldestDueMs: null,
  waitingTypes: [],
  paused: [],
  breakers: [],
  deadLetters: 0,
};

describe("the judgement", () => {
  const ended = (completed: number, dead: number) => ({ jobs: { ...WELL.jobs, completed, dead } });

  it.each<[string, Partial<HealthFacts>, string, number]>([
    ["nothing wrong", {}, "healthy", 1],
    ["no worker and no work", { workers: 0 }, "healthy", 1],
    ["no worker, work due just now", { workers: 0, oldestDueMs: 500 }, "degraded", 0.7],
    ["no worker, work due for a minute", { workers: 0, oldestDueMs: 60_000 }, "unhealthy", 0.4],
    ["work due for a minute", { oldestDueMs: 60_000 }, "degraded", 0.75],
    ["work due for five minutes", { oldestDueMs: 300_000 }, "degraded", 0.5],
    ["orphaned runs", { orphans: 3 }, "degraded", 0.75],
    ["a service that is down", { breakers: ["pricing"] }, "degraded", 0.75],
    ["a tenth failed", ended(90, 10), "healthy", 1],
    ["more than a tenth failed", ended(89, 11), "degraded", 0.75],
    ["most failed", ended(1, 2), "degraded", 0.6],
    ["100 dead letters", { deadLetters: 100 }, "healthy", 1],
    ["101 dead letters", { deadLetters: 101 }, "degraded", 0.75],
    [
      "everything at once",
      { ...ended(1, 200), workers: 0, oldestDueMs: 1e6, orphans: 1, deadLetters: 200 },
      "unhealthy",
      0,
    ],
  ])("of %s", (_name, facts, status, score) => {
    const health = judgeHealth({ ...WELL, ...facts });
    expect(health).toMatchObject({ status, score });
    expect(health.reasons.length > 0).toBe(score < 1);
  });

  it("names the worst first", () => {
    const { reasons } = judgeHealth({ ...WELL, oldestDueMs: 400_000, orphans: 1 });
    expect(reasons).toEqual(["a job has been due for 6.7m", "1 runs are in the hands of workers that do not answer"]);
  });
});

describe("the facts", () => {
  it("leave out what is paused, and count workers by their lease", async () => {
    const { store, clock } = await inlineStore();
    await store.enqueue([newJob({ type: "a" }), newJob({ type: "b" }), newJob({ type: "c", delayMs: 1_000_000 })]);
    await store.register({ id: "w", leaseMs: 30_000, pid: 1, host: "h", release: null });
    await store.pause({ kind: "type", name: "a" }, { forMs: null, reason: "" });
    clock.now += 10_000;
    expect(await gatherHealth(store)).toMatchObject({ workers: 1, oldestDueMs: 10_000, waitingTypes: [] });
    clock.now += 60_000;
    expect(await gatherHealth(store)).toMatchObject({
      jobs: { queued: 3 },
      workers: 0,
      oldestDueMs: 70_000,
      waitingTypes: ["b"],
      paused: ["type a"],
    });
  });
});
