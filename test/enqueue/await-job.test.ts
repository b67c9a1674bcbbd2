// Waiting for a job, schemas on both sides of the store, and versions of payloads.
import { describe, expect, it, onTestFinished } from "vitest";
import {
  createRedrive,
  defineJob,
  fixed,
  immediate,
  PermanentError,
  type Redrive,
  type StandardSchema,
} from "../../src/index.ts";
import { assemble } from "../../src/redrive.ts";
import { createMemoryStore } from "../../src/store/memory/index.ts";
import type { Store } from "../../src/store/store.ts";
import { realSystem } from "../../src/system/real.ts";
import type { System } from "../../src/system/system.ts";
import { collectLog, createTestRedrive } from "../../src/testing/index.ts";
import { beside, codeOf, drain, type Kind, KINDS, openRedrive } from "../redrive/kinds.ts";

/** Text in, number out; what cannot be one is refused. */
const width: StandardSchema<{ width: string }, { width: number }> = {
  "~standard": {
    version: 1,
    vendor: "test",
    async validate(value) {
      const given = (value as { width?: unknown } | null)?.width;
      const number = Number(given);
      if (typeof given === "string" && Number.isFinite(number)) return { value: { width: number } };
      return { issues: [{ message: "expected digits", path: [{ key: "width" }] }, { message: "and more" }] };
    },
  },
};

const resize = defineJob("resize", { input: width, run: ({ width: w }) => ({ area: w * w }) });

async function working(kind: Kind, options: Parameters<typeof openRedrive>[1]): Promise<Redrive> {
  const redrive = await openRedrive(kind, options);
  await redrive.worker({ poll: 20 }).start();
  return redrive;
}

describe.each(KINDS)("run on %s", (kind) => {
  it("answers with the result and the job", async () => {
    const redrive = await working(kind, { jobs: [resize] });
    const outcome = await redrive.run(resize, { width: "4" });
    expect(outcome).toMatchObject({ success: true, result: { area: 16 }, job: { state: "completed", type: "resize" } });
  });

  it("answers with undefined where the handler returns nothing", async () => {
    const redrive = await working(kind, { jobs: [defineJob("quiet", { run: () => undefined })] });
    expect(await redrive.run(defineJob("quiet", { run: () => undefined }), {})).toMatchObject({ success: true });
  });

  it("answers with the failure of a dead job", async () => {
    const final = defineJob("final", {
      run: (): void => {
        throw new PermanentError("never");
      },
    });
    const redrive = await working(kind, { jobs: [final] });
    const outcome = await redrive.run(final, {});
    expect(outcome).toMatchObject({ success: false, error: { class: "permanent", message: "never" } });
    expect(outcome.job.state).toBe("dead");
  });

  it("waits through retries", async () => {
    let calls = 0;
    const flaky = defineJob("flaky", {
      backoff: immediate(),
      run: () => {
        if (++calls < 3) throw new Error("not yet");
        return calls;
      },
    });
    const redrive = await working(kind, { jobs: [flaky] });
    expect(await redrive.run(flaky, {})).toMatchObject({ success: true, result: 3, job: { attempts: 2 } });
  });

  it("answers that a job was cancelled", async () => {
    const redrive = await openRedrive(kind, { jobs: [resize] });
    const outcome = redrive.run(resize, { width: "1" }, { key: "k" });
    await expect.poll(async () => (await redrive.jobs.list({ key: "k" })).items.length).toBe(1);
    await redrive.jobs.cancel({ key: "k" });
    expect(await outcome).toMatchObject({ success: false, error: { name: "Cancelled" }, job: { state: "cancelled" } });
  });

  it("stops waiting when its signal fires; the job goes on", async () => {
    const redrive = await openRedrive(kind, { jobs: [resize] });
    const controller = new AbortController();
    const outcome = redrive.run(resize, { width: "1" }, { signal: controller.signal });
    outcome.catch(() => undefined);
    await expect.poll(async () => (await redrive.jobs.count()).queued).toBe(1);
    controller.abort();
    await expect(outcome).rejects.toMatchObject({ code: "aborted" });
    expect(await drain(redrive)).toMatchObject({ completed: 1 });
  });

  it("has the limits of the handler preset, below what the type says", async () => {
    const redrive = await openRedrive(kind, { jobs: [resize, defineJob("own", { maxAttempts: 2, run: () => 1 })] });
    const soon = (): AbortSignal => AbortSignal.timeout(20);
    await redrive.run(resize, { width: "1" }, { signal: soon() }).catch(() => undefined);
    await redrive
      .run(defineJob("own", { maxAttempts: 2, run: () => 1 }), {}, { signal: soon() })
      .catch(() => undefined);
    const { items } = await redrive.jobs.list();
    expect(items.map(({ maxAttempts, deadlineMs }) => [maxAttempts, deadlineMs])).toEqual([
      [2, 300_000],
      [6, 300_000],
    ]);
  });

  it("answers with the outcome of a job that was there already", async () => {
    const redrive = await working(kind, { jobs: [resize] });
    const first = await redrive.run(resize, { width: "3" }, { key: "k" });
    const second = await redrive.run(resize, { width: "3" }, { key: "k" });
    expect(second.job.id).toBe(first.job.id);
  });

  it("rejects for an input that may not be enqueued", async () => {
    const redrive = await openRedrive(kind, { jobs: [resize] });
    expect(await codeOf(() => redrive.run(resize, { width: "wide" }))).toBe("invalid_payload");
  });

  it("writes nothing when its signal has fired already", async () => {
    const redrive = await openRedrive(kind, { jobs: [resize] });
    const signal = AbortSignal.abort();
    expect(await codeOf(() => redrive.run(resize, { width: "1" }, { signal }))).toBe("aborted");
    expect((await redrive.jobs.count()).queued).toBe(0);
  });
});

