// One run from start to report: results, failures, snoozes, progress and deadlines.
import { describe, expect, it } from "vitest";
import { fixed } from "../../src/core/backoff.ts";
import { isRedriveError, PermanentError, RetryAfterError } from "../../src/core/errors.ts";
import { done } from "../../src/core/item-outcome.ts";
import { defineJob, type JobContext, snooze } from "../../src/jobs/define-job.ts";
import { createBench, forever } from "../support/worker-bench.ts";

describe("a handler that returns", () => {
  it("completes its job with its result", async () => {
    const bench = createBench();
    const job = defineJob("thumbnail", { run: async (input) => ({ thumbnail_key: (input as { key: string }).key }) });
    const id = await bench.add(job, { payload: '{"key":"a.mp4"}' });
    const { worker, events } = await bench.employ([job]);
    await bench.until(() => worker.counts.completed === 1);
    expect(await bench.read(id)).toMatchObject({
      state: "completed",
      attempts: 0,
      result: '{"thumbnail_key":"a.mp4"}',
    });
    expect(events.map(({ kind }) => kind)).toEqual(["worker.started", "job.completed"]);
    expect(worker.counts).toMatchObject({ claimed: 1, completed: 1, stale: 0, dead: 0 });
  });

  it("stores nothing for undefined, and a marker for what JSON cannot carry or is too large", async () => {
    const bench = createBench();
    const cycle: Record<string, unknown> = {};
    cycle.self = cycle;
    const results: Record<string, unknown> = { none: undefined, cycle, large: "x".repeat(70_000), big: 1n };
    const job = defineJob("thumbnail", { run: (input) => results[input as string] });
    const ids = await Promise.all(
      Object.keys(results).map((name) => bench.add(job, { payload: JSON.stringify(name) })),
    );
    const { worker } = await bench.employ([job]);
    await bench.until(() => worker.counts.completed === 4);
    const stored = await Promise.all(ids.map(async (id) => (await bench.read(id)).result));
    expect(stored).toEqual([
      null,
      '{"$unserializable":"object"}',
      '{"$truncated":true,"bytes":70002}',
      '{"$unserializable":"bigint"}',
    ]);
  });

  it("gets the attempt, the job, its lease and its type's limits", async () => {
    const bench = createBench();
    const seen: unknown[] = [];
    const job = defineJob("thumbnail", {
      maxAttempts: 3,
      backoff: fixed("1s"),
      run: (_input, { attempt, maxAttempts, lease, job: { id, epoch } }: JobContext) => {
        seen.push({ attempt, maxAttempts, own: lease.id === id && lease.epoch === epoch, nonce: lease.nonce.length });
        if (attempt < 3) throw new Error("not yet");
      },
    });
    await bench.add(job);
    const { worker } = await bench.employ([job]);
    await bench.until(() => worker.counts.completed === 1);
    expect(seen).toEqual([1, 2, 3].map((attempt) => ({ attempt, maxAttempts: 3, own: true, nonce: 32 })));
  });
});

