// Runs of workers that died: found in time, judged by core, charged by the rules, by reapers that know their limits.
import { describe, expect, it } from "vitest";
import { outside } from "../../src/jobs/batch-handler.ts";
import { defineJob } from "../../src/jobs/define-job.ts";
import { createMemoryStore } from "../../src/store/memory/index.ts";
import type { ExpiredRequest } from "../../src/store/store.ts";
import { withTypeLimits } from "../../src/worker/type-limits.ts";
import type { StoreClock } from "../simulation/faults.ts";
import { createWorld } from "../simulation/world.ts";
import { around, type Bench, createBench, cuttable, forever } from "../support/worker-bench.ts";

const LEASE = { lease: "10s", heartbeat: "2s" } as const;
const dying = defineJob("thumbnail", { run: forever });
const healthy = defineJob("thumbnail", { run: () => "done" });
const nobody = defineJob("nothing", { run: () => 1 });

/** A bench whose store has a clock that can be put ahead. */
function steppingBench(): { readonly bench: Bench; readonly clock: StoreClock } {
  const world = createWorld(1);
  const clock: StoreClock = { ahead: 0, now: () => world.now + clock.ahead };
  return { bench: createBench(1, createMemoryStore({ clock: clock.now }), world), clock };
}

/** A worker that took jobs and died with them. */
async function crash(bench: Bench, count: number, hiring: { host?: string; after?: number } = {}): Promise<string[]> {
  const { host, after = 100 } = hiring;
  const ids = await bench.addMany(count, healthy);
  const victim = await bench.employ([dying], { ...LEASE, ...(host !== undefined && { host }) });
  await bench.advance(after);
  victim.actor.crash();
  return ids;
}

describe("the charge of a dead worker's runs", () => {
  it("is a crash and an attempt for a run that a heartbeat had marked as started", async () => {
    const bench = createBench();
    const [id] = await crash(bench, 1, { after: 3_000 });
    const { worker } = await bench.employ([healthy], LEASE);
    await bench.until(() => worker.counts.completed === 1);
    expect(await bench.read(id as string)).toMatchObject({ attempts: 1, crashes: 1, epoch: 2 });
    const [record] = await bench.store.history(id as string);
    expect(record).toMatchObject({ attempt: 1, delayMs: 0, failure: { class: "crashed", name: "WorkerDied" } });
    expect(record?.failure.message).toMatch(/^Worker w-\w+ died while this job was running - crash 1\/3$/);
  });

  it("is an attempt too for a run that was claimed into a free slot and killed its worker at once", async () => {
    const bench = createBench();
    const [id] = await crash(bench, 1, { after: 5 });
    const { worker } = await bench.employ([healthy], LEASE);
    await bench.until(() => worker.counts.completed === 1);
    expect(await bench.read(id as string)).toMatchObject({ attempts: 1, crashes: 1 });
  });

  it("is a crash and no attempt for what was only fetched ahead", async () => {
    const bench = createBench();
    const mixed = defineJob("thumbnail", { run: (input) => (input === "long" ? forever() : bench.sleep(1)) });
    await bench.addMany(300, mixed, { payload: '"short"' });
    const started = await bench.add(mixed, { payload: '"long"' });
    const ahead = await bench.addMany(3, mixed, { payload: '"short"' });
    const victim = await bench.employ([mixed], { ...LEASE, concurrency: 1 });
    await bench.until(() => victim.worker.counts.claimed === 304 && victim.worker.counts.completed === 300);
    // Long enough for a beat, and not so long that what was fetched ahead goes back.
    await bench.advance(300);
    victim.actor.crash();
    const reaper = await bench.employ([nobody], LEASE);
    await bench.until(() => reaper.worker.counts.retried === 4);
    expect(await bench.read(started)).toMatchObject({ state: "queued", attempts: 1, crashes: 1 });
    for (const id of ahead) expect(await bench.read(id)).toMatchObject({ state: "queued", attempts: 0, crashes: 1 });
    expect((await bench.store.history(ahead[0] as string))[0]?.failure.message).toContain(
      "before this job had started",
    );
  });

  it("is nothing for what ran in a process of its own, also by a reaper that does not know the type", async () => {
    const bench = createBench();
    const command = defineJob("command", { maxAttempts: 1, batch: { size: 4 }, runBatch: outside(forever) });
    const ids = await bench.addMany(4, command, { maxAttempts: 1 });
    const inside = await bench.add(healthy);
    const jobs = [command, dying];
    const victim = await bench.employ(jobs, { ...LEASE, through: withTypeLimits(bench.store, jobs) });
    await bench.advance(3_000);
    victim.actor.crash();
    const reaper = await bench.employ([nobody], { ...LEASE, through: withTypeLimits(bench.store, [nobody]) });
    await bench.until(() => reaper.worker.counts.retried + reaper.worker.counts.released === 5);
    for (const id of ids) expect(await bench.read(id)).toMatchObject({ state: "queued", attempts: 0, crashes: 0 });
    expect(await bench.read(inside)).toMatchObject({ state: "queued", attempts: 1, crashes: 1 });
  });

  it("leads to death when the crash budget is spent, by a reaper that does not know the type", async () => {
    const bench = createBench();
    const id = await bench.add("killer", { maxCrashes: 2 });
    const killer = defineJob("killer", { run: forever });
    const reaper = await bench.employ([nobody], { lease: "2s" });
    for (let n = 0; n < 2; n++) {
      const victim = await bench.employ([killer], { lease: "2s", heartbeat: "100ms" });
      await bench.until(() => victim.worker.counts.claimed === 1);
      await bench.advance(500);
      victim.actor.crash();
      await bench.until(() => reaper.worker.counts.retried + reaper.worker.counts.dead === n + 1);
    }
    expect(await bench.read(id)).toMatchObject({ state: "dead", crashes: 2, attempts: 2 });
    expect((await bench.store.deadLetters({ limit: 1 })).items).toMatchObject([
      { reason: "crashed", crashes: 2, failure: { class: "crashed", severity: "critical" } },
    ]);
  });

  it("is none for a job that was asked to cancel: it is cancelled", async () => {
    const bench = createBench();
    const [id] = await crash(bench, 1);
    await bench.store.cancel([id as string]);
    const { worker } = await bench.employ([healthy], LEASE);
    await bench.until(() => worker.counts.cancelled === 1);
    expect(await bench.read(id as string)).toMatchObject({ state: "cancelled", attempts: 0, crashes: 0 });
  });
});

