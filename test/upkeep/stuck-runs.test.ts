// Runs that hang while their worker does nothing about it: found by the check, judged by core, fenced, and told to stop.
import { describe, expect, it } from "vitest";
import { PRESETS } from "../../src/core/policy.ts";
import { defineJob, type JobContext } from "../../src/jobs/define-job.ts";
import type { ClaimAnswer, ClaimedJob, Store } from "../../src/store/store.ts";
import { checkStuck, type StuckCheckOptions, stuckService } from "../../src/upkeep/stuck-runs.ts";
import { startUpkeep } from "../../src/upkeep/upkeep.ts";
import { openReporter, zeroCounts } from "../../src/report/reporter.ts";
import { withTypeLimits } from "../../src/worker/type-limits.ts";
import { leaseOf, signUp, start } from "../support/runs.ts";
import { complete, retry } from "../support/verdicts.ts";
import { around, type Bench, createBench, forever } from "../support/worker-bench.ts";

const HOUR = 3_600_000;
const LIMITS = { stuckMs: HOUR, stuckRetryMs: 4 * HOUR, maxAttempts: 5 };
const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

/** A check as every worker runs it, which knows no type. */
function checker(bench: Bench, store: Store = bench.store) {
  const counts = zeroCounts();
  const lines: string[] = [];
  const log = {
    ...silent,
    info: (_: object, line: string) => lines.push(line),
    warn: (_: object, line: string) => lines.push(line),
    error: (_: object, line: string) => lines.push(line),
  };
  const now = (): number => bench.world.now;
  const report = openReporter({ log, events: { emit: () => undefined }, counts, definitions: new Map(), now });
  const options: StuckCheckOptions = {
    store,
    system: { random: () => 0.5 },
    report,
    graceMs: 10_000,
    policyOf: () => PRESETS.default,
  };
  return { options, counts, lines, check: () => checkStuck(options) };
}

/** A worker that keeps its lease and never does anything about its runs. */
async function idler(bench: Bench): Promise<string> {
  return signUp(bench.store, 86_400_000);
}

/** The store of a worker that does not see the limits of what it runs. */
function blind(store: Store): Store {
  return around(store, async (verb, next) => {
    const answer = await next();
    if (verb !== "claim") return answer;
    const { jobs, ...rest } = answer as ClaimAnswer;
    return { ...rest, jobs: jobs.map((job) => ({ ...job, stuckMs: null })) };
  });
}

