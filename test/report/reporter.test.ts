// What people and programs hear about runs: the log lines, the events and the hook for deaths.
import { describe, expect, it } from "vitest";
import { fixed } from "../../src/core/backoff.ts";
import { defineJob } from "../../src/jobs/define-job.ts";
import type { Store } from "../../src/store/store.ts";
import { around, createBench, forever } from "../support/worker-bench.ts";

const failing = defineJob("thumbnail", {
  maxAttempts: 3,
  backoff: fixed("5s"),
  run: () => {
    throw new Error("no such file");
  },
});

describe("the log", () => {
  it("tells the life of a failing job", async () => {
    const bench = createBench();
    await bench.add(failing);
    const { worker, lines } = await bench.employ([failing]);
    await bench.until(() => worker.counts.dead === 1);
    expect(lines.map(({ level, message }) => `${level} ${message}`)).toEqual([
      "info processing (attempt 1/3)",
      "warn Error: no such file (attempt 1/3), requeueing for attempt 2 in 5s",
      "info processing (attempt 2/3)",
      "warn Error: no such file (attempt 2/3), requeueing for attempt 3 in 5s",
      "info processing (attempt 3/3)",
      "error Error: no such file (attempt 3/3), moved to the dead letter queue",
    ]);
  });

  it("names job and type on every line about a run", async () => {
    const bench = createBench();
    const fine = defineJob("fine", { run: () => 1 });
    await bench.add(failing);
    await bench.add(fine);
    const { worker, lines } = await bench.employ([failing, fine]);
    await bench.until(() => worker.counts.dead === 1);
    for (const { fields } of lines) expect(fields).toMatchObject({ job: expect.any(String), type: expect.any(String) });
    expect(lines.some(({ fields }) => "key" in fields)).toBe(false);
  });

  it("names the key on every line about a job that has one", async () => {
    const bench = createBench();
    await bench.add(failing, { key: "order-17" });
    const { worker, lines } = await bench.employ([failing]);
    await bench.until(() => worker.counts.dead === 1);
    expect(lines.map(({ fields }) => (fields as { readonly key?: string }).key)).toEqual(
      Array.from({ length: 6 }, () => "order-17"),
    );
  });
});

describe("onDead", () => {
  it("is called once for a job that died of its failures", async () => {
    const bench = createBench();
    const died: string[] = [];
    const job = defineJob("thumbnail", { ...optionsOf(), onDead: ({ id }) => void died.push(id) });
    const id = await bench.add(job);
    const { worker } = await bench.employ([job]);
    await bench.until(() => worker.counts.dead === 1);
    expect(died).toEqual([id]);
  });

  it("is called for a job that was reaped, by whoever judged it", async () => {
    const bench = createBench();
    const died: string[] = [];
    const job = defineJob("killer", { maxCrashes: 1, run: forever, onDead: ({ id }) => void died.push(id) });
    const id = await bench.add(job);
    const first = await bench.employ([job], { lease: "2s" });
    await bench.advance(100);
    first.actor.crash();
    const second = await bench.employ([job], { lease: "2s" });
    await bench.until(() => second.worker.counts.dead === 1);
    expect(died).toEqual([id]);
    expect(second.heard("job.dead")).toHaveLength(1);
    expect(second.said("moved to the dead letter queue")).toHaveLength(1);
  });

  const thrown: readonly [string, unknown][] = [
    ["an error", new Error("hook")],
    ["undefined", undefined],
    ["something without a text", Object.create(null)],
  ];
  for (const [what, value] of thrown) {
    it(`harms nobody when it throws or rejects with ${what}`, async () => {
      const bench = createBench();
      const sync = defineJob("sync", {
        ...optionsOf(),
        onDead: () => {
          throw value;
        },
      });
      const rejecting = defineJob("rejecting", { ...optionsOf(), onDead: () => Promise.reject(value as Error) });
      const fine = defineJob("fine", { run: () => "fine" });
      await bench.add(sync);
      await bench.add(rejecting);
      const { worker, said } = await bench.employ([sync, rejecting, fine]);
      await bench.advance(20_000);
      await bench.addMany(5, fine);
      await bench.until(() => worker.counts.completed === 5);
      expect(worker.counts.dead).toBe(2);
      expect(said("onDead of")).toHaveLength(2);
    });
  }
});

describe("an event", () => {
  it("carries the job and the verdict", async () => {
    const bench = createBench();
    const id = await bench.add(failing);
    const hired = await bench.employ([failing]);
    await bench.until(() => hired.worker.counts.dead === 1);
    expect(hired.heard("job.dead")).toMatchObject([{ job: { id }, verdict: { kind: "dead", reason: "exhausted" } }]);
  });

  it("that its listener cannot bear harms nobody", async () => {
    const bench = createBench();
    const fine = defineJob("fine", { run: () => "fine" });
    await bench.addMany(3, fine);
    const onEvent = (): never => {
      throw new Error("listener");
    };
    const { worker } = bench.hire([fine], { onEvent });
    await bench.finish(worker.start());
    await bench.advance(5_000);
    expect(await bench.store.count()).toMatchObject({ completed: 3, queued: 0, running: 0 });
  });
});

describe("a verdict", () => {
  it("that was refused is counted as stale and told, not as done", async () => {
    const bench = createBench();
    const slow = defineJob("slow", { run: (_input, { job }) => (job.epoch === 1 ? bench.sleep(9_000) : undefined) });
    await bench.add(slow);
    const zombie = await bench.employ([slow], { lease: "2s" });
    const other = await bench.employ([slow], { lease: "2s" });
    zombie.actor.pause(8_000);
    await bench.until(() => other.worker.counts.completed === 1);
    await bench.until(() => zombie.worker.counts.stale === 1);
    expect(zombie.worker.counts.completed).toBe(0);
    expect(zombie.heard("job.stale")).toHaveLength(1);
    expect(zombie.said("lease lost")).toHaveLength(1);
  });

  it("that was written keeps its word when a late progress of the same run is refused", async () => {
    const bench = createBench();
    let inFlight = 0;
    // A slow store, so that a verdict waits for the commit under way and shares the next one.
    const through = around(bench.store, async (verb, next) => {
      if (verb === "settle" && inFlight++ === 0) await bench.sleep(100);
      return next();
    }) as Store;
    const refused: unknown[] = [];
    const job = defineJob("thumbnail", {
      run: async (input, context) => {
        if (input === "first") return;
        await bench.sleep(10);
        void bench.sleep(10).then(() => context.progress("late").catch((error: unknown) => refused.push(error)));
      },
    });
    await bench.add(job, { payload: '"first"' });
    const id = await bench.add(job, { payload: '"second"' });
    const { worker } = await bench.employ([job], { through });
    await bench.advance(2_000);
    expect(refused).toHaveLength(1);
    expect((await bench.read(id)).state).toBe("completed");
    expect(worker.counts).toMatchObject({ completed: 2, stale: 0 });
  });
});

function optionsOf() {
  return {
    maxAttempts: 1,
    run: () => {
      throw new Error("no such file");
    },
  };
}
