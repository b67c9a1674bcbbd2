// A verdict that the store refuses for good: it is reported, and those beside it are written as if it were not there.
import { describe, expect, it } from "vitest";
import { fixed } from "../../src/core/backoff.ts";
import { RedriveError } from "../../src/core/errors.ts";
import { defineJob } from "../../src/jobs/define-job.ts";
import { createInlineSqliteStore } from "../../src/store/sqlite/inline.ts";
import type { SettleRequest, Store } from "../../src/store/store.ts";
import { connect, testPath } from "../support/database-file.ts";
import { add, read } from "../support/runs.ts";
import { around, createBench } from "../support/worker-bench.ts";

/** A store that takes no verdict about the guilty job, and how large the groups were that it refused. */
function refusing(store: Store) {
  const refused: number[] = [];
  const trap = { guilty: "", refused, store };
  trap.store = around(store, async (verb, next, [request]) => {
    const { settlements = [] } = (request ?? {}) as Partial<SettleRequest>;
    if (verb !== "settle" || !settlements.some(({ id }) => id === trap.guilty)) return next();
    refused.push(settlements.length);
    throw new RedriveError("illegal_transition", "The database refused this write.");
  });
  return trap;
}

describe("a verdict that the store refuses", () => {
  it("keeps nobody of its group from being settled, and is reported", async () => {
    const bench = createBench();
    const trap = refusing(bench.store);
    const together = bench.sleep(1_000);
    const job = defineJob("quick", { run: () => together });
    const ids = await bench.addMany(10, job);
    trap.guilty = ids[4] as string;
    const hired = await bench.employ([job], { through: trap.store });
    await bench.until(() => hired.worker.counts.completed === 9, 2_000);
    expect(Math.max(...trap.refused)).toBe(10);
    for (const id of ids.filter((one) => one !== trap.guilty)) expect((await bench.read(id)).state).toBe("completed");
    const errors = hired.lines.filter(({ level }) => level === "error");
    expect(errors.length).toBeGreaterThan(0);
    expect(JSON.stringify(errors)).toContain("refused this write");
    expect(hired.worker.counts).toMatchObject({ completed: 9, stale: 0 });
  });

  it("is no outage: the worker goes on taking work, and does not ask again and again", async () => {
    const bench = createBench();
    const trap = refusing(bench.store);
    const job = defineJob("quick", { run: () => 1 });
    trap.guilty = await bench.add(job);
    const hired = await bench.employ([job], { through: trap.store });
    await bench.advance(1_000);
    await bench.addMany(50, job);
    await bench.until(() => hired.worker.counts.completed === 50, 5_000);
    await bench.advance(60_000);
    expect(hired.said("did not answer")).toEqual([]);
    expect(trap.refused.length).toBeLessThanOrEqual(4);
    await bench.finish(hired.worker.stop({ withinMs: 1_000 }), 10_000);
  });

  it("of a completion becomes a dead letter that says so, where that can be written", async () => {
    const bench = createBench();
    const through = around(bench.store, async (verb, next, [request]) => {
      const { settlements = [] } = (request ?? {}) as Partial<SettleRequest>;
      if (verb === "settle" && settlements.some(({ verdict }) => verdict.kind === "complete"))
        throw new RedriveError("illegal_transition", "The database refused this write.");
      return next();
    });
    const job = defineJob("quick", { run: () => 1 });
    const id = await bench.add(job);
    await bench.employ([job], { through });
    await bench.advance(1_000);
    expect(await bench.read(id)).toMatchObject({ state: "dead", failure: { name: "VerdictRefused" } });
  });
});

describe("a dead job that somebody set back by hand in SQLite", () => {
  async function setup() {
    const bench = createBench();
    const path = testPath();
    const store = createInlineSqliteStore({ path, clock: () => bench.world.now });
    await store.migrate();
    let failures = 0;
    const fails = defineJob("fails", {
      maxAttempts: 2,
      backoff: fixed(100),
      run: () => {
        throw new Error(`failure number ${++failures}`);
      },
    });
    const quick = defineJob("quick", { run: () => bench.sleep(100) });
    const hired = await bench.employ([fails, quick], { through: store });
    const id = await add(store, { type: "fails", maxAttempts: 2 });
    await bench.until(() => hired.worker.counts.dead === 1);
    const setBack = (): number =>
      connect(path)
        .prepare(
          `update job set state = 'queued', finished_at = null, expires_at = null, attempts = 0, run_at = ? where id = ? and state = 'dead'`,
        )
        .run(bench.world.now, id);
    return { bench, store, hired, id, setBack };
  }

  it("fails and dies again, while five healthy ones beside it complete", async () => {
    const { bench, store, hired, id, setBack } = await setup();
    const { worker } = hired;
    const before = (await store.deadLetters({ limit: 10 })).items;
    expect(before).toMatchObject([{ job: { id }, failure: { message: "failure number 2" } }]);
    await bench.advance(5_000);
    expect(setBack()).toBe(1);
    const healthy: string[] = [];
    for (let n = 0; n < 5; n++) healthy.push(await add(store, { type: "quick" }));
    await bench.until(() => worker.counts.completed === 5 && worker.counts.dead === 2, 10_000);
    for (const one of healthy) expect((await read(store, one)).state).toBe("completed");
    expect(await read(store, id)).toMatchObject({ state: "dead", attempts: 2 });
    expect(hired.said("did not answer")).toEqual([]);
    expect(hired.said("could not be written")).toEqual([]);
    const { items } = await store.deadLetters({ limit: 10 });
    expect(items).toMatchObject([{ job: { id }, reason: "exhausted", failure: { message: "failure number 4" } }]);
    expect((items[0]?.diedAt ?? 0) - (before[0]?.diedAt ?? 0)).toBeGreaterThanOrEqual(5_000);
    await bench.finish(worker.stop());
    await store.close();
  });

  it("can be redriven from its newer dead letter", async () => {
    const { bench, store, hired, id, setBack } = await setup();
    setBack();
    await bench.until(() => hired.worker.counts.dead === 2, 10_000);
    const generation = (await read(store, id)).generation;
    expect(await store.redrive([{ id, generation, delayMs: 0 }])).toEqual(["redriven"]);
    await bench.until(() => hired.worker.counts.dead === 3, 10_000);
    expect((await store.deadLetters({ limit: 10 })).items[0]?.failure.message).toBe("failure number 6");
    await bench.finish(hired.worker.stop());
    await store.close();
  });
});
