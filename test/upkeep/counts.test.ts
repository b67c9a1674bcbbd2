// The upkeep of counts: folds until nothing is left, and recounts once a day in the whole fleet.
import { describe, expect, it } from "vitest";
import { createMemoryStore } from "../../src/store/memory/index.ts";
import type { Store } from "../../src/store/store.ts";
import { countsService } from "../../src/upkeep/counts.ts";
import { collectLog } from "../../src/testing/collect-log.ts";

const HOUR = 3_600_000;

/** A store whose folds and recounts are noted; a recount takes three steps. */
function noted() {
  const clock = { now: 1_767_225_600_000 };
  const memory = createMemoryStore({ clock: () => clock.now });
  const calls: string[] = [];
  let folds = 3;
  const store: Store = {
    ...memory,
    async fold() {
      calls.push("fold");
      folds -= 1;
      return { more: folds > 0 };
    },
    async recount({ after }) {
      calls.push(`recount ${after}`);
      return { mended: 2, next: after === "bb" ? null : `${after}b` };
    },
  };
  return { store, calls, clock };
}

const system = (clock: { now: number }) => ({
  random: () => 0.5,
  monotonic: () => clock.now,
  after: () => () => undefined,
});

describe("the upkeep of counts", () => {
  it("folds until nothing is left, and recounts once a day, whichever worker comes first", async () => {
    const { store, calls, clock } = noted();
    const log = collectLog();
    const workers = [1, 2].map(() => countsService({ store, log, system: system(clock) }));
    const never = new AbortController().signal;
    for (const worker of workers) await worker.step(never);
    expect(calls).toEqual(["fold", "fold", "fold", "recount ", "recount b", "recount bb", "fold"]);
    expect(log.said("were corrected").map(({ fields }) => fields)).toEqual([{ letters: 6 }]);
    calls.length = 0;
    for (let hours = 0; hours < 25; hours++) {
      clock.now += HOUR;
      for (const worker of workers) await worker.step(never);
    }
    expect(calls.filter((call) => call === "recount ")).toHaveLength(1);
  });

  it("leaves an interrupted recount to the next that looks", async () => {
    const { store, calls, clock } = noted();
    const log = collectLog();
    const stopped = new AbortController();
    const interrupted = {
      ...store,
      fold: async () => ({ more: false }),
      recount: async () => (stopped.abort(), { mended: 0, next: "x" }),
    };
    await countsService({ store: interrupted, log, system: system(clock) }).step(stopped.signal);
    await countsService({ store, log, system: system(clock) }).step(new AbortController().signal);
    expect(calls).toContain("recount bb");
  });

  it("leaves a recount that the store has refused to the next that looks", async () => {
    const { store, calls, clock } = noted();
    const log = collectLog();
    const refusing = {
      ...store,
      fold: async () => ({ more: false }),
      recount: async () => Promise.reject(new Error("The store does not answer.")),
    };
    const never = new AbortController().signal;
    await expect(countsService({ store: refusing, log, system: system(clock) }).step(never)).rejects.toThrow("answer");
    await countsService({ store, log, system: system(clock) }).step(never);
    expect(calls).toContain("recount bb");
  });
});
