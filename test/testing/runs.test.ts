// Work on demand: one job, everything due, everything there is, on a clock that stands still otherwise.
import { AssertionError } from "node:assert";
import { describe, expect, it, onTestFinished } from "vitest";
import { defineJob, exponential, fixed, PermanentError, snooze } from "../../src/index.ts";
import { createTestRedrive, type TestRedrive, type TestRedriveOptions } from "../../src/testing/index.ts";

const START = Date.UTC(2026, 0, 1);

async function open(options: TestRedriveOptions): Promise<TestRedrive> {
  const test = await createTestRedrive(options);
  onTestFinished(() => test.close());
  return test;
}

const double = defineJob("double", { run: (input: { n: number }) => input.n * 2 });
const failing = defineJob("failing", {
  maxAttempts: 3,
  backoff: fixed("10s"),
  run: (_input: object): void => {
    throw new Error("no luck");
  },
});

describe("nothing", () => {
  it("runs before it is asked to", async () => {
    const test = await open({ jobs: [double] });
    const { id } = await test.enqueue(double, { n: 2 });
    expect((await test.jobs.get(id))?.state).toBe("queued");
    expect(test.clock.now()).toBe(START);
  });
});

describe("failing jobs of one service", () => {
  it.each([1, 2, 3, 7])(
    "all %i of them run to their end, although their worker tells the fleet first",
    async (count) => {
      const charge = defineJob("charge", {
        service: "stripe",
        maxAttempts: 1,
        run: (_input: object): void => {
          throw new Error("declined");
        },
      });
      const test = await open({ jobs: [charge], patience: "500ms" });
      for (let n = 0; n < count; n++) await test.enqueue(charge, {});
      expect(await test.drain()).toMatchObject({ dead: count });
    },
  );
});

describe("runNext", () => {
  it("runs exactly one job and tells what became of it, in no time", async () => {
    const test = await open({ jobs: [double] });
    const first = await test.enqueue(double, { n: 2 });
    await test.enqueue(double, { n: 3 });
    const report = await test.runNext();
    expect(report).toMatchObject({
      state: "completed",
      result: 4,
      failure: null,
      nextRunAt: null,
      job: { id: first.id },
    });
    expect(await test.jobs.count()).toMatchObject({ completed: 1, queued: 1 });
    expect(test.clock.now()).toBe(START);
  });

  it("answers null where nothing is due", async () => {
    const test = await open({ jobs: [double] });
    await test.enqueue(double, { n: 1 }, { delay: "1m" });
    expect(await test.runNext()).toBeNull();
  });

  it("takes the higher priority first, then the order of arrival", async () => {
    const seen: number[] = [];
    const note = defineJob("note", { run: (n: number) => void seen.push(n) });
    const test = await open({ jobs: [note] });
    await test.enqueue(note, 1);
    await test.enqueue(note, 2);
    await test.enqueue(note, 3, { priority: 5 });
    for (let i = 0; i < 3; i++) await test.runNext();
    expect(seen).toEqual([3, 1, 2]);
  });

  it("tells of a failure with its class and next time, charged", async () => {
    const test = await open({ jobs: [failing] });
    await test.enqueue(failing, {});
    const report = await test.runNext();
    expect(report).toMatchObject({
      state: "retrying",
      failure: { class: "transient", message: "no luck" },
      nextRunAt: START + 10_000,
      job: { attempts: 1 },
    });
  });

  it("leaves paused work alone", async () => {
    const test = await open({ jobs: [double] });
    await test.enqueue(double, { n: 1 });
    await test.pause({ kind: "queue", name: "default" });
    expect(await test.runNext()).toBeNull();
    await test.resume({ kind: "queue", name: "default" });
    expect((await test.runNext())?.state).toBe("completed");
  });

  it("waits for a handler with real work, with the clock standing still", async () => {
    const slowly = defineJob("slowly", { run: () => new Promise((resolve) => setTimeout(resolve, 30, "done")) });
    const test = await open({ jobs: [slowly] });
    await test.enqueue(slowly, {});
    expect((await test.runNext())?.result).toBe("done");
    expect(test.clock.now()).toBe(START);
  });
});

