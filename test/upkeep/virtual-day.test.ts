// A day of runs of which some hang and some take their worker along: every message, count and link as people know them,
// nothing runs more than five times, and everything ends.
import { describe, expect, it } from "vitest";
import type { RunRecord } from "../../src/core/run-record.ts";
import { GENESIS } from "../simulation/world.ts";
import { openBench, SCENE_STORES } from "../support/virtual-bench.ts";
import type { Bench } from "../support/worker-bench.ts";
import { HOUR, type Life, planOf, playDay } from "./virtual-day.ts";

const JOBS = 500;
const STUCK = /^Run stuck for (\d+\.\d)h - (?:retry (\d)\/4 scheduled|permanently failed after 4 attempts)$/;
const CRASHED = /^Worker \S+ died while this job was running - crash 1\/3$/;

/** Everything that must be true of a run that failed, and of the one after it. */
function checkFailed(run: RunRecord, number: number, next: RunRecord | undefined): void {
  const ranMs = (run.completedAt ?? 0) - (run.startedAt ?? 0);
  const [, hours, retry] = STUCK.exec(run.errorMessage ?? "") ?? [];
  if (hours === undefined) {
    expect(run.errorMessage).toMatch(CRASHED);
    // A lease, and until the next look.
    expect(ranMs).toBeLessThanOrEqual(50_000);
    return;
  }
  expect(ranMs).toBeGreaterThanOrEqual(HOUR);
  expect(ranMs).toBeLessThanOrEqual(HOUR + 21_000);
  expect(hours).toBe((ranMs / HOUR).toFixed(1));
  expect(retry).toBe(number <= 4 ? String(number) : undefined);
  expect(run.nextRetryAt).toBe(number <= 4 ? (run.completedAt ?? 0) + 4 * HOUR : null);
  if (!next) return;
  // It runs when it is due, not before, and not a poll later.
  const lateMs = (next.startedAt ?? 0) - (run.nextRetryAt ?? 0);
  expect(lateMs).toBeGreaterThanOrEqual(0);
  expect(lateMs).toBeLessThanOrEqual(21_000);
}

/** Everything that must be true of one job after the day. */
function check({ n, runs, calls }: Life): void {
  const { hangs, kills } = planOf(n);
  runs.forEach((run, at) => {
    expect(run).toMatchObject({ retryCount: at, maxRetries: 4, isRetry: at > 0, generation: 1 });
    expect(run.originalRunId).toBe(at === 0 ? null : runs[0]?.id);
    expect(run.label).toBe(at === 0 ? null : `[RETRY ${at}/4]`);
    if (run.status === "failed") checkFailed(run, at + 1, runs[at + 1]);
  });
  const stuck = runs.filter(({ errorMessage, status }) => status === "failed" && STUCK.test(errorMessage ?? ""));
  const crashed = runs.filter(({ errorMessage, status }) => status === "failed" && CRASHED.test(errorMessage ?? ""));
  expect([n, stuck.length, crashed.length]).toEqual([n, hangs, kills ? 1 : 0]);
  expect([n, runs.at(-1)?.status]).toEqual([n, hangs === 5 ? "failed" : "completed"]);
  const tries = Math.min(5, hangs + 1 + (kills ? 1 : 0));
  expect([n, runs.length, calls]).toEqual([n, tries, tries]);
}

/** Everything that must be true of a job whose first run was stuck, while its retry waits. */
function checkWaiting([first, retry, ...more]: readonly RunRecord[]): void {
  expect(more).toEqual([]);
  expect(first).toMatchObject({ status: "failed", errorMessage: "Run stuck for 1.0h - retry 1/4 scheduled" });
  expect(retry).toMatchObject({
    status: "pending_retry",
    isRetry: true,
    retryCount: 1,
    maxRetries: 4,
    startedAt: null,
  });
  expect(retry).toMatchObject({ originalRunId: first?.id, nextRetryAt: first?.nextRetryAt, label: "[RETRY 1/4]" });
}

async function live(bench: Bench): Promise<void> {
  const { lives, waiting, staff, returned } = await playDay(bench, JOBS);
  expect(new Set(lives.map(({ n }) => n)).size).toBe(JOBS);
  expect(lives).toHaveLength(JOBS);
  for (const life of lives) check(life);
  expect(waiting).toHaveLength(JOBS / 10);
  for (const { runs } of waiting) checkWaiting(runs);
  const dead = lives.filter(({ runs }) => runs.at(-1)?.errorMessage?.includes("permanently failed after 4 attempts"));
  expect(dead).toHaveLength(JOBS / 50);
  expect(await bench.store.count()).toMatchObject({ queued: 0, running: 0, cancelled: 0, dead: dead.length });
  const killers = lives.filter(({ n }) => planOf(n).kills).length;
  expect([killers, staff.length]).toEqual([JOBS / 20, 3 + killers]);
  expect(Math.max(...lives.map(({ runs }) => runs.at(-1)?.completedAt ?? Infinity)) - GENESIS).toBeLessThan(24 * HOUR);
  // Whoever came back to life with a result was refused, and counted.
  const refused = staff.flatMap(({ heard }) => heard("job.stale"));
  expect(refused.filter((event) => "verdict" in event && event.verdict.kind === "complete")).toHaveLength(returned);
  expect(returned).toBeGreaterThan(0);
  expect(staff.reduce((sum, { worker }) => sum + worker.counts.stale, 0)).toBe(refused.length);
}

describe(`a virtual day of ${JOBS} runs`, { timeout: 120_000 }, () => {
  it.each(SCENE_STORES)("ends as it should on %s", async (kind) => live(await openBench(7, kind)));
});
