// The settings of a worker: defaults, and what is refused.
import { describe, expect, it } from "vitest";
import { isRedriveError } from "../../src/core/errors.ts";
import { resolveWorker, type WorkerOptions } from "../../src/worker/settings.ts";

describe("the settings of a worker", () => {
  it("are complete and frozen without any option", () => {
    const settings = resolveWorker();
    expect(settings).toEqual({
      concurrency: 50,
      leaseMs: 30_000,
      heartbeatMs: 5_000,
      pollMs: 1_000,
      queues: null,
      stallMs: 150_000,
      abortGraceMs: 5_000,
      onContactLost: "abort",
      release: null,
    });
    expect(Object.isFrozen(settings)).toBe(true);
  });

  it("follow the lease where nothing else is said", () => {
    expect(resolveWorker({ lease: "6s" })).toMatchObject({ leaseMs: 6_000, heartbeatMs: 1_000, stallMs: 30_000 });
    expect(resolveWorker({ lease: "100ms" }).heartbeatMs).toBe(16);
    expect(resolveWorker({ lease: "1d" }).stallMs).toBe(86_400_000);
  });

  it("take what they are given", () => {
    const options = { concurrency: 1, poll: 50, queues: ["a", "b"], stallLimit: "1m", release: "1.2.3" };
    const settings = resolveWorker({ ...options, onContactLost: "continue" });
    expect(settings).toMatchObject({ concurrency: 1, pollMs: 50, stallMs: 60_000, release: "1.2.3" });
    expect([...(settings.queues ?? [])]).toEqual(["a", "b"]);
    expect(settings.onContactLost).toBe("continue");
  });

  const refused: readonly [string, WorkerOptions & Record<string, unknown>][] = [
    ["no slots", { concurrency: 0 }],
    ["ten thousand and one slots", { concurrency: 10_001 }],
    ["half a slot", { concurrency: 2.5 }],
    ["a lease under 100 ms", { lease: 99 }],
    ["a lease that is no duration", { lease: "long" }],
    ["a heartbeat of more than a third of the lease", { lease: "3s", heartbeat: "1001ms" }],
    ["a stall limit under the lease", { lease: "10s", stallLimit: "9s" }],
    ["an empty list of queues", { queues: [] }],
    ["a queue that is no name", { queues: ["a b"] }],
    ["another answer to lost contact", { onContactLost: "panic" as "abort" }],
    ["an unknown option", { concurency: 5 }],
  ];
  for (const [what, options] of refused) {
    it(`refuse ${what} with invalid_argument`, () => {
      let caught: unknown;
      try {
        resolveWorker(options);
      } catch (error) {
        caught = error;
      }
      expect(isRedriveError(caught, "invalid_argument")).toBe(true);
    });
  }
});
