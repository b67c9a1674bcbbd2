// Faults on demand and the clock they happen on.
import { describe, expect, it, onTestFinished } from "vitest";
import { defineJob, fixed, type JobContext } from "../../src/index.ts";
import { createTestRedrive, type TestRedrive, type TestRedriveOptions } from "../../src/testing/index.ts";

const START = Date.UTC(2026, 0, 1);

async function open(options: TestRedriveOptions): Promise<TestRedrive> {
  const test = await createTestRedrive(options);
  onTestFinished(() => test.close());
  return test;
}

const options = { maxAttempts: 3, backoff: fixed("10s"), timeout: "30s" } as const;
const calls: string[] = [];
const thumbnail = defineJob("thumbnail", {
  ...options,
  run: ({ key }: { key: string }) => {
    calls.push(key);
    return `${key}.png`;
  },
});

describe("the clock", () => {
  it("runs what falls due on the way, each at its time, in order", async () => {
    const seen: [string, number][] = [];
    const note = defineJob("note", { run: (name: string) => void seen.push([name, test.clock.now() - START]) });
    const test = await open({ jobs: [note] });
    await test.enqueue(note, "c", { delay: "3m" });
    await test.enqueue(note, "a");
    await test.enqueue(note, "b", { delay: "1m" });
    await test.enqueue(note, "d", { delay: "5m" });
    await test.enqueue(note, "e", { delay: "301s" });
    await test.clock.advance("5m");
    expect(seen).toEqual([
      ["a", 0],
      ["b", 60_000],
      ["c", 180_000],
      ["d", 300_000],
    ]);
    expect(test.clock.now()).toBe(START + 300_000);
  });

  it("jumps over what it is set past, which then waits", async () => {
    const test = await open({ jobs: [thumbnail], now: "2027-03-01" });
    await test.enqueue(thumbnail, { key: "a" }, { delay: "1h" });
    test.clock.set("2027-03-02T00:00:00Z");
    expect(test.clock.now()).toBe(Date.UTC(2027, 2, 2));
    expect((await test.jobs.count()).queued).toBe(1);
    expect(await test.drain()).toMatchObject({ completed: 1 });
    expect(() => test.clock.set("2027-03-01")).toThrow(/the clock does not go back/);
  });

  it("refuses what is no duration", async () => {
    const test = await open({});
    await expect(test.clock.advance("soon")).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(test.clock.advance(-1)).rejects.toMatchObject({ code: "invalid_argument" });
  });

  it("gives a year without work away for nothing", async () => {
    const test = await open({ jobs: [thumbnail] });
    await test.clock.advance("365d");
    expect(test.clock.now()).toBe(START + 365 * 86_400_000);
  });
});

describe("failNext", () => {
  it("throws in place of the handler, as often as it is told", async () => {
    calls.length = 0;
    const test = await open({ jobs: [thumbnail] });
    const { id } = await test.enqueue(thumbnail, { key: "a" });
    test.failNext(thumbnail, Object.assign(new Error("reset"), { code: "ECONNRESET" }), { times: 2 });
    expect(await test.runNext()).toMatchObject({
      state: "retrying",
      failure: { class: "network", code: "ECONNRESET" },
    });
    await test.drain({ until: "idle" });
    expect(calls).toEqual(["a"]);
    await test.assertAttempts(id, 2);
    await test.assertCompleted(id, { result: "a.png" });
  });

  it("takes its turn: one fault after the other", async () => {
    const test = await open({ jobs: [thumbnail] });
    await test.enqueue(thumbnail, { key: "a" });
    test.failNext(thumbnail, new Error("first"));
    test.failNext("thumbnail", new Error("second"), { times: Number.POSITIVE_INFINITY });
    const messages: (string | undefined)[] = [];
    for (let i = 0; i < 3; i++) {
      messages.push((await test.runNext())?.failure?.message);
      await test.clock.advance("9s");
      test.clock.set(test.clock.now() + 1_000);
    }
    expect(messages).toEqual(["first", "second", "second"]);
    await test.assertDead(thumbnail, { message: "second" });
  });

  it("passes through the middleware", async () => {
    const seen: string[] = [];
    const middleware = async (_run: unknown, next: () => Promise<unknown>): Promise<unknown> =>
      next().catch((error: unknown) => {
        seen.push(String(error));
        throw error;
      });
    const test = await open({ jobs: [thumbnail], middleware: [middleware] });
    await test.enqueue(thumbnail, { key: "a" });
    test.failNext(thumbnail, new Error("down"));
    await test.runNext();
    expect(seen).toEqual(["Error: down"]);
  });

  it("refuses to happen no times at all", async () => {
    const test = await open({});
    expect(() => test.failNext("t", new Error("x"), { times: 0 })).toThrow(/times/);
  });
});