describe("runJob", () => {
  it("runs one that is not due, before others of its kind that are", async () => {
    const test = await open({ jobs: [double] });
    await test.enqueue(double, { n: 1 });
    const later = await test.enqueue(double, { n: 7 }, { delay: "1d" });
    expect(await test.runJob(later)).toMatchObject({ state: "completed", result: 14, job: { id: later.id } });
    expect(await test.jobs.count()).toMatchObject({ completed: 1, queued: 1 });
  });

  it("runs a job to its death", async () => {
    const test = await open({ jobs: [failing] });
    const { id } = await test.enqueue(failing, {});
    const states: (string | undefined)[] = [];
    for (let i = 0; i < 3; i++) states.push((await test.runJob(id)).state);
    expect(states).toEqual(["retrying", "retrying", "dead"]);
    await test.assertDead(id, { reason: "exhausted" });
  });

  it("tells of a snooze, and of a payload that is newer than the worker", async () => {
    const tired = defineJob("tired", { run: () => snooze("5m") });
    const test = await open({ jobs: [tired, double] });
    const { id } = await test.enqueue(tired, {});
    expect(await test.runJob(id)).toMatchObject({ state: "snoozed", nextRunAt: START + 300_000, job: { attempts: 0 } });
    const newer = await test.enqueue(defineJob("double", { version: 2, run: () => 0 }), { n: 1 });
    expect(await test.runJob(newer)).toMatchObject({ state: "released", reason: "newer_version" });
  });

  it("refuses what cannot run, and says why", async () => {
    const test = await open({ jobs: [double] });
    await expect(test.runJob("nobody")).rejects.toMatchObject({ code: "not_found" });
    const done = await test.enqueue(double, { n: 1 });
    await test.runJob(done);
    await expect(test.runJob(done)).rejects.toThrow(/is completed/);
    const unknown = await test.enqueue("elsewhere", {});
    await expect(test.runJob(unknown)).rejects.toThrow(/no definition/);
    const paused = await test.enqueue(double, { n: 1 });
    await test.pause({ kind: "type", name: "double" });
    await expect(test.runJob(paused)).rejects.toThrow(/paused/);
  });
});

describe("drain", () => {
  it("ends where jobs of a group wait beside a lane that is empty", async () => {
    const test = await open({ jobs: [double] });
    for (const n of [1, 2]) await test.enqueue(double, { n });
    for (const n of [3, 4, 5]) await test.enqueue(double, { n }, { group: "shop" });
    expect(await test.drain()).toMatchObject({ completed: 5 });
  });

  it("runs everything due, also what its jobs enqueue, and nothing later", async () => {
    const parent = defineJob("parent", {
      run: async () => {
        await test.enqueue(double, { n: 1 });
        await test.enqueue(double, { n: 2 }, { delay: "1s" });
      },
    });
    const test = await open({ jobs: [parent, double] });
    await test.enqueue(parent, {});
    expect(await test.drain()).toEqual({ completed: 2, retried: 0, dead: 0, released: 0, cancelled: 0, waiting: 1 });
    expect(test.clock.now()).toBe(START);
  });

  it("passes the time until nothing is left when asked to", async () => {
    const test = await open({ jobs: [failing, double] });
    const bad = await test.enqueue(failing, {});
    await test.enqueue(double, { n: 1 }, { delay: "30d" });
    expect(await test.drain({ until: "idle" })).toMatchObject({ completed: 1, retried: 2, dead: 1, waiting: 0 });
    expect(test.clock.now()).toBe(START + 30 * 86_400_000);
    await test.assertAttempts(bad, 3);
  });

  it("leaves what nobody here can run, or is paused for good", async () => {
    const test = await open({ jobs: [double] });
    await test.enqueue("elsewhere", {});
    await test.enqueue(double, {} as { n: number });
    await test.pause({ kind: "type", name: "double" });
    expect(await test.drain({ until: "idle" })).toMatchObject({ completed: 0, waiting: 2 });
  });

  it("waits for the end of a pause when it may pass time", async () => {
    const test = await open({ jobs: [double] });
    await test.enqueue(double, { n: 1 });
    await test.pause({ kind: "type", name: "double" }, { for: "2h" });
    expect(await test.drain({ until: "idle" })).toMatchObject({ completed: 1 });
    expect(test.clock.now()).toBe(START + 7_200_000);
  });

  it("refuses to go round for ever, and names the jobs that do", async () => {
    const again = defineJob("again", { run: () => snooze(0) });
    const daily = defineJob("daily", { run: () => snooze("20d") });
    const test = await open({ jobs: [again, daily] });
    const { id } = await test.enqueue(daily, {});
    const late = await test.drain({ until: "idle" }).catch((error: unknown) => error);
    expect(late).toBeInstanceOf(AssertionError);
    expect(String(late)).toContain(`daily ${id}: queued, 0 attempts, `);
    await test.jobs.cancel(id);
    await test.enqueue(again, {});
    await expect(test.drain({ until: "idle" })).rejects.toThrow(/10000 runs/);
  });
});

