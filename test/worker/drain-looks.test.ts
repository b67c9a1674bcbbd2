// A drain ends by what the claim loop saw. While a job of a group runs, the next one of its group is not due; so a look
// from that time says nothing about the work that is left.
import { describe, expect, it } from "vitest";
import type { Look } from "../../src/core/next-step.ts";
import { drained, type DrainOptions } from "../../src/worker/drain.ts";

const look = (due: boolean): Look => ({
  due,
  mayStart: due,
  hasMore: false,
  suspect: false,
  lastDueMs: null,
  nextRunAt: null,
  pauseEndsAt: null,
  now: 0,
  isHeard: false,
});

interface Moment {
  readonly look: Look;
  readonly claimed: number;
}

/** Drains a worker that holds no job at any of these moments, one for each sleep; answers how many it waited for. */
async function momentsOf(moments: readonly Moment[]): Promise<number> {
  let at = 0;
  const now = (): Moment => moments[Math.min(at, moments.length - 1)] as Moment;
  const options = {
    store: { workers: async () => [], control: async () => ({ now: 0 }) },
    system: {
      async sleep() {
        at += 1;
        if (at > 1_000) throw new Error("the drain does not end");
      },
    },
    contact: { attempt: (_verb: string, ask: () => unknown) => ask() },
    loop: {
      get look() {
        // After the last moment the loop goes on looking and finds nothing.
        return at < moments.length ? now().look : look(false);
      },
    },
    inFlight: { isSpent: false, jobs: 0 },
    settler: { size: 0 },
    reaping: { isolated: 0 },
    process: { host: "here", isAlive: () => true },
    self: { id: "w" },
    sleep: { wake: () => undefined },
    counts: {
      get claimed() {
        return now().claimed;
      },
    },
    signal: new AbortController().signal,
  };
  await drained(options as unknown as DrainOptions, 0);
  return at;
}

describe("a drain whose last look was made during a run", () => {
  it("goes on if each look was made during another run", async () => {
    const quiet = look(false);
    const next = look(true);
    const moments = [
      { look: quiet, claimed: 1 },
      { look: quiet, claimed: 1 },
      { look: look(false), claimed: 2 },
      { look: look(false), claimed: 3 },
      { look: next, claimed: 3 },
    ];
    expect(await momentsOf(moments)).toBeGreaterThan(moments.length);
  });

  it("goes on if the look was in progress when the run ended", async () => {
    const quiet = look(false);
    const inProgress = look(false);
    const moments = [
      { look: quiet, claimed: 1 },
      { look: quiet, claimed: 1 },
      { look: inProgress, claimed: 1 },
      { look: inProgress, claimed: 1 },
      { look: look(true), claimed: 1 },
    ];
    expect(await momentsOf(moments)).toBeGreaterThan(moments.length);
  });
});