describe("a dead worker", () => {
  it("is found within one and a half seconds by another process of its host", async () => {
    const bench = createBench();
    const reaper = await bench.employ([nobody], { host: "here" });
    await crash(bench, 3, { host: "here" });
    expect(await bench.until(() => reaper.worker.counts.retried === 3)).toBeLessThanOrEqual(1_500);
  });

  it("is found as soon where it came after a calm in which no worker came or went", async () => {
    const bench = createBench();
    const reaper = await bench.employ([nobody], { ...LEASE, host: "here" });
    await bench.advance(30_000);
    await crash(bench, 3, { host: "here" });
    expect(await bench.until(() => reaper.worker.counts.retried === 3)).toBeLessThanOrEqual(1_500);
  });

  it("of another host is found within its lease and two seconds, and its jobs run elsewhere", async () => {
    const bench = createBench();
    const other = await bench.employ([nobody, healthy], { ...LEASE, queues: ["other"] });
    await bench.advance(20_000);
    await crash(bench, 3, { after: 2_100 });
    const took = await bench.until(() => other.worker.counts.retried === 3);
    expect(took).toBeGreaterThan(9_000);
    expect(took).toBeLessThanOrEqual(12_000);
  });

  it("of which others know nothing but its runs is reaped as well", async () => {
    const bench = createBench();
    const [id] = await crash(bench, 1, { host: "here", after: 3_000 });
    const [row] = await bench.store.workers();
    await bench.store.leave(row?.id as string);
    const { worker } = await bench.employ([healthy], { ...LEASE, host: "here" });
    await bench.until(() => worker.counts.completed === 1);
    expect(await bench.read(id as string)).toMatchObject({ state: "completed", crashes: 1 });
  });

  it("is forgotten once its runs are judged, and costs nothing from then on", async () => {
    const bench = createBench();
    const named: number[] = [];
    const through = around(bench.store, (verb, next, [request]) => {
      if (verb === "expired") named.push((request as ExpiredRequest).gone.length);
      return next();
    });
    await bench.employ([healthy], { ...LEASE, host: "here", through });
    for (let n = 0; n < 5; n++) await crash(bench, 1, { host: "here" });
    await bench.advance(60_000);
    expect((await bench.store.count()).completed).toBe(5);
    expect(await bench.store.workers()).toHaveLength(1);
    expect(named.at(-1)).toBe(0);
  });

  it("with more runs than a page holds loses none of them", async () => {
    const bench = createBench();
    const ids = await bench.addMany(450, healthy);
    const victim = await bench.employ([dying], { ...LEASE, concurrency: 450 });
    await bench.advance(3_000);
    victim.actor.crash();
    const reaper = await bench.employ([nobody], LEASE);
    await bench.until(() => reaper.worker.counts.retried === 450, 15_000);
    for (const job of await bench.store.get(ids)) expect(job).toMatchObject({ state: "queued", crashes: 1 });
  });

  it("found by several at once is judged once", async () => {
    const bench = createBench();
    const reapers = [];
    for (let n = 0; n < 4; n++) reapers.push(await bench.employ([nobody], { host: "here" }));
    const ids = await crash(bench, 10, { host: "here" });
    await bench.advance(5_000);
    for (const job of await bench.store.get(ids)) expect(job).toMatchObject({ state: "queued", crashes: 1, epoch: 1 });
    expect(reapers.reduce((sum, { worker }) => sum + worker.counts.retried, 0)).toBe(10);
  });
});