describe("a handler that throws", () => {
  it("is retried after its backoff and dies when its attempts are used up", async () => {
    const bench = createBench();
    const job = defineJob("thumbnail", {
      maxAttempts: 3,
      backoff: fixed("5s"),
      run: () => {
        throw new Error("no such bucket");
      },
    });
    const id = await bench.add(job);
    const { worker, events } = await bench.employ([job]);
    const took = await bench.until(() => worker.counts.dead === 1);
    expect(took).toBe(10_000);
    expect(await bench.read(id)).toMatchObject({ state: "dead", attempts: 3, crashes: 0 });
    const { items } = await bench.store.deadLetters({ limit: 10 });
    expect(items).toMatchObject([{ reason: "exhausted", failure: { class: "transient", message: "no such bucket" } }]);
    expect(events.map(({ kind }) => kind)).toEqual(["worker.started", "job.retried", "job.retried", "job.dead"]);
  });

  it("dies at once with PermanentError, and waits as long as RetryAfterError asks", async () => {
    const bench = createBench();
    const final = defineJob("final", {
      run: () => {
        throw new PermanentError("gone");
      },
    });
    const asking = defineJob("asking", {
      backoff: fixed("1s"),
      run: (_input, { attempt }) => {
        if (attempt === 1) throw new RetryAfterError("slow down", "30s");
      },
    });
    const [dead, late] = [await bench.add(final), await bench.add(asking)];
    const { worker } = await bench.employ([final, asking]);
    expect(await bench.until(() => worker.counts.completed === 1)).toBe(30_000);
    expect(await bench.read(dead)).toMatchObject({ state: "dead", attempts: 1, failure: { class: "permanent" } });
    expect(await bench.read(late)).toMatchObject({ state: "completed", attempts: 1 });
  });

  it("may throw anything: undefined, an object whose getters throw, a proxy, a message of ten megabytes", async () => {
    const bench = createBench();
    const trap = (): never => {
      throw new Error("a trap");
    };
    const evil = Object.defineProperty(new Error("x"), "message", { get: trap });
    const proxy = new Proxy({}, { get: trap, has: trap, getPrototypeOf: trap, ownKeys: trap });
    const thrown = [undefined, null, evil, proxy, Object.create(null), new Error("m".repeat(10_000_000)), 7n];
    const job = defineJob("thumbnail", {
      maxAttempts: 1,
      run: (at) => {
        throw thrown[at as number];
      },
    });
    const ids = await Promise.all(thrown.map((_, at) => bench.add(job, { payload: String(at) })));
    const { worker } = await bench.employ([job]);
    await bench.until(() => worker.counts.dead === thrown.length);
    for (const id of ids) {
      const { state, failure } = await bench.read(id);
      expect(state).toBe("dead");
      expect(Buffer.byteLength(failure?.message ?? "")).toBeLessThanOrEqual(8192);
    }
  });

  it("dies with class validation, uncalled, when its payload was damaged in the store", async () => {
    const bench = createBench();
    let called = 0;
    const job = defineJob("thumbnail", { run: () => void (called += 1) });
    const id = await bench.add(job, { payload: '{"key":' });
    const healthy = await bench.add(job);
    const { worker } = await bench.employ([job]);
    await bench.until(() => worker.counts.dead === 1 && worker.counts.completed === 1);
    expect(called).toBe(1);
    expect(await bench.read(id)).toMatchObject({
      state: "dead",
      payload: '{"key":',
      failure: { class: "validation", name: "UnreadablePayload" },
    });
    expect((await bench.read(healthy)).state).toBe("completed");
  });
});

describe("snooze", () => {
  it("brings the job back later, uncharged, as often as it likes", async () => {
    const bench = createBench();
    let runs = 0;
    const job = defineJob("thumbnail", {
      maxAttempts: 1,
      run: (_input, context) => (++runs <= 5 ? context.snooze("10s") : "done"),
    });
    const id = await bench.add(job);
    const { worker } = await bench.employ([job]);
    expect(await bench.until(() => worker.counts.completed === 1)).toBe(50_000);
    expect(await bench.read(id)).toMatchObject({ attempts: 0, crashes: 0, releases: 5, result: '"done"' });
    expect(worker.counts).toMatchObject({ released: 5, retried: 0 });
  });
});

describe("a snooze inside done", () => {
  it.each([
    ["as it is", () => done(snooze("10s"))],
    ["as a promise", () => done(Promise.resolve(snooze("10s")))],
  ])("is refused, %s: the job is neither completed nor snoozed", async (_name, run) => {
    const bench = createBench();
    const job = defineJob("both", { maxAttempts: 1, run });
    const id = await bench.add(job);
    const { worker } = await bench.employ([job]);
    await bench.until(() => worker.counts.dead === 1);
    const { failure, releases } = await bench.read(id);
    expect(releases).toBe(0);
    expect(failure?.message).toBe("done: expected a result; got a snooze; return the snooze itself, without done");
  });
});

