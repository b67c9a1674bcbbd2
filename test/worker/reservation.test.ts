// Jobs with their last crash left in workers that have no child process for them: one worker at a time stops taking other
// work for them, for a bounded time, and the rest of the fleet goes on.
import { describe, expect, it } from "vitest";
import { queueFindings } from "../../src/cli/doctor-queue.ts";
import { defineJob, type JobDefinition } from "../../src/jobs/define-job.ts";
import { suspects } from "../support/suspects.ts";
import { type Bench, createBench, type Hired } from "../support/worker-bench.ts";

const MIN = 60_000;

/** A fleet whose workers note what runs in them. */
function fleet(bench: Bench, types: Readonly<Record<string, number>>) {
  /** Runs by worker, and for each job with its last crash left: when it began, where, and beside how many. */
  const running = new Map<string, number>();
  const last: { readonly at: number; readonly worker: string; beside: number; lasts: number }[] = [];
  let lasts = 0;
  const job = (type: string, ms: number): JobDefinition =>
    defineJob(type, {
      run: async (_input, { job: { worker, crashes, maxCrashes } }) => {
        const here = String(worker);
        const isLast = crashes >= maxCrashes - 1;
        const beside = running.get(here) ?? 0;
        if (isLast) last.push({ at: bench.world.now, worker: here, beside, lasts });
        if (isLast) lasts += 1;
        running.set(here, beside + 1);
        await bench.sleep(ms);
        running.set(here, (running.get(here) ?? 0) - 1);
        if (isLast) lasts -= 1;
      },
    });
  const { long = 0, ...others } = types;
  const jobs = Object.entries(others).map(([type, ms]) => job(type, ms));
  let staffed = 0;
  /** So many workers, each with so many long runs of its own. */
  const employ = async (count: number, longRuns = 0, concurrency = 10): Promise<Hired[]> => {
    const staff: Hired[] = [];
    for (let n = 0; n < count; n++) {
      const own = job(`long-${++staffed}`, long);
      await bench.addMany(longRuns, own);
      const hired = await bench.employ([...jobs, own], { concurrency });
      await bench.until(() => hired.worker.counts.claimed >= longRuns);
      staff.push(hired);
    }
    return staff;
  };
  const completed = (staff: readonly Hired[]): number =>
    staff.reduce((sum, { worker }) => sum + worker.counts.completed, 0);
  return { employ, last, completed };
}

describe("while a job with its last crash left waits", () => {
  it.each(["memory", "sqlite"] as const)("short jobs do not wait behind long runs, on %s", async (kind) => {
    const bench = createBench(1, kind);
    const { employ, last, completed } = fleet(bench, { thumbnail: 500, long: 20_000, short: 20 });
    const staff = await employ(2, 1);
    await suspects(bench, 1, 2);
    const dueAt = bench.world.now;
    await bench.addMany(200, "short");
    expect(await bench.until(() => completed(staff) === 200)).toBeLessThan(3_000);
    await bench.until(() => last.length === 1);
    expect(last).toMatchObject([{ beside: 0 }]);
    expect((last[0]?.at ?? 0) - dueAt).toBeLessThan(25_000);
  });

  it("a worker with empty hands runs it at once", async () => {
    const bench = createBench();
    const { employ, last } = fleet(bench, { thumbnail: 500, long: 60 * MIN });
    await employ(1, 1);
    await suspects(bench, 1, 2);
    await bench.advance(2_000);
    expect(last).toEqual([]);
    await employ(1);
    expect(await bench.until(() => last.length === 1)).toBeLessThan(3_000);
    expect(last).toMatchObject([{ beside: 0 }]);
  });

  it.each([1, 2, 5])("%i workers with runs that do not end run it within five minutes", async (count) => {
    const bench = createBench();
    const { employ, last, completed } = fleet(bench, { thumbnail: 500, long: 60 * MIN, short: 1_000 });
    const staff = await employ(count, 2);
    await suspects(bench, 1, 2);
    await bench.addMany(5_000, "short");
    await bench.until(() => last.length === 1, 5 * MIN);
    // What it could not wait for is beside it, and nothing else.
    expect(last).toMatchObject([{ beside: 2 }]);
    await bench.until(() => completed(staff) === 5_001, 20 * MIN);
  });

  it("endless short work goes on, and the job runs alone within moments", async () => {
    const bench = createBench();
    const { employ, last, completed } = fleet(bench, { thumbnail: 500, short: 1_000 });
    const staff = await employ(1, 0, 5);
    await bench.addMany(1_000, "short");
    await bench.advance(5_000);
    await suspects(bench, 1, 2);
    expect(await bench.until(() => last.length === 1)).toBeLessThan(5_000);
    expect(last).toMatchObject([{ beside: 0 }]);
    await bench.until(() => completed(staff) === 1_001, 10 * MIN);
  });

  it("it runs within five minutes beside the work of thousands of tenants", async () => {
    const bench = createBench();
    const { employ, last } = fleet(bench, { thumbnail: 500, short: 5_000 });
    await bench.addMany(6_000, "short", (n) => ({ tenant: `tenant-${n % 3_000}` }));
    await employ(1);
    await bench.advance(2_000);
    await suspects(bench, 1, 2);
    await bench.until(() => last.length === 1, 5 * MIN);
    expect(last).toMatchObject([{ beside: 0 }]);
  });

  it("a single worker does other work in between", async () => {
    const bench = createBench();
    const { employ, completed } = fleet(bench, { thumbnail: 500, long: 60 * MIN, short: 20 });
    const staff = await employ(1, 1);
    await suspects(bench, 1, 2);
    await bench.advance(2_000);
    await bench.addMany(50, "short");
    await bench.until(() => completed(staff) >= 50, 62_000);
  });
});

