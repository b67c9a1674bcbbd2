// Job types: what a definition holds, what it refuses, and how definitions and snoozes of other copies are recognised.
import { describe, expect, it } from "vitest";
import { fixed } from "../../src/core/backoff.ts";
import { isRedriveError } from "../../src/core/errors.ts";
import { PRESETS } from "../../src/core/policy.ts";
import { defineJob, isJobDefinition, type JobOptions, snooze, snoozeMs } from "../../src/jobs/define-job.ts";

const run = (): number => 1;

describe("a definition", () => {
  it("has the library's defaults", () => {
    const job = defineJob("thumbnail", { run });
    expect(job).toMatchObject({
      type: "thumbnail",
      queue: "default",
      service: null,
      concurrency: Number.POSITIVE_INFINITY,
      policy: PRESETS.default,
      rules: [],
      onDead: null,
    });
    expect(Object.isFrozen(job)).toBe(true);
  });

  it("takes its policy from its options", () => {
    const options = { maxRetries: 2, timeout: "30s", deadline: "1h", backoff: fixed("5s"), maxCrashes: 2 };
    const { policy } = defineJob("thumbnail", { ...options, stuck: { after: "1h", retryAfter: "4h" }, run });
    expect(policy).toMatchObject({
      maxAttempts: 3,
      maxCrashes: 2,
      timeoutMs: 30_000,
      deadlineMs: 3_600_000,
      stuckMs: 3_600_000,
      stuckRetryMs: 14_400_000,
      backoff: { kind: "fixed", initialMs: 5_000 },
    });
  });

  it("keeps queue, service, concurrency, rules and hook", () => {
    const onDead = (): void => undefined;
    const rule = { class: "permanent", message: "gone" } as const;
    const job = defineJob("t", { queue: "media", service: "s3", concurrency: 4, classify: [rule], onDead, run });
    expect(job).toMatchObject({ queue: "media", service: "s3", concurrency: 4, rules: [rule], onDead, run });
  });

  it("names the type, what is near, and what is wrong where an option is not right", () => {
    const define = (options: object) => () => defineJob("thumbnail", { run, ...options });
    expect(define({ timout: "5s" })).toThrow(
      /^thumbnail: expected an object with run, .*timeout.*; got "timout"; did you mean "timeout"\?$/,
    );
    expect(define({ onDeath: run })).toThrow('did you mean "onDead"?');
    expect(define({ timeout: "soon" })).toThrow(/^thumbnail\.timeout: expected a duration/);
  });

  const refused: readonly [string, string, Partial<JobOptions<unknown, unknown>> & Record<string, unknown>][] = [
    ["a type with a space", "two words", {}],
    ["an empty type", "", {}],
    ["a type of 129 letters", "x".repeat(129), {}],
    ["a queue that is no name", "ok", { queue: "a/b" }],
    ["a service that is no name", "ok", { service: "a b" }],
    ["no slots at all", "ok", { concurrency: 0 }],
    ["half a slot", "ok", { concurrency: 1.5 }],
    ["no attempts", "ok", { maxAttempts: 0 }],
    ["attempts and retries that contradict each other", "ok", { maxAttempts: 3, maxRetries: 3 }],
    ["a timeout that is no duration", "ok", { timeout: "soon" }],
    ["a negative deadline", "ok", { deadline: -1 }],
    ["an unknown preset", "ok", { preset: "fast" as "worker" }],
    ["an unknown option", "ok", { retries: 3 }],
    ["rules that are no list", "ok", { classify: {} as [] }],
    ["a handler that is no function", "ok", { run: "handler" as unknown as typeof run }],
    ["a hook that is no function", "ok", { onDead: "hook" as unknown as () => void }],
  ];
  for (const [what, type, options] of refused) {
    it(`refuses ${what} with invalid_argument`, () => {
      let caught: unknown;
      try {
        defineJob(type, { run, ...options });
      } catch (error) {
        caught = error;
      }
      expect(isRedriveError(caught, "invalid_argument")).toBe(true);
    });
  }

  it("is recognised across copies of the library by its brand, and nothing else is", () => {
    expect(isJobDefinition(defineJob("thumbnail", { run }))).toBe(true);
    expect(isJobDefinition({ [Symbol.for("redrive.job")]: 1 })).toBe(true);
    for (const other of [null, undefined, {}, run, "job", { type: "thumbnail", run }]) {
      expect(isJobDefinition(other)).toBe(false);
    }
  });
});

describe("a snooze", () => {
  it("is told apart from every other result", () => {
    expect(snoozeMs(snooze("5m"))).toBe(300_000);
    expect(snoozeMs(snooze(0))).toBe(0);
    for (const other of [null, undefined, 5, "5m", {}, [], { snooze: 5 }]) expect(snoozeMs(other)).toBeNull();
  });

  it("refuses what is no duration", () => {
    for (const bad of ["soon", -1, Number.NaN, 1.5, "2000d"]) expect(() => snooze(bad)).toThrow(/snooze/);
  });
});