describe.each(["memory", "sqlite"] as const)("a run over its limit (%s)", (kind) => {
  it("is left to its worker for the grace, then retried later, in the words people know", async () => {
    const bench = createBench(1, kind);
    const run = await start(bench.store, LIMITS, await idler(bench));
    const { check, counts, lines } = checker(bench);
    await bench.store.settle({ settlements: [], worker: run.worker as string, startedThrough: 1 });
    await bench.advance(HOUR + 9_999);
    expect(await check()).toBe(0);
    await bench.advance(1);
    expect(await check()).toBe(1);
    expect(await bench.read(run.id)).toMatchObject({
      state: "queued",
      attempts: 1,
      runAt: bench.world.now + 4 * HOUR,
      failure: { class: "stuck", message: "Run stuck for 1.0h - retry 1/4 scheduled" },
    });
    expect(counts.retried).toBe(1);
    expect(lines).toEqual([
      "RunStuck: Run stuck for 1.0h - retry 1/4 scheduled (attempt 1/5), requeueing for attempt 2 in 4h",
    ]);
    for (const verdict of [complete(), retry(), { kind: "progress", value: "1" } as const]) {
      const { stale } = await bench.store.settle({ settlements: [{ ...leaseOf(run), verdict }] });
      expect(stale).toHaveLength(1);
    }
  });

  it("dies when its retries are used up", async () => {
    const bench = createBench(1, kind);
    const run = await start(bench.store, { ...LIMITS, stuckLimit: 0 }, await idler(bench));
    await bench.store.settle({ settlements: [], worker: run.worker as string, startedThrough: 1 });
    const { check, lines } = checker(bench);
    await bench.advance(1.1 * HOUR);
    expect(await check()).toBe(1);
    expect((await bench.store.deadLetters({ limit: 5 })).items).toMatchObject([
      { reason: "stuck", failure: { message: "Run stuck for 1.1h - permanently failed after 0 attempts" } },
    ]);
    expect(lines.at(-1)).toContain("moved to the dead letter queue");
  });

  it("goes back uncharged where it had not started", async () => {
    const bench = createBench(1, kind);
    const run = await start(bench.store, LIMITS, await idler(bench));
    await bench.advance(2 * HOUR);
    expect(await checker(bench).check()).toBe(1);
    expect(await bench.read(run.id)).toMatchObject({ state: "queued", attempts: 0, releases: 1, failure: null });
  });

  it("is cancelled where somebody asked for that", async () => {
    const bench = createBench(1, kind);
    const run = await start(bench.store, LIMITS, await idler(bench));
    await bench.store.cancel([run.id]);
    await bench.advance(2 * HOUR);
    await checker(bench).check();
    expect(await bench.read(run.id)).toMatchObject({ state: "cancelled", attempts: 0 });
  });

  it("is judged once, however many look", async () => {
    const bench = createBench(1, kind);
    const worker = await idler(bench);
    for (let n = 0; n < 250; n++) await start(bench.store, { ...LIMITS, type: "many" }, worker);
    await bench.store.settle({ settlements: [], worker, startedThrough: 1 });
    await bench.advance(2 * HOUR);
    const checks = [checker(bench), checker(bench), checker(bench)];
    const settled = await Promise.all(checks.map(({ check }) => check()));
    expect(settled.reduce((sum, each) => sum + each, 0)).toBe(250);
    expect(await bench.store.count()).toMatchObject({ running: 0, queued: 250 });
    expect((await bench.store.list({ limit: 200 })).items.every(({ attempts }) => attempts === 1)).toBe(true);
  });

  it("counts pauses out of its deadline", async () => {
    const bench = createBench(1, kind);
    const deadline = { ...LIMITS, stuckRetryMs: 0, deadlineMs: 2 * HOUR };
    const worker = await idler(bench);
    const [held, late] = [
      await start(bench.store, { ...deadline, tenant: "t" }, worker),
      await start(bench.store, deadline, worker),
    ];
    await bench.store.settle({ settlements: [], worker, startedThrough: 1 });
    await bench.store.pause({ kind: "tenant", name: "t" }, { forMs: 2 * HOUR, reason: "" });
    await bench.advance(3 * HOUR);
    await checker(bench).check();
    expect(await bench.read(held.id)).toMatchObject({ state: "queued", attempts: 1 });
    expect(await bench.read(late.id)).toMatchObject({ state: "dead" });
  });

  it("of a job enqueued by name goes by what its type says", async () => {
    const bench = createBench(1, kind);
    const kindly = defineJob("kindly", { stuck: { after: "1h", retryAfter: "2h", limit: 1 }, run: forever });
    const never = defineJob("never", { stuck: null, run: forever });
    const worker = await idler(bench);
    const run = await start(bench.store, { type: "kindly", limited: false }, worker);
    const left = await start(bench.store, { type: "never", limited: false, stuckMs: 1 }, worker);
    await bench.store.settle({ settlements: [], worker, startedThrough: 1 });
    await bench.advance(2 * HOUR);
    expect(await checker(bench, withTypeLimits(bench.store, [kindly, never])).check()).toBe(1);
    expect(await bench.read(run.id)).toMatchObject({
      runAt: bench.world.now + 2 * HOUR,
      failure: { message: "Run stuck for 2.0h - retry 1/1 scheduled" },
    });
    expect(await bench.read(left.id)).toMatchObject({ state: "running" });
  });

  it("of a job enqueued by name goes by what the worker says that runs it, where nobody here knows the type", async () => {
    const bench = createBench(1, kind);
    const says = async (stuckMs: number | null, more: object = {}): Promise<string> => {
      const worker = await idler(bench);
      const types = [{ type: "scrape", queue: "default", concurrency: null, limits: { stuckMs, ...more } }, null];
      const value = JSON.stringify({ types, queues: null, concurrency: 1 });
      await bench.store.setCells([{ kind: "load", name: "", holder: worker, version: null, value }]);
      return worker;
    };
    const workers = [
      await says(HOUR, { stuckRetryMs: 3 * HOUR, stuckLimit: 2 }),
      await says(5 * HOUR),
      await says(null),
      await idler(bench),
    ];
    const runs: ClaimedJob[] = [];
    for (const worker of workers)
      runs.push(await start(bench.store, { type: "scrape", limited: false, stuckMs: null }, worker));
    for (const worker of workers) await bench.store.settle({ settlements: [], worker, startedThrough: 1 });
    await bench.advance(2 * HOUR);
    const { check } = checker(bench, withTypeLimits(bench.store, []));
    const states = async () => Promise.all(runs.map(async ({ id }) => (await bench.read(id)).state));
    expect(await check()).toBe(2);
    // The last one's worker says nothing, so that the word of any other counts.
    expect(await states()).toEqual(["queued", "running", "running", "queued"]);
    expect(await bench.read(runs[0]?.id as string)).toMatchObject({
      runAt: bench.world.now + 3 * HOUR,
      failure: { message: "Run stuck for 2.0h - retry 1/2 scheduled" },
    });
    await bench.advance(4 * HOUR);
    expect(await check()).toBe(1);
    expect(await states()).toEqual(["queued", "queued", "running", "queued"]);
  });
});

