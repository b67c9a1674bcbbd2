// Inputs that are checked by a schema before their run: what a schema may say, how long it may take, and that a run
// which was given up meanwhile never reaches its handler.
import { describe, expect, it } from "vitest";
import { fixed } from "../../src/core/backoff.ts";
import { RedriveError } from "../../src/core/errors.ts";
import { defineJob, type JobDefinition } from "../../src/jobs/define-job.ts";
import type { SchemaResult, StandardSchema } from "../../src/jobs/schema.ts";
import { type Bench, createBench } from "../support/worker-bench.ts";

type Validate = (value: unknown) => SchemaResult<unknown> | Promise<SchemaResult<unknown>>;

function schemaOf(validate: Validate): StandardSchema {
  return { "~standard": { version: 1, vendor: "test", validate } };
}

function rejecting(reason: unknown): StandardSchema {
  return schemaOf(async () => {
    throw reason;
  });
}

const trap = (): never => {
  throw new Error("a trap");
};
const TRAPS = { get: trap, has: trap, getPrototypeOf: trap, ownKeys: trap, getOwnPropertyDescriptor: trap };

/** A type whose schema takes so long, and the epochs in which its handler was called. */
function slowlyChecked(bench: Bench, ms: number, options: { timeout?: string; maxAttempts?: number } = {}) {
  const called: number[] = [];
  const checked: unknown[] = [];
  const job: JobDefinition = defineJob("thumbnail", {
    ...options,
    backoff: fixed("1h"),
    input: schemaOf(async (value) => {
      checked.push(value);
      await bench.sleep(ms);
      return { value };
    }),
    run: (_input, context) => void called.push(context.job.epoch),
  });
  return { job, called, checked };
}

describe("a run that was stopped while its input was checked", () => {
  it("does not call its handler after timeout and grace, and its late end changes nothing", async () => {
    const bench = createBench();
    const { job, called } = slowlyChecked(bench, 60_000, { timeout: "2s", maxAttempts: 1 });
    const id = await bench.add(job);
    const { worker } = await bench.employ([job], { abortGrace: "1s" });
    expect(await bench.until(() => worker.counts.dead === 1)).toBe(3_000);
    await bench.advance(120_000);
    expect(called).toEqual([]);
    expect(await bench.read(id)).toMatchObject({ state: "dead", attempts: 1, failure: { class: "timeout" } });
    expect(worker.counts).toMatchObject({ dead: 1, completed: 0, stale: 0, leaked: 1 });
  });

  it("does not call its handler within the grace either, and fails with class timeout", async () => {
    const bench = createBench();
    const { job, called } = slowlyChecked(bench, 2_500, { timeout: "2s", maxAttempts: 1 });
    const id = await bench.add(job);
    const { worker } = await bench.employ([job], { abortGrace: "5s" });
    expect(await bench.until(() => worker.counts.dead === 1)).toBe(2_500);
    expect(called).toEqual([]);
    expect((await bench.read(id)).failure).toMatchObject({ class: "timeout", name: "TimeoutError" });
    expect(worker.counts.leaked).toBe(0);
  });

  it("does not call its handler once its lease is lost: the job runs once, where it is now", async () => {
    const bench = createBench();
    const { job, called } = slowlyChecked(bench, 8_000);
    const id = await bench.add(job);
    const zombie = await bench.employ([job], { lease: "2s" });
    await bench.advance(100);
    const other = await bench.employ([job], { lease: "2s" });
    await bench.advance(2_500);
    zombie.actor.pause(4_500);
    await bench.until(() => other.worker.counts.completed === 1);
    await bench.advance(60_000);
    expect(zombie.heard("worker.given_up")).toHaveLength(1);
    expect(called).toEqual([2]);
    expect(await bench.read(id)).toMatchObject({ state: "completed", epoch: 2 });
  });

  it("does not call its handler during a shutdown, and goes back uncharged", async () => {
    const bench = createBench();
    const { job, called, checked } = slowlyChecked(bench, 2_500);
    const id = await bench.add(job);
    const { worker } = await bench.employ([job]);
    await bench.advance(100);
    await bench.finish(worker.stop({ withinMs: 2_000 }));
    await bench.advance(60_000);
    expect(checked).toHaveLength(1);
    expect(called).toEqual([]);
    expect(await bench.read(id)).toMatchObject({ state: "queued", attempts: 0, crashes: 0 });
  });

  it("does not call its handler after a shutdown that did not wait for it", async () => {
    const bench = createBench();
    const { job, called } = slowlyChecked(bench, 30_000);
    const id = await bench.add(job);
    const { worker } = await bench.employ([job]);
    await bench.advance(100);
    await bench.finish(worker.stop({ withinMs: 500 }));
    await bench.advance(60_000);
    expect(called).toEqual([]);
    expect(await bench.read(id)).toMatchObject({ state: "queued", attempts: 0, crashes: 0 });
  });
});

