// The job after a verdict, as a worker tells it without asking the store: it must be what the store made of it, and by it a
// worker whose answer was lost finds out whether its verdict counted.
import { describe, expect, it, onTestFinished } from "vitest";
import { isSettledBy, settledJob } from "../../src/core/after-verdict.ts";
import { createMemoryStore } from "../../src/store/memory/index.ts";
import type { Settlement } from "../../src/store/store.ts";
import { end, leaseOf, start } from "../support/runs.ts";
import { cancel, complete, dead, release, retry } from "../support/verdicts.ts";

const NOW = 1_767_225_600_000;
const VERDICTS: Readonly<Record<string, Settlement["verdict"]>> = {
  complete: complete(),
  cancel: cancel(),
  release: release(),
  retry: retry({ delayMs: 700 }),
  dead: dead(),
};

async function claimed() {
  const store = createMemoryStore({ clock: () => NOW });
  onTestFinished(() => store.close());
  const job = await start(store, { keepFinishedMs: 1_000, keepDeadMs: 2_000 });
  return { store, job };
}

describe("a job after its verdict", () => {
  it.each(Object.keys(VERDICTS))("is what the store holds: %s", async (kind) => {
    const { store, job } = await claimed();
    const verdict = VERDICTS[kind] as (typeof VERDICTS)[string];
    const found = await end(store, leaseOf(job), verdict);
    const told = settledJob(job, verdict as never, NOW);
    for (const field of [
      "state",
      "attempts",
      "crashes",
      "releases",
      "runAt",
      "finishedAt",
      "expiresAt",
      "lastDelayMs",
    ] as const)
      expect([field, told[field]]).toEqual([field, found[field]]);
    expect(isSettledBy(found, job, verdict as never)).toBe(true);
  });

  it.each(Object.keys(VERDICTS))("is not taken for that of another verdict: %s", async (kind) => {
    const { store, job } = await claimed();
    const found = await end(store, leaseOf(job), VERDICTS[kind] as (typeof VERDICTS)[string]);
    for (const [other, verdict] of Object.entries(VERDICTS))
      if (other !== kind) expect([other, isSettledBy(found, job, verdict as never)]).toEqual([other, false]);
    expect(isSettledBy({ ...found, epoch: found.epoch + 1 }, job, VERDICTS[kind] as never)).toBe(false);
    expect(isSettledBy({ ...found, generation: found.generation + 1 }, job, VERDICTS[kind] as never)).toBe(false);
  });
});