describe("run, waiting for a job that is cancelled here", () => {
  /** A queue on which no sleep ends by itself, so that only what is heard ends the wait. */
  async function sleepless(store: Store) {
    let sleeping = 0;
    const sleep: System["sleep"] = (_ms, signal) => {
      sleeping += 1;
      return new Promise((resolve) => signal?.addEventListener("abort", () => resolve()));
    };
    const process = { pid: 1, host: "test", isAlive: () => true };
    const surroundings = { system: { ...realSystem, sleep }, process };
    const redrive = await assemble({ store, jobs: [resize], log: "silent" }, surroundings);
    onTestFinished(() => redrive.close());
    return { redrive, sleeping: () => sleeping };
  }

  it("hears it while it sleeps", async () => {
    const { redrive, sleeping } = await sleepless(createMemoryStore({ clock: Date.now }));
    const outcome = redrive.run(resize, { width: "1" }, { key: "k" });
    await expect.poll(sleeping).toBe(1);
    expect(await redrive.jobs.cancel({ key: "k" })).toMatchObject({ cancelled: 1 });
    expect(await outcome).toMatchObject({ success: false, error: { name: "Cancelled" } });
  });

  it("hears it while a look is under way that came too early", async () => {
    const memory = createMemoryStore({ clock: Date.now });
    let meanwhile = (_ids: readonly string[]): Promise<unknown> => Promise.resolve();
    const store: Store = {
      ...memory,
      async get(ids) {
        const [found, then] = [await memory.get(ids), meanwhile];
        meanwhile = () => Promise.resolve();
        await then(ids);
        return found;
      },
    };
    const { redrive, sleeping } = await sleepless(store);
    meanwhile = (ids) => redrive.jobs.cancel(ids);
    expect(await redrive.run(resize, { width: "1" })).toMatchObject({ success: false, error: { name: "Cancelled" } });
    expect(sleeping()).toBe(0);
  });
});