describe("a schema", () => {
  it("gives the handler what it makes of the input, at once or later", async () => {
    const bench = createBench();
    const made = (value: unknown) => ({ value: { key: String(value).toUpperCase() } });
    const run = (input: unknown) => input;
    const quick = defineJob("quick", { input: schemaOf(made), run });
    const slow = defineJob("slow", {
      input: schemaOf(async (value) => {
        await bench.sleep(500);
        return made(value);
      }),
      run,
    });
    const ids = [await bench.add(quick, { payload: '"a"' }), await bench.add(slow, { payload: '"b"' })];
    const { worker } = await bench.employ([quick, slow]);
    await bench.until(() => worker.counts.completed === 2);
    const results = (await bench.store.get(ids)).map((job) => job?.result);
    expect(results).toEqual(['{"key":"A"}', '{"key":"B"}']);
  });

  it("that rejects with ECONNREFUSED is retried as a failure of the network", async () => {
    const bench = createBench();
    let checks = 0;
    const job = defineJob("thumbnail", {
      backoff: fixed("5s"),
      input: schemaOf(async (value) => {
        checks += 1;
        if (checks === 1)
          throw Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:5432"), { code: "ECONNREFUSED" });
        return { value };
      }),
      run: () => "ran",
    });
    const id = await bench.add(job);
    const { worker } = await bench.employ([job]);
    await bench.until(() => worker.counts.retried === 1);
    expect(await bench.read(id)).toMatchObject({
      state: "queued",
      attempts: 1,
      failure: { class: "network", code: "ECONNREFUSED" },
    });
    expect(await bench.until(() => worker.counts.completed === 1)).toBe(5_000);
    expect(worker.counts.dead).toBe(0);
  });

  it("that throws before it answers is a failure like any other, and its neighbours go on", async () => {
    const bench = createBench();
    const job = defineJob("thumbnail", {
      maxAttempts: 1,
      input: schemaOf((value) => {
        if (value === "bad") throw new TypeError("the schema itself is broken");
        return { value };
      }),
      run: () => "ran",
    });
    const id = await bench.add(job, { payload: '"bad"' });
    await bench.addMany(3, job, { payload: '"good"' });
    const { worker } = await bench.employ([job]);
    await bench.until(() => worker.counts.dead === 1 && worker.counts.completed === 3);
    const { failure } = await bench.read(id);
    expect(failure).toMatchObject({ name: "TypeError", message: "the schema itself is broken" });
    expect(failure?.name).not.toBe("InvalidInput");
  });

  it("that passes on the misfit of another type, or a handler that does, is not taken for a misfit of its own", async () => {
    const bench = createBench();
    const misfitOf = (type: string) =>
      new RedriveError("invalid_payload", `The input of ${type} does not fit.`, { details: { type, issues: [] } });
    const outer = defineJob("outer", {
      maxAttempts: 1,
      input: schemaOf(async () => {
        throw misfitOf("inner");
      }),
      run: () => "never",
    });
    const own = defineJob("own", {
      maxAttempts: 1,
      input: schemaOf(async (value) => ({ value })),
      run: () => {
        throw misfitOf("own");
      },
    });
    const ids = [await bench.add(outer), await bench.add(own)];
    const { worker } = await bench.employ([outer, own]);
    await bench.until(() => worker.counts.dead === 2);
    const names = (await bench.store.get(ids)).map((job) => job?.failure?.name);
    expect(names).toEqual(["RedriveError", "RedriveError"]);
  });
});

describe("an input that does not fit", () => {
  it("dies at once as validation, names what is wrong and where, and its handler is not called", async () => {
    const bench = createBench();
    let called = 0;
    const job = defineJob("thumbnail", {
      input: schemaOf(async () => ({ issues: [{ message: "must be a string", path: ["video", { key: "key" }] }] })),
      run: () => void (called += 1),
    });
    const id = await bench.add(job, { payload: '{"video":{"key":7}}' });
    const { worker } = await bench.employ([job]);
    await bench.until(() => worker.counts.dead === 1);
    expect(called).toBe(0);
    expect(await bench.read(id)).toMatchObject({
      state: "dead",
      attempts: 1,
      payload: '{"video":{"key":7}}',
      failure: { class: "validation", name: "InvalidInput" },
    });
    expect((await bench.read(id)).failure?.message).toContain("video.key: must be a string");
    expect(worker.counts.retried).toBe(0);
  });
});

describe("a handler with a schema", () => {
  it("may throw anything: undefined, null, a proxy whose every trap throws", async () => {
    const bench = createBench();
    const thrown = [undefined, null, new Proxy({}, TRAPS), new Proxy(new Error("x"), TRAPS)];
    const job = defineJob("thumbnail", {
      maxAttempts: 1,
      input: schemaOf(async (value) => ({ value })),
      run: (at) => {
        throw thrown[at as number];
      },
    });
    const ids = await Promise.all(thrown.map((_, at) => bench.add(job, { payload: String(at) })));
    const { worker } = await bench.employ([job]);
    await bench.until(() => worker.counts.dead === thrown.length);
    for (const one of await bench.store.get(ids)) {
      expect(one).toMatchObject({ state: "dead", attempts: 1 });
      expect(one?.failure?.class).not.toBe("validation");
    }
  });

  it("whose schema rejects with undefined fails as well", async () => {
    const bench = createBench();
    const job = defineJob("thumbnail", { maxAttempts: 1, input: rejecting(undefined), run: () => "never" });
    const id = await bench.add(job);
    const { worker } = await bench.employ([job]);
    await bench.until(() => worker.counts.dead === 1);
    expect((await bench.read(id)).failure?.class).not.toBe("validation");
  });

  it("whose schema rejects with a proxy whose every trap throws fails as well", async () => {
    const bench = createBench();
    const job = defineJob("thumbnail", { maxAttempts: 1, input: rejecting(new Proxy({}, TRAPS)), run: () => "never" });
    const id = await bench.add(job);
    const { worker } = await bench.employ([job]);
    await bench.until(() => worker.counts.dead === 1);
    expect((await bench.read(id)).failure?.class).not.toBe("validation");
  });
});