describe("progress", () => {
  it("and snooze may be taken out of the context", async () => {
    const bench = createBench();
    const job = defineJob("apart", {
      run: async (_input, { attempt, job: { releases }, progress, snooze }) => {
        await progress({ attempt });
        return releases === 0 ? snooze("1s") : "done";
      },
    });
    const id = await bench.add(job);
    const { worker } = await bench.employ([job]);
    await bench.until(() => worker.counts.completed === 1);
    expect(await bench.read(id)).toMatchObject({ progress: '{"attempt":1}', result: '"done"', attempts: 0 });
  });

  it("is stored while the run goes on", async () => {
    const bench = createBench();
    const job = defineJob("thumbnail", {
      run: async (_input, context) => {
        await context.progress({ done: 7, of: 10 });
        await bench.sleep(1_000);
      },
    });
    const id = await bench.add(job);
    const { worker } = await bench.employ([job]);
    await bench.advance(500);
    expect(await bench.read(id)).toMatchObject({ state: "running", progress: '{"done":7,"of":10}' });
    await bench.until(() => worker.counts.completed === 1);
  });

  it("is refused with lease_lost for a run that was given up, and the refusal harms nobody", async () => {
    const bench = createBench();
    const answers: unknown[] = [];
    const job = defineJob("thumbnail", {
      run: async (_input, context) => {
        if (context.job.epoch > 1) return;
        await bench.sleep(5_000);
        await context.progress(1).catch((error: unknown) => answers.push(error));
        await forever();
      },
    });
    const id = await bench.add(job);
    const zombie = await bench.employ([job], { lease: "2s" });
    const other = await bench.employ([job], { lease: "2s" });
    zombie.actor.pause(4_500);
    await bench.until(() => other.worker.counts.completed === 1);
    await bench.until(() => answers.length === 1);
    expect(isRedriveError(answers[0], "lease_lost")).toBe(true);
    expect(await bench.read(id)).toMatchObject({ state: "completed", progress: null });
  });

  it("rejects what JSON cannot carry", async () => {
    const bench = createBench();
    const codes: unknown[] = [];
    const job = defineJob("thumbnail", {
      run: (_input, context) => context.progress(undefined).catch((error: { code: string }) => codes.push(error.code)),
    });
    await bench.add(job);
    const { worker } = await bench.employ([job]);
    await bench.until(() => worker.counts.completed + worker.counts.dead === 1);
    expect(codes).toEqual(["invalid_payload"]);
  });
});

describe("a deadline", () => {
  it("ends the tries: a retry that would come after it is not made", async () => {
    const bench = createBench();
    const job = defineJob("thumbnail", {
      deadline: "12s",
      backoff: fixed("5s"),
      run: () => {
        throw new Error("still failing");
      },
    });
    const id = await bench.add(job);
    const { worker } = await bench.employ([job]);
    expect(await bench.until(() => worker.counts.dead === 1)).toBe(10_000);
    expect(await bench.read(id)).toMatchObject({ state: "dead", attempts: 3 });
    expect((await bench.store.deadLetters({ limit: 1 })).items[0]?.reason).toBe("deadline");
  });

  it("that passed before the job could run ends it uncharged and uncalled", async () => {
    const bench = createBench();
    let called = 0;
    const job = defineJob("thumbnail", { deadline: "10s", run: () => void (called += 1) });
    const id = await bench.add(job);
    await bench.advance(10_001);
    const { worker } = await bench.employ([job]);
    await bench.until(() => worker.counts.dead === 1);
    expect(called).toBe(0);
    expect(await bench.read(id)).toMatchObject({ state: "dead", attempts: 0, crashes: 0 });
    expect((await bench.store.deadLetters({ limit: 1 })).items).toMatchObject([{ reason: "deadline" }]);
  });

  it("is judged by the store's time: a worker whose clock is wrong kills nothing", async () => {
    const bench = createBench();
    const job = defineJob("thumbnail", { deadline: "1h", run: () => "ran" });
    const id = await bench.add(job);
    const { worker, actor } = bench.hire([job]);
    actor.skew(2 * 3_600_000);
    await bench.finish(worker.start());
    await bench.until(() => worker.counts.completed + worker.counts.dead === 1);
    expect(await bench.read(id)).toMatchObject({ state: "completed", result: '"ran"' });
  });

  it("does not count the time for which the job was paused", async () => {
    const bench = createBench();
    const job = defineJob("thumbnail", { deadline: "1m", run: () => "ran" });
    const id = await bench.add(job);
    await bench.store.pause({ kind: "type", name: "thumbnail" }, { forMs: null, reason: "test" });
    const { worker } = await bench.employ([job]);
    await bench.advance(120_000);
    await bench.store.resume({ kind: "type", name: "thumbnail" });
    await bench.until(() => worker.counts.completed + worker.counts.dead === 1);
    expect(await bench.read(id)).toMatchObject({ state: "completed", result: '"ran"' });
  });
});
