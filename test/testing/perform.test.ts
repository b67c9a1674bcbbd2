// A handler on its own: what goes in, what comes out, and what the queue would make of it.
import { describe, expect, expectTypeOf, it } from "vitest";
import {
  defineJob,
  fixed,
  type JobContext,
  PermanentError,
  RetryAfterError,
  type StandardSchema,
} from "../../src/index.ts";
import { collectLog, perform } from "../../src/testing/index.ts";

const size: StandardSchema<{ width: string }, { width: number }> = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate(value) {
      const width = Number((value as { width?: unknown } | null)?.width);
      return Number.isFinite(width) ? { value: { width } } : { issues: [{ message: "no number", path: ["width"] }] };
    },
  },
};

describe("perform", () => {
  it("gives the result of a good run, after its way through JSON", async () => {
    const job = defineJob("job", {
      run: ({ n }: { n: number }) => ({ twice: n * 2, none: undefined, at: new Date(0) }),
    });
    const performed = await perform(job, { n: 4 });
    expect(performed).toMatchObject({ state: "completed", failure: null, delayMs: null });
    expect(performed.result).toEqual({ twice: 8, at: "1970-01-01T00:00:00.000Z" });
  });

  it("hands the handler what the schema made of the input, and refuses what does not fit", async () => {
    const job = defineJob("job", { input: size, run: ({ width }) => width + 1 });
    const performed = await perform(job, { width: "41" });
    expectTypeOf(performed.result).toEqualTypeOf<number | undefined>();
    expect(performed.result).toBe(42);
    await expect(perform(job, { width: "wide" })).rejects.toMatchObject({ code: "invalid_payload" });
  });

  it("refuses an input that JSON cannot carry", async () => {
    const job = defineJob("job", { run: (input: { at: unknown }) => input });
    await expect(perform(job, { at: () => 1 })).rejects.toMatchObject({ code: "invalid_payload" });
  });

  it("gives the input a way through JSON, so that nobody relies on identity", async () => {
    const input = { list: [1] };
    const job = defineJob("job", { run: (got: { list: number[] }) => got === input || got.list === input.list });
    expect((await perform(job, input)).result).toBe(false);
  });

  it("gives failures the class that core gives them, and what would become of them", async () => {
    const thrower = (error: unknown) =>
      defineJob("job", {
        backoff: fixed("7s"),
        run: (): void => {
          throw error;
        },
      });
    expect(await perform(thrower(new Error("odd")), {})).toMatchObject({
      state: "retrying",
      failure: { class: "transient", message: "odd" },
      delayMs: 7_000,
    });
    expect(await perform(thrower(new PermanentError("never")), {})).toMatchObject({
      state: "dead",
      failure: { class: "permanent" },
      delayMs: null,
    });
    expect(await perform(thrower(new RetryAfterError("later", "42s")), {})).toMatchObject({ delayMs: 42_000 });
    expect(await perform(thrower(new Error("odd")), {}, { attempt: 3, maxAttempts: 3 })).toMatchObject({
      state: "dead",
    });
  });

  it("tells of a snooze", async () => {
    const job = defineJob("job", { run: (_input: object, { snooze }: JobContext) => snooze("5m") });
    expect(await perform(job, {})).toMatchObject({ state: "snoozed", delayMs: 300_000, failure: null });
  });

  it("gives a context that looks real", async () => {
    const job = defineJob("job", {
      maxAttempts: 4,
      async run(_input: object, context: JobContext) {
        context.log.info({ at: 1 }, "half way");
        await context.progress({ done: 0.5 });
        const { attempt, maxAttempts, lease, signal } = context;
        const { key, tenant, state, type } = context.job;
        return { attempt, maxAttempts, key, tenant, state, type, epoch: lease.epoch, aborted: signal.aborted };
      },
    });
    const performed = await perform(job, {}, { attempt: 2, key: "k", tenant: "acme" });
    expect(performed.result).toEqual({
      attempt: 2,
      maxAttempts: 4,
      key: "k",
      tenant: "acme",
      state: "running",
      type: "job",
      epoch: 1,
      aborted: false,
    });
    expect(performed.progress).toEqual([{ done: 0.5 }]);
    const about = { job: expect.any(String) as string, type: "job", key: "k" };
    expect(performed.log.said("half way")).toEqual([
      { level: "info", message: "half way", fields: { at: 1, ...about } },
    ]);
  });

  it("ends as a timeout when its signal fires", async () => {
    const job = defineJob("job", {
      timeout: "30s",
      run: (_input: object, { signal }: JobContext) =>
        new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))),
    });
    const controller = new AbortController();
    const performed = perform(job, {}, { signal: controller.signal });
    await Promise.resolve();
    controller.abort();
    expect(await performed).toMatchObject({ failure: { class: "timeout" }, state: "retrying" });
    expect(await perform(job, {}, { signal: AbortSignal.abort() })).toMatchObject({ failure: { class: "timeout" } });
  });

  it("refuses options it does not know", async () => {
    const job = defineJob("job", { run: () => 1 });
    await expect(perform(job, {}, { atempt: 2 } as object)).rejects.toThrow(/did you mean "attempt"/);
    await expect(perform(job, {}, { attempt: 0 })).rejects.toThrow(/attempt/);
  });
});

describe("collectLog", () => {
  it("collects, passes on, finds and forgets", () => {
    const other = collectLog();
    const log = collectLog(other);
    log.warn({ job: "a" }, "something is odd");
    log.debug({}, "nothing");
    expect(log.lines).toHaveLength(2);
    expect(log.said(/odd$/)).toEqual([{ level: "warn", message: "something is odd", fields: { job: "a" } }]);
    expect(other.lines).toEqual(log.lines);
    log.clear();
    expect(log.lines).toEqual([]);
  });
});
