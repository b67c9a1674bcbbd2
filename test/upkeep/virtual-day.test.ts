// A day of runs of which some hang and some take their worker along: every message, count and link as people know them,
// nothing runs more than five times, and everything ends.
import { describe, expect, it } from "vitest";
import { PRESETS } from "../../src/core/policy.ts";
import { type RunRecord, runsOf } from "../../src/core/run-record.ts";
import { defineJob, type JobContext, type JobDefinition } from "../../src/queue/define-job.ts";
import type { ClaimAnswer, Store } from "../../src/store/store.ts";
import { stuckService } from "../../src/upkeep/stuck-runs.ts";
import { startUpkeep } from "../../src/upkeep/upkeep.ts";
import { openReporter, zeroCounts } from "../../src/worker/report.ts";
import { around, type Bench, createBench, type Hired } from "../support/worker-bench.ts";

const SILENT = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

/** How the day goes. */
interface Day {
  readonly bench: Bench;
  readonly jobs: number;
  readonly workers: number;
  /** How long an hour takes. */
  readonly hourMs: number;
  /** How long the fleet works at a time; five hours for always. */
  readonly shiftMs: number;
}

/** What a job is to do: hang so many times, kill its worker once, or just work. */
interface Plan {
  readonly hangs: number;
  readonly kills: boolean;
}

/** Of every hundred, ten hang (one to five times) and five kill. */
function planOf(n: number): Plan {
  const place = n % 100;
  return { hangs: place < 10 ? (place % 5) + 1 : 0, kills: place >= 10 && place < 15 };
}

/** A worker that does not see the limits of its runs, as one whose event loop is blocked. */
function blind(store: Store): Store {
  return around(store, async (verb, next) => {
    const answer = await next();
    if (verb !== "claim") return answer;
    const { jobs, ...rest } = answer as ClaimAnswer;
    return { ...rest, jobs: jobs.map((job) => ({ ...job, stuckMs: null })) };
  });
}

/** Plays the day; answers the runs of each job and how often each handler was called. */
async function play({ bench, jobs, workers, hourMs, shiftMs }: Day) {
  const calls = new Map<string, number>();
  const staff: Hired[] = [];
  const crew = new Set<{ readonly hired: Hired; readonly stop: () => Promise<unknown> }>();
  const definitionFor = (kill: () => void): JobDefinition =>
    defineJob("scrape", {
      preset: "runs",
      stuck: { after: hourMs, retryAfter: 4 * hourMs },
      run: async (input, context: JobContext) => {
        const { id } = context.job;
        const { hangs, kills } = planOf(input as number);
        const call = (calls.get(id) ?? 0) + 1;
        calls.set(id, call);
        if (kills && call === 1) return kill();
        // Every other one does not listen, and comes back to life when its job is somebody else's.
        const isDeaf = (input as number) % 2 === 0;
        if (call <= hangs) await bench.sleep(hourMs + 60_000, isDeaf ? undefined : context.signal);
        if (context.signal.aborted && !isDeaf) throw context.signal.reason;
        await bench.sleep(hourMs / 60);
        return id;
      },
    });
  const hire = async (n: number): Promise<void> => {
    const definition = definitionFor(() => {
      hired.actor.crash();
      bench.world.later(1_000, () => void hire(n));
    });
    // Killers have a worker of their own, so that nobody else is charged for them and every count is known.
    const served =
      n === workers - 1 ? { concurrency: 1, queues: ["killers"] } : { concurrency: 50, queues: ["default"] };
    const hiring = { ...served, poll: "1m", ...(n === 0 && { through: blind(bench.store) }) } as const;
    const hired = bench.hire([definition], hiring);
    staff.push(hired);
    const { system } = hired.actor;
    const report = openReporter({
      log: SILENT,
      events: { emit: () => undefined },
      counts: zeroCounts(),
      definitions: new Map(),
      now: system.now,
    });
    const check = { store: bench.store, system, report, graceMs: 10_000, policyOf: () => PRESETS.default };
    const upkeep = startUpkeep([stuckService(check)], {
      system,
      log: SILENT,
      records: { note: () => undefined, end: async () => undefined },
    });
    crew.add({ stop: () => Promise.all([hired.worker.stop({ withinMs: 0 }), upkeep.stop()]), hired });
    await hired.worker.start();
  };
  for (let n = 0; n < jobs; n++)
    await bench.add(
      definitionFor(() => undefined),
      { payload: String(n) },
    );
  // Nothing is due in between: a fleet that is off duty until then costs a test nothing.
  for (let shift = 0; shift < 5; shift++) {
    for (let n = 0; n < workers; n++) await bench.finish(hire(n));
    await bench.advance(shiftMs);
    for (const { stop, hired } of crew) if (hired.actor.alive) await bench.finish(stop());
    crew.clear();
    await bench.advance(5 * hourMs - shiftMs);
  }
  const lives: { readonly n: number; readonly runs: readonly RunRecord[]; readonly calls: number }[] = [];
  for (let cursor: string | null = null; ; ) {
    const page = await bench.store.list({ limit: 200, cursor });
    for (const job of page.items) {
      const runs = runsOf(job, await bench.store.history(job.id));
      lives.push({ n: Number(job.payload), runs, calls: calls.get(job.id) ?? 0 });
    }
    cursor = page.next;
    if (cursor === null) break;
  }
  return { lives, staff };
}