describe("a reaper", () => {
  /** A worker that lives but whose lease lapsed, because only it was cut off from the store. */
  async function lapsed(bench: Bench) {
    const line = cuttable(bench.store);
    const id = await bench.add(dying);
    await bench.employ([dying], { ...LEASE, through: line.store, onContactLost: "continue" });
    await bench.advance(100);
    line.away = true;
    await bench.advance(20_000);
    return { line, id };
  }

  it("that just started waits a full lease, so that those who live can show themselves", async () => {
    const bench = createBench();
    const { line, id } = await lapsed(bench);
    await bench.employ([nobody], LEASE);
    await bench.advance(5_000);
    line.away = false;
    await bench.advance(60_000);
    expect(await bench.read(id)).toMatchObject({ state: "running", epoch: 1, crashes: 0 });
  });

  it("waits a full lease from its start, however long ago it was made", async () => {
    const bench = createBench();
    const { worker } = bench.hire([nobody], LEASE);
    const { line, id } = await lapsed(bench);
    await bench.finish(worker.start());
    await bench.advance(5_000);
    line.away = false;
    await bench.advance(60_000);
    expect(await bench.read(id)).toMatchObject({ state: "running", epoch: 1, crashes: 0 });
  });

  it("that just reconnected waits a full lease", async () => {
    const bench = createBench();
    const own = cuttable(bench.store);
    await bench.employ([nobody], { ...LEASE, through: own.store });
    await bench.advance(1_000);
    own.away = true;
    const { line, id } = await lapsed(bench);
    own.away = false;
    await bench.advance(5_000);
    line.away = false;
    await bench.advance(60_000);
    expect(await bench.read(id)).toMatchObject({ state: "running", epoch: 1, crashes: 0 });
  });

  it("whose clock jumped waits a full lease", async () => {
    const bench = createBench();
    const reaper = await bench.employ([nobody], LEASE);
    await bench.advance(1_000);
    reaper.actor.pause(25_000);
    const { line, id } = await lapsed(bench);
    reaper.actor.skew(3_600_000);
    await bench.advance(9_000);
    line.away = false;
    await bench.advance(60_000);
    expect(await bench.read(id)).toMatchObject({ state: "running", epoch: 1, crashes: 0 });
  });

  it("charges nobody after an outage that everybody had", async () => {
    const bench = createBench();
    const line = cuttable(bench.store);
    const long = defineJob("long", { run: () => bench.sleep(120_000) });
    const ids = await bench.addMany(6, long);
    for (let n = 0; n < 3; n++) {
      await bench.employ([long], { ...LEASE, concurrency: 2, through: line.store, onContactLost: "continue" });
    }
    await bench.advance(5_000);
    line.away = true;
    await bench.advance(60_000);
    line.away = false;
    await bench.advance(90_000);
    for (const job of await bench.store.get(ids)) {
      expect(job).toMatchObject({ state: "completed", attempts: 0, crashes: 0, epoch: 1 });
    }
  });

  it("waits for as long as a worker's lease is, however short its own", async () => {
    const bench = createBench();
    const line = cuttable(bench.store);
    const ids = await bench.addMany(4, dying);
    const slow = { lease: "60s", heartbeat: "20s", onContactLost: "continue" } as const;
    await bench.employ([dying], { ...slow, through: line.store });
    await bench.employ([nobody], { lease: "2s", through: line.store });
    await bench.advance(5_000);
    line.away = true;
    await bench.advance(90_000);
    line.away = false;
    await bench.advance(120_000);
    for (const job of await bench.store.get(ids)) expect(job).toMatchObject({ state: "running", crashes: 0, epoch: 1 });
  });

  it("that was held up for longer than a worker's lease waits for it, however long its own", async () => {
    const bench = createBench();
    let held: Promise<void> | null = null;
    const waiting = (rank: number) =>
      around(bench.store, async (_verb, next) => {
        if (held) await held.then(() => bench.sleep(rank));
        return next();
      });
    const id = await bench.add(dying);
    const short = { lease: "3s", heartbeat: "1s", onContactLost: "continue" } as const;
    await bench.employ([dying], { ...short, through: waiting(2_000) });
    await bench.employ([nobody], { lease: "60s", through: waiting(0) });
    await bench.advance(90_000);
    held = bench.sleep(10_000).then(() => void (held = null));
    await bench.advance(60_000);
    expect(await bench.read(id)).toMatchObject({ state: "running", crashes: 0, epoch: 1 });
  });

  it("gives up no healthy worker when the store's clock steps ahead, and still finds those that die", async () => {
    const { bench, clock } = steppingBench();
    const ids = await bench.addMany(3, dying);
    const hired = await bench.employ([dying], LEASE);
    // The reaper looks between two heartbeats of the worker, and the clock steps just after one of them.
    await bench.advance(500);
    const reaper = await bench.employ([nobody], LEASE);
    await bench.advance(1_700);
    for (const stepMs of [8_000, 3_600_000]) {
      await bench.advance(30_000);
      clock.ahead += stepMs;
      await bench.advance(30_000);
      for (const job of await bench.store.get(ids)) expect(job).toMatchObject({ state: "running", crashes: 0 });
    }
    hired.actor.crash();
    clock.ahead += 3_600_000;
    expect(await bench.until(() => reaper.worker.counts.retried === 3)).toBeLessThanOrEqual(12_000);
  });

  it("gives up no healthy worker when the store's clock steps ahead before its first look", async () => {
    const { bench, clock } = steppingBench();
    const id = await bench.add(dying);
    await bench.employ([dying], LEASE);
    await bench.advance(30_000);
    await bench.employ([nobody], { lease: "600ms" });
    clock.ahead += 3_600_000;
    await bench.advance(30_000);
    expect(await bench.read(id)).toMatchObject({ state: "running", crashes: 0, epoch: 1 });
  });

  it("that waited long for the store's answer itself gives up nobody who waited as long", async () => {
    const bench = createBench();
    // A lock that somebody holds: writes wait and are not refused; reads go through, as in SQLite's WAL.
    let locked: Promise<void> | null = null;
    const order = { reaper: 0, worker: 1 };
    const waiting = (rank: number) =>
      around(bench.store, async (verb, next) => {
        if (locked && verb !== "workers" && verb !== "control") {
          await locked;
          await bench.sleep(rank);
        }
        return next();
      });
    const id = await bench.add(dying);
    const short = { lease: "3s", heartbeat: "1s", onContactLost: "continue" } as const;
    await bench.employ([dying], { ...short, through: waiting(order.worker) });
    await bench.employ([nobody], { ...short, through: waiting(order.reaper) });
    await bench.advance(10_000);
    locked = bench.sleep(4_000);
    await bench.advance(30_000);
    expect(await bench.read(id)).toMatchObject({ state: "running", crashes: 0, attempts: 0, epoch: 1 });
  });
});