describe("slowNext", () => {
  it("makes a run time out", async () => {
    const test = await open({ jobs: [thumbnail] });
    await test.enqueue(thumbnail, { key: "a" });
    test.slowNext(thumbnail, "2m");
    expect(await test.runNext()).toMatchObject({ state: "retrying", failure: { class: "timeout" } });
    expect(test.clock.now()).toBe(START + 30_000);
  });

  it("ends within the timeout if that is long enough", async () => {
    const test = await open({ jobs: [thumbnail] });
    await test.enqueue(thumbnail, { key: "a" });
    test.slowNext(thumbnail, "20s");
    expect(await test.runNext()).toMatchObject({ state: "completed" });
    expect(test.clock.now()).toBe(START + 20_000);
  });

  it("leaves a run in the middle where the time stops", async () => {
    const test = await open({ jobs: [thumbnail] });
    const { id } = await test.enqueue(thumbnail, { key: "a" });
    test.slowNext(thumbnail, "20s");
    await test.clock.advance("5s");
    expect((await test.jobs.get(id))?.state).toBe("running");
    await test.clock.advance("15s");
    await test.assertCompleted(id);
  });

  it("gives a cancel the time to be heard", async () => {
    const test = await open({ jobs: [thumbnail] });
    const { id } = await test.enqueue(thumbnail, { key: "a" });
    test.slowNext(thumbnail, "20s");
    await test.clock.advance("1s");
    expect(await test.jobs.cancel(id)).toMatchObject({ requested: 1 });
    await test.clock.advance("10s");
    expect((await test.jobs.get(id))?.state).toBe("cancelled");
  });
});

describe("a handler that waits for its signal", () => {
  const waiting = defineJob("waiting", {
    ...options,
    run: (_input: object, { signal }: JobContext) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason as Error));
      }),
  });

  it("is ended by its timeout, once it has used up the patience", async () => {
    const test = await open({ jobs: [waiting], patience: "300ms" });
    await test.enqueue(waiting, {});
    expect(await test.runNext()).toMatchObject({ failure: { class: "timeout" }, nextRunAt: START + 40_000 });
  });

  it("is ended at once where the test lets time pass beside it", async () => {
    const test = await open({ jobs: [waiting], patience: "1h" });
    const { id } = await test.enqueue(waiting, {});
    const running = test.runJob(id);
    await test.clock.advance("31s");
    expect(await running).toMatchObject({ state: "retrying", failure: { class: "timeout" } });
  });

  it("is called endless where nothing would ever end it", async () => {
    const endless = defineJob("endless", { run: () => new Promise(() => undefined) });
    const test = await open({ jobs: [endless], patience: "300ms" });
    await test.enqueue(endless, {});
    await expect(test.runNext()).rejects.toThrow(/handler of endless .* still at work after 300ms .* no timeout/);
  });
});