describe("a job with its last crash left", () => {
  it("that takes an hour keeps its worker from other work for a minute", async () => {
    const bench = createBench();
    const { employ, last, completed } = fleet(bench, { thumbnail: 60 * MIN, short: 20 });
    const staff = await employ(1);
    await suspects(bench, 1, 2);
    await bench.until(() => last.length === 1);
    await bench.addMany(50, "short");
    await bench.advance(30_000);
    expect(completed(staff)).toBe(0);
    await bench.until(() => completed(staff) === 50, 40_000);
  });

  it("never runs beside another one in the same worker", async () => {
    const bench = createBench();
    const { employ, last } = fleet(bench, { thumbnail: 20 * MIN });
    await employ(1);
    await suspects(bench, 3, 2);
    await bench.until(() => last.length === 3, 180 * MIN);
    expect(last.map(({ lasts }) => lasts)).toEqual([0, 0, 0]);
  });

  it("is taken over where the worker that had reserved itself dies", async () => {
    const bench = createBench();
    const { employ, last } = fleet(bench, { thumbnail: 500, long: 30_000 });
    const [first, second] = await employ(2, 1);
    await suspects(bench, 1, 2);
    const reserved = (): Hired | undefined =>
      [first, second].find((hired) => (hired?.said("takes no other work").length ?? 0) > 0);
    await bench.until(() => reserved() !== undefined);
    reserved()?.actor.crash();
    await bench.until(() => last.length === 1, 2 * MIN);
  });

  it("does not keep a worker that has run it from other work", async () => {
    const bench = createBench();
    const { employ, completed } = fleet(bench, { thumbnail: 500, short: 20 });
    const staff = await employ(1);
    await suspects(bench, 1, 2);
    await bench.until(() => completed(staff) === 1);
    await bench.addMany(50, "short");
    expect(await bench.until(() => completed(staff) === 51)).toBeLessThan(2_000);
    expect((await bench.store.cells([{ kind: "alone" }])).cells).toEqual([]);
  });
});

describe("the doctor", () => {
  const alone = async (bench: Bench) =>
    (await queueFindings(bench.store, null)).find(({ check }) => check === "alone")?.message;

  it("says what waits to run alone, for how long, and which worker takes no other work for it", async () => {
    const bench = createBench();
    const { employ } = fleet(bench, { thumbnail: 500, long: 60 * MIN });
    const [hired] = await employ(1, 1);
    expect(await alone(bench)).toBeUndefined();
    await suspects(bench, 1, 2);
    await bench.advance(30_000);
    expect(await alone(bench)).toMatch(/^due for \d+s, to run alone because one crash is left: thumbnail; worker /);
    expect(await alone(bench)).toContain(hired?.worker.id);
  });

  it("says so too where no worker has reserved itself", async () => {
    const bench = createBench();
    await suspects(bench, 1, 2);
    await bench.advance(30_000);
    expect(await alone(bench)).toContain("no worker is empty yet");
  });
});
