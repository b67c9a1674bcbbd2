// Runs of a dead worker of which the store refuses one: the others are taken over, and the refusal is said.
import { describe, expect, it } from "vitest";
import { RedriveError } from "../../src/core/errors.ts";
import type { Job } from "../../src/core/job.ts";
import { PRESETS } from "../../src/core/policy.ts";
import { defineJob } from "../../src/jobs/define-job.ts";
import type { SettleRequest, Store } from "../../src/store/store.ts";
import { reap, type ReaperOptions } from "../../src/upkeep/expired-runs.ts";
import { around, type Bench, createBench, forever, unavailable } from "../support/worker-bench.ts";

const LEASE = { lease: "10s", heartbeat: "2s" } as const;
const dying = defineJob("thumbnail", { run: forever });
const healthy = defineJob("thumbnail", { run: () => "done" });

/** Jobs in the hands of a worker of this host that is gone. */
async function orphans(bench: Bench, count: number): Promise<string[]> {
  const ids = await bench.addMany(count, dying);
  const victim = await bench.employ([dying], { ...LEASE, host: "here", concurrency: count });
  await bench.advance(100);
  victim.actor.crash();
  return ids;
}

/** A store that answers with this error wherever the guilty job is among the settled. */
function guarded(store: Store, guilty: () => string, error: () => RedriveError) {
  const calls: number[] = [];
  const through = around(store, async (verb, next, [request]) => {
    if (verb !== "settle") return next();
    const { settlements } = request as SettleRequest;
    calls.push(settlements.length);
    if (settlements.some(({ id }) => id === guilty())) throw error();
    return next();
  });
  return { through, calls };
}

const refusal = (): RedriveError => new RedriveError("illegal_transition", "The database refused this write.");

/** A reaper on the host of the dead that has been in contact for long. */
function reaper(bench: Bench, store: Store, reported: Job[]): ReaperOptions {
  const { system } = bench.world.spawn("reaper", async () => undefined);
  return {
    store,
    system,
    self: "reaper",
    host: "here",
    isAlive: () => false,
    policyOf: () => PRESETS.default,
    leaseMs: 10_000,
    hasLasted: () => true,
    onTold: () => undefined,
    report: (job) => void reported.push(job),
  };
}

describe("reap", () => {
  it("settles all but the one that the store refuses, reports those, and then says what was refused", async () => {
    const bench = createBench();
    const ids = await orphans(bench, 6);
    const guilty = ids[2] as string;
    const { through, calls } = guarded(bench.store, () => guilty, refusal);
    const reported: Job[] = [];
    await expect(reap(reaper(bench, through, reported))).rejects.toMatchObject({ code: "illegal_transition" });
    expect(calls).toEqual([6, 1, 1, 1, 1, 1, 1]);
    const others = ids.filter((id) => id !== guilty);
    for (const id of others) expect(await bench.read(id)).toMatchObject({ state: "queued", crashes: 1 });
    expect(reported.map(({ id }) => id).sort()).toEqual(others.sort());
    expect((await bench.read(guilty)).state).toBe("running");
  });

  it("goes on behind a page with a refused one", async () => {
    const bench = createBench();
    const ids = await orphans(bench, 250);
    const { through } = guarded(bench.store, () => ids[0] as string, refusal);
    const reported: Job[] = [];
    await expect(reap(reaper(bench, through, reported))).rejects.toMatchObject({ code: "illegal_transition" });
    expect(reported).toHaveLength(249);
    expect(await bench.store.count()).toMatchObject({ running: 1, queued: 249 });
  });

  it("is not split by an outage, which concerns them all", async () => {
    const bench = createBench();
    const ids = await orphans(bench, 6);
    const { through, calls } = guarded(bench.store, () => ids[0] as string, unavailable);
    const reported: Job[] = [];
    await expect(reap(reaper(bench, through, reported))).rejects.toMatchObject({ code: "store_unavailable" });
    expect(calls).toEqual([6]);
    expect(reported).toEqual([]);
  });
});

describe("a worker that finds a dead worker's runs of which one is refused", () => {
  it("takes over the others, says so once a second at most, and is not out of contact", async () => {
    const bench = createBench();
    const ids = await orphans(bench, 6);
    const guilty = ids[3] as string;
    const { through } = guarded(bench.store, () => guilty, refusal);
    const hired = await bench.employ([healthy], { ...LEASE, host: "here", through });
    await bench.until(() => hired.worker.counts.completed === 5, 10_000);
    const from = bench.world.now;
    await bench.advance(30_000);
    const said = hired.said("reap failed");
    expect(said.length).toBeGreaterThan(0);
    expect(said.filter(({ at }) => at > from).length).toBeLessThanOrEqual(31);
    expect(said[0]).toMatchObject({ level: "error", fields: { error: expect.stringContaining("refused this write") } });
    expect(hired.said("did not answer")).toEqual([]);
    expect(hired.worker.isReady).toBe(true);
  });
});