const STUCK = /^Run stuck for (\d+\.\d)h - (?:retry (\d)\/4 scheduled|permanently failed after 4 attempts)$/;

/** Everything that must be true of one job after the day. */
function check(n: number, runs: readonly RunRecord[], calls: number, hourMs: number): void {
  const plan = planOf(n);
  const last = runs.at(-1) as RunRecord;
  expect(runs.length, `runs of ${n}`).toBeLessThanOrEqual(5);
  expect(calls).toBeLessThanOrEqual(5);
  expect(["completed", "failed"]).toContain(last.status);
  runs.forEach((run, at) => {
    const number = at + 1;
    expect(run).toMatchObject({ retryCount: at, maxRetries: 4, isRetry: at > 0, generation: 1 });
    expect(run.originalRunId).toBe(at === 0 ? null : runs[0]?.id);
    expect(run.label).toBe(at === 0 ? null : `[RETRY ${at}/4]`);
    if (run.status !== "failed") return;
    const [, hours, retry] = STUCK.exec(run.errorMessage ?? "") ?? [];
    if (hours === undefined)
      return expect(run.errorMessage).toMatch(/^Worker \S+ died while this job was running - crash \d\/3$/);
    const ranMs = (run.completedAt ?? 0) - (run.startedAt ?? 0);
    expect(ranMs).toBeGreaterThanOrEqual(hourMs);
    expect(ranMs).toBeLessThanOrEqual(hourMs + 21_000);
    expect(hours).toBe((ranMs / 3_600_000).toFixed(1));
    expect(retry).toBe(number <= 4 ? String(number) : undefined);
    expect(run.nextRetryAt).toBe(number <= 4 ? (run.completedAt ?? 0) + 4 * hourMs : null);
    const next = runs[at + 1];
    // It runs when it is due, not before, and not a poll later.
    if (next) expect((next.startedAt ?? 0) - (run.nextRetryAt ?? 0)).toBeGreaterThanOrEqual(0);
    if (next) expect((next.startedAt ?? 0) - (run.nextRetryAt ?? 0)).toBeLessThanOrEqual(65_000);
  });
  const crashes = runs.filter(({ errorMessage }) => errorMessage?.startsWith("Worker")).length;
  const stuck = runs.filter(({ errorMessage, status }) => status === "failed" && STUCK.test(errorMessage ?? "")).length;
  if (plan.hangs === 0) expect([n, last.status, stuck]).toEqual([n, "completed", 0]);
  else if (crashes === 0) {
    expect([n, stuck]).toEqual([n, plan.hangs]);
    expect(last.status).toBe(plan.hangs === 5 ? "failed" : "completed");
    expect(calls).toBe(Math.min(5, plan.hangs + 1));
  }
}

async function live(day: Day): Promise<void> {
  const { lives, staff } = await play(day);
  expect(lives).toHaveLength(day.jobs);
  expect(await day.bench.store.count()).toMatchObject({ queued: 0, running: 0, cancelled: 0 });
  for (const { n, runs, calls } of lives) check(n, runs, calls, day.hourMs);
  const given = lives.filter(({ runs }) => runs.at(-1)?.errorMessage?.includes("permanently failed after 4 attempts"));
  expect(given.length).toBeGreaterThanOrEqual(day.jobs / 100);
  // What came back to life was refused, and counted.
  const stale = staff.reduce((sum, { worker }) => sum + worker.counts.stale, 0);
  expect(stale).toBeGreaterThan(0);
  expect(staff.length).toBeGreaterThan(day.workers);
}

describe("a virtual day", () => {
  it.each(["memory", "sqlite"] as const)("of 100 runs ends as it should on %s", { timeout: 240_000 }, async (kind) => {
    await live({ bench: createBench(7, kind), jobs: 100, workers: 3, hourMs: 3_600_000, shiftMs: 80 * 60_000 });
  });
});