describe("run", () => {
  it("waits for the outcome and passes the time it takes", async () => {
    const test = await open({ jobs: [double, failing] });
    expect(await test.run(double, { n: 4 })).toMatchObject({ success: true, result: 8 });
    expect(test.clock.now()).toBe(START);
    expect(await test.run(failing, {})).toMatchObject({ success: false, error: { message: "no luck" } });
    expect(test.clock.now()).toBe(START + 20_000);
  });

  it("says so when nothing could ever run the job", async () => {
    const test = await open({ patience: "300ms" });
    await expect(test.run(double, { n: 1 })).rejects.toThrow(/run did not end: [\s\S]*double/);
  });
});

describe("the same seed", () => {
  it("gives the same ids and the same delays, another one others", async () => {
    const jittery = defineJob("jittery", {
      maxAttempts: 5,
      backoff: exponential({ initial: "1m", jitter: "full" }),
      run: (): void => {
        throw new Error("no luck");
      },
    });
    const story = async (seed: number): Promise<unknown> => {
      const test = await open({ jobs: [jittery], seed });
      const { id } = await test.enqueue(jittery, {});
      await test.drain({ until: "idle" });
      const { history } = await test.jobs.show(id);
      return [id, history.map(({ delayMs }) => delayMs)];
    };
    expect(await story(7)).toEqual(await story(7));
    expect(await story(7)).not.toEqual(await story(8));
  });
});

describe("a worker of the test's own", () => {
  it("works on the fake clock, and everything it is asked for ends", async () => {
    const test = await open({ jobs: [double, failing] });
    const worker = test.worker({ concurrency: 5 });
    await worker.start();
    await test.enqueue(double, { n: 1 });
    await test.clock.advance("1s");
    expect(worker.counts.completed).toBe(1);
    await worker.stop();
    await test.enqueue(failing, {});
    const second = test.worker();
    expect(await second.drain({ grace: "1m" })).toMatchObject({ retried: 2, dead: 1 });
  });
});

describe("closing", () => {
  it("may happen twice, and nothing goes after it", async () => {
    const test = await createTestRedrive({ jobs: [double] });
    await test.enqueue(double, { n: 1 });
    await test.close();
    await test.close();
    await expect(test.runNext()).rejects.toMatchObject({ code: "closed" });
    await expect(test.enqueue(double, { n: 1 })).rejects.toMatchObject({ code: "closed" });
  });

  it("happens by itself with await using", async () => {
    let kept: TestRedrive;
    {
      await using test = await createTestRedrive();
      kept = test;
    }
    await expect(kept.drain()).rejects.toMatchObject({ code: "closed" });
  });

  it("ends a run that never returns", async () => {
    const hanging = defineJob("hanging", { run: () => new Promise(() => undefined) });
    const test = await createTestRedrive({ jobs: [hanging], patience: "300ms" });
    await test.enqueue(hanging, {});
    await test.clock.advance("1m");
    expect((await test.jobs.count()).running).toBe(1);
    await test.close();
  });
});

describe("what PermanentError does", () => {
  it("is what core says", async () => {
    const final = defineJob("final", {
      run: (): void => {
        throw new PermanentError("never");
      },
    });
    const test = await open({ jobs: [final] });
    await test.enqueue(final, {});
    expect(await test.runNext()).toMatchObject({ state: "dead", reason: "permanent", failure: { class: "permanent" } });
  });
});