describe("a handler that ignores its abort", () => {
  it("costs its worker the slot, and the next job gets a new one", async () => {
    const deaf = defineJob("deaf", { ...options, maxAttempts: 1, run: () => new Promise(() => undefined) });
    const test = await open({ jobs: [deaf, thumbnail], patience: "300ms" });
    await test.enqueue(deaf, {});
    const { id } = await test.enqueue(thumbnail, { key: "b" });
    expect(await test.drain()).toMatchObject({ completed: 1, dead: 1 });
    await test.assertCompleted(id);
  });
});

describe("a worker's death", () => {
  it("is charged as a crash when it is asked for", async () => {
    const test = await open({ jobs: [thumbnail] });
    const { id } = await test.enqueue(thumbnail, { key: "a" });
    test.crashNext(thumbnail);
    expect(await test.runNext()).toMatchObject({
      state: "retrying",
      failure: { class: "crashed", name: "WorkerDied" },
      job: { id, crashes: 1, attempts: 1 },
    });
    expect(await test.drain()).toMatchObject({ completed: 1 });
  });

  it("kills the job when its crashes are used up", async () => {
    const fragile = defineJob("fragile", { maxCrashes: 2, run: () => 1 });
    const test = await open({ jobs: [fragile] });
    const { id } = await test.enqueue(fragile, {});
    test.crashNext(fragile, { times: 2 });
    await test.drain({ until: "idle" });
    await test.assertDead(id, { class: "crashed" });
  });

  it("can come in the middle of a run", async () => {
    calls.length = 0;
    const test = await open({ jobs: [thumbnail] });
    await test.enqueue(thumbnail, { key: "mid" });
    test.slowNext(thumbnail, "20s");
    await test.clock.advance("5s");
    expect(await test.crashWorker()).toMatchObject({ state: "retrying", failure: { class: "crashed" } });
    await test.clock.advance("1m");
    expect(calls).toEqual(["mid"]);
    await test.assertCompleted(thumbnail);
  });

  it("can come from within the handler, whose later words count no more", async () => {
    const suicidal = defineJob("suicidal", {
      ...options,
      run: async () => {
        if (tries++ === 0) await test.crashWorker();
        return tries;
      },
    });
    let tries = 0;
    const test = await open({ jobs: [suicidal] });
    const { id } = await test.enqueue(suicidal, {});
    expect(await test.runNext()).toMatchObject({ state: "retrying", failure: { class: "crashed" } });
    expect(await test.runNext()).toMatchObject({ state: "completed", result: 2 });
    await test.assertAttempts(id, 1);
  });

  it("needs a running job", async () => {
    const test = await open({ jobs: [thumbnail] });
    await expect(test.crashWorker()).rejects.toThrow(/no job is running/);
  });
});

describe("a store that is down", () => {
  it("refuses every call, until it is up again", async () => {
    const test = await open({ jobs: [thumbnail] });
    test.storeDown();
    await expect(test.enqueue(thumbnail, { key: "a" })).rejects.toMatchObject({ code: "store_unavailable" });
    await expect(test.jobs.count()).rejects.toMatchObject({ code: "store_unavailable" });
    test.storeUp();
    expect((await test.enqueue(thumbnail, { key: "a" })).duplicate).toBe(false);
  });

  it("keeps work waiting for as long as it is told", async () => {
    const test = await open({ jobs: [thumbnail] });
    const { id } = await test.enqueue(thumbnail, { key: "a" });
    test.storeDown("30s");
    expect(await test.drain()).toMatchObject({ completed: 0 });
    await test.clock.advance("29s");
    expect((await test.assertEnqueued(thumbnail)).id).toBe(id);
    await test.clock.advance("1s");
    await test.assertCompleted(id);
  });

  it("does not lose a verdict, and charges nobody", async () => {
    const outage = defineJob("outage", { ...options, run: () => test.storeDown("10s") });
    const test = await open({ jobs: [outage] });
    const { id } = await test.enqueue(outage, {});
    expect(await test.runNext()).toMatchObject({ state: "completed", job: { attempts: 0 } });
    expect(test.clock.now()).toBeGreaterThanOrEqual(START + 10_000);
    await test.assertCompleted(id);
  });
});