describe("run without a worker", () => {
  it("says so after a while, and goes on waiting", async () => {
    const log = collectLog();
    const test = await createTestRedrive({ log, patience: "300ms" });
    await test.pause({ kind: "queue", name: "default" });
    const worker = test.worker();
    const outcome = test.run(resize, { width: "2" }).catch((error: unknown) => error);
    await test.clock.advance("6s");
    expect(log.said("no worker is running")).toHaveLength(1);
    expect(worker.counts.claimed).toBe(0);
    expect(String(await outcome)).toMatch(/did not end: /);
    await test.close();
  });
});

describe("the waits between the tries of run", () => {
  it("are those of the type, within the five minutes of the preset", async () => {
    const unlucky = defineJob("unlucky", {
      run: (_input: object): void => {
        throw new Error("no luck");
      },
    });
    const waits: number[] = [];
    for (let seed = 1; seed <= 10; seed++) {
      const test = await createTestRedrive({ jobs: [unlucky], seed });
      const { job } = await test.run(unlucky, {});
      const { history } = await test.jobs.show(job.id);
      waits.push(history.reduce((sum, { delayMs }) => sum + (delayMs ?? 0), 0));
      await test.close();
    }
    expect(Math.max(...waits)).toBeGreaterThan(60_000);
    expect(Math.max(...waits)).toBeLessThanOrEqual(300_000);
  });
});

describe.each(KINDS)("a schema on %s", (kind) => {
  it("is asked at enqueue, in its own words, and stores the input as it was given", async () => {
    const redrive = await openRedrive(kind, { jobs: [resize] });
    const error = await redrive.enqueue(resize, { width: "wide" }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: "invalid_payload",
      details: {
        type: "resize",
        issues: [
          { path: "width", message: "expected digits" },
          { path: "", message: "and more" },
        ],
      },
    });
    expect(String(error)).toContain("The input of resize does not match its schema: width: expected digits; and more.");
    const { id } = await redrive.enqueue(resize, { width: "5" });
    expect((await redrive.jobs.get(id))?.payload).toBe('{"width":"5"}');
  });

  it("is asked again before every run: what does not fit any more is a validation failure, without a retry", async () => {
    const redrive = await openRedrive(kind, { jobs: [resize] });
    const { id } = await redrive.enqueue(defineJob("resize", { run: (_input: object) => 1 }), { width: "wide" });
    expect(await drain(redrive)).toMatchObject({ dead: 1 });
    expect(await redrive.deadLetters.get(id)).toMatchObject({
      reason: "permanent",
      failure: { class: "validation", name: "InvalidInput" },
    });
  });

  it("that throws rejects at enqueue, and fails a run as a handler would", async () => {
    const broken: StandardSchema = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: () => {
          throw new Error("the schema is broken");
        },
      },
    };
    const job = defineJob("resize", { input: broken, backoff: fixed("1h"), run: () => 1 });
    const redrive = await openRedrive(kind, { jobs: [job] });
    await expect(redrive.enqueue(job, {})).rejects.toThrow("the schema is broken");
    const { id } = await redrive.enqueue(resize, { width: "1" });
    expect(await drain(redrive)).toMatchObject({ retried: 1 });
    expect((await redrive.jobs.get(id))?.failure).toMatchObject({
      class: "transient",
      message: "the schema is broken",
    });
  });
});

describe.each(KINDS)("a type that keeps nothing on %s", (kind) => {
  it("answers its run although nothing of the job is left, and keeps what has failed", async () => {
    const job = defineJob("brief", {
      keep: { finished: 0 },
      backoff: immediate(),
      run: ({ fails }: { fails: boolean }, { attempt }) => {
        if (fails && attempt === 1) throw new Error("not yet");
        return { ok: attempt };
      },
    });
    const redrive = await working(kind, { jobs: [job] });
    const well = await redrive.run(job, { fails: false });
    expect(well).toMatchObject({ success: true, result: { ok: 1 }, job: { state: "completed" } });
    expect(await redrive.jobs.get(well.job.id)).toBeNull();
    const badly = await redrive.run(job, { fails: true });
    expect(badly).toMatchObject({ success: true, result: { ok: 2 } });
    expect(await redrive.jobs.get(badly.job.id)).toMatchObject({ state: "completed", attempts: 1 });
  });
});