describe("a run that was taken from its worker", () => {
  it("is told to stop with the next beats, and what it says is refused and counted", async () => {
    const bench = createBench();
    const reasons: string[] = [];
    const said: unknown[] = [];
    const deaf = defineJob("thumbnail", {
      stuck: { after: "1m", retryAfter: "1h" },
      run: async (_input, { signal, progress }: JobContext) => {
        signal.addEventListener("abort", () => reasons.push(String(signal.reason)));
        await bench.sleep(86_000);
        await progress(1).catch((error: unknown) => said.push(error));
        return "late";
      },
    });
    const id = await bench.add(deaf);
    const beside = defineJob("beside", { run: () => bench.sleep(100_000) });
    const other = await bench.add(beside);
    const owner = await bench.employ([deaf, beside], { through: blind(bench.store), abortGrace: "1h" });
    const { options, counts } = checker(bench);
    const upkeep = startUpkeep([stuckService(options)], {
      system: owner.actor.system,
      log: silent,
      records: { note: () => undefined, end: () => Promise.resolve() },
      contact: owner.worker.contact,
    });
    await bench.until(() => counts.retried === 1, 90_000);
    expect(await bench.until(() => reasons.length === 1)).toBeLessThanOrEqual(5_000);
    expect(reasons).toEqual([
      "AbortError: The lease was lost: another process ended this run, and its job may run elsewhere by now.",
    ]);
    await bench.until(() => owner.worker.counts.stale === 1);
    expect(said).toMatchObject([{ code: "lease_lost" }]);
    expect(owner.heard("job.stale")).toMatchObject([{ job: { id }, verdict: { kind: "complete" } }]);
    expect(await bench.read(id)).toMatchObject({ state: "queued", attempts: 1, epoch: 1, result: null });
    // Whoever shares the process with it is not harmed.
    await bench.until(() => owner.worker.counts.completed === 1);
    expect(await bench.read(other)).toMatchObject({ state: "completed", attempts: 0, crashes: 0 });
    await bench.finish(upkeep.stop());
  });

  it("costs a question only where a run is older than two beats", async () => {
    const bench = createBench();
    let asked = 0;
    const counting = around(bench.store, (verb, next) => {
      if (verb === "held") asked += 1;
      return next();
    });
    const brief = defineJob("brief", { run: () => bench.sleep(1_500) });
    await bench.addMany(50, brief);
    const { worker } = await bench.employ([brief], { through: counting, heartbeat: "1s", concurrency: 5 });
    await bench.until(() => worker.counts.completed === 50);
    expect(asked).toBe(0);
    const long = defineJob("long", { run: () => bench.sleep(10_000) });
    await bench.add(long);
    await bench.employ([long], { through: counting, heartbeat: "1s" });
    await bench.advance(11_000);
    expect(asked).toBeGreaterThanOrEqual(7);
    expect(asked).toBeLessThanOrEqual(9);
  });
});

describe("the check beside a worker that is alone and holds nothing", () => {
  it("asks the store at one step of twelve, and at the next one as soon as something runs", async () => {
    let [asked, isNothing] = [0, true];
    const bench = createBench();
    const counting = around(bench.store, (verb, next) => {
      if (verb === "overdue") asked += 1;
      return next();
    });
    const { options } = checker(bench, counting);
    const { step } = stuckService({ ...options, nothingRuns: () => isNothing });
    const { signal } = new AbortController();
    for (let steps = 0; steps < 24; steps++) expect(await step(signal)).toBe(10_000);
    expect(asked).toBe(2);
    isNothing = false;
    await step(signal);
    expect(asked).toBe(3);
  });
});