describe("run of a type that keeps nothing", () => {
  const brief = defineJob("brief", { keep: { finished: 0 }, run: (n: number) => n * 2 });

  /** A store that answers an enqueue only when nothing of its job is left. */
  async function late() {
    const memory = createMemoryStore({ clock: Date.now });
    const gone = (id: string) =>
      expect.poll(async () => (await memory.get([id]))[0] ?? null, { timeout: 30_000 }).toBeNull();
    const store: Store = {
      ...memory,
      async enqueue(jobs) {
        const answers = await memory.enqueue(jobs);
        for (const { id } of answers) await gone(id);
        return answers;
      },
    };
    const redrive = await createRedrive({ store, jobs: [brief], log: "silent" });
    onTestFinished(() => redrive.close());
    return { redrive, memory };
  }

  it("answers where the job has ended before its enqueue was answered", async () => {
    const { redrive } = await late();
    await redrive.worker({ poll: 20 }).start();
    const outcomes = await Promise.all([1, 2, 3].map((n) => redrive.run(brief, n)));
    expect(outcomes.map((outcome) => outcome.success && outcome.result)).toEqual([2, 4, 6]);
  });

  it("answers with the end of the job that had its key", async () => {
    const { redrive, memory } = await late();
    const first = redrive.run(brief, 4, { key: "k" });
    const second = redrive.run(brief, 4, { key: "k" });
    await expect.poll(async () => (await memory.list({ limit: 9 })).items.length).toBe(1);
    await redrive.worker({ poll: 20 }).start();
    const [one, two] = await Promise.all([first, second]);
    expect([one, two]).toMatchObject([
      { success: true, result: 8 },
      { success: true, result: 8 },
    ]);
    expect(two.job.id).toBe(one.job.id);
  });

  it("says what to change where another process ran the job and nothing tells its end", async () => {
    const memory = createMemoryStore({ clock: Date.now });
    const [here, there] = await Promise.all(
      [1, 2].map(() => createRedrive({ store: memory, jobs: [brief], log: "silent" })),
    );
    onTestFinished(async () => void (await Promise.all([here?.close(), there?.close()])));
    await there?.worker({ poll: 20 }).start();
    const error = await here?.run(brief, 1).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "not_found", message: expect.stringContaining("keep.finished") });
  });

  it("answers on the test clock", async () => {
    await using test = await createTestRedrive({ jobs: [brief] });
    expect(await test.run(brief, 5)).toMatchObject({ success: true, result: 10 });
  });
});

describe.each(KINDS)("a payload of a newer version on %s", (kind) => {
  it("is released uncharged by an older worker, and completed by a newer one", async () => {
    const older = defineJob("convert", { version: 1, backoff: fixed("1h"), run: () => "old" });
    const newer = defineJob("convert", { version: 2, run: () => "new" });
    const redrive = await openRedrive(kind, { jobs: [older] });
    const modern = await beside(redrive, kind, { jobs: [newer] });
    const { id } = await modern.enqueue(newer, {});
    const old = await redrive.enqueue(older, {});
    expect(await drain(redrive)).toMatchObject({ released: 1, completed: 1 });
    expect(await redrive.jobs.get(id)).toMatchObject({ state: "queued", version: 2, attempts: 0, releases: 1 });
    await modern.jobs.reschedule(id, { delay: 0 });
    await modern.enqueue(older, {});
    expect(await drain(modern)).toMatchObject({ completed: 2 });
    expect(await modern.jobs.get(id)).toMatchObject({ state: "completed", result: '"new"' });
    expect(await modern.jobs.get(old.id)).toMatchObject({ result: '"old"' });
  });
});
