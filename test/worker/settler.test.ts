// Verdicts on their way to the store: shared commits, stale answers, outages.
import { describe, expect, it } from "vitest";
import { defineJob } from "../../src/jobs/define-job.ts";
import { WRITE_LENGTH } from "../../src/store/group-commit.ts";
import type { ClaimedJob, SettleRequest, Store } from "../../src/store/store.ts";
import { lineLog } from "../../src/system/log.ts";
import { realSystem } from "../../src/system/real.ts";
import { openContact } from "../../src/store/store-contact.ts";
import { openSettler } from "../../src/worker/settler.ts";
import { around, createBench, cuttable } from "../support/worker-bench.ts";

/** The store as one that is a server away, or is not. */
function away(store: Store, remote: boolean): Store {
  return new Proxy(store, { get: (target, key) => (key === "remote" ? remote : Reflect.get(target, key)) });
}

describe("a settler", () => {
  it("shares commits under load: one is under way, what arrives meanwhile goes with the next", async () => {
    const bench = createBench();
    const groups: number[] = [];
    let underWay = 0;
    let most = 0;
    const through = around(bench.store, async (verb, next, [request]) => {
      if (verb !== "settle") return next();
      most = Math.max(most, ++underWay);
      groups.push((request as SettleRequest).settlements.length);
      await bench.sleep(10);
      const answer = await next();
      underWay -= 1;
      return answer;
    });
    const job = defineJob("quick", { run: () => bench.sleep(1) });
    await bench.addMany(2_000, job);
    const { worker } = await bench.employ([job], { concurrency: 50, through });
    await bench.until(() => worker.counts.completed === 2_000);
    expect(most).toBe(1);
    expect(groups.reduce((sum, count) => sum + count, 0)).toBe(2_000);
    expect(groups.length).toBeLessThan(100);
    expect(Math.max(...groups)).toBeLessThanOrEqual(1_000);
  });

  it("writes no more at once than a store is to read at once, however long results are", async () => {
    const bench = createBench();
    const lengths: number[] = [];
    const through = around(bench.store, async (verb, next, [request]) => {
      if (verb === "settle") lengths.push(JSON.stringify((request as SettleRequest).settlements).length);
      return next();
    });
    const together = bench.sleep(1_000);
    const job = defineJob("large", { run: () => together.then(() => "x".repeat(60_000)) });
    await bench.addMany(400, job);
    const { worker } = await bench.employ([job], { concurrency: 400, through });
    await bench.until(() => worker.counts.completed === 400);
    // What the other fields of a verdict add is little beside its texts.
    expect(Math.max(...lengths)).toBeLessThan(1.1 * WRITE_LENGTH);
    expect(lengths.reduce((sum, length) => sum + length, 0)).toBeGreaterThan(2 * WRITE_LENGTH);
  });

  it("writes at once when it is idle", async () => {
    const bench = createBench();
    const job = defineJob("quick", { run: () => 1 });
    const { worker } = await bench.employ([job]);
    await bench.advance(5_000);
    const id = await bench.add(job);
    expect(await bench.until(() => worker.counts.completed === 1)).toBe(0);
    expect((await bench.read(id)).state).toBe("completed");
  });

  it("writes verdicts of several kinds at the same time where the store is a server away, else together", async () => {
    for (const remote of [true, false]) {
      const bench = createBench();
      const kinds: string[][] = [];
      let most = 0;
      let underWay = 0;
      const through = around(bench.store, async (verb, next, [request]) => {
        if (verb !== "settle") return next();
        most = Math.max(most, ++underWay);
        kinds.push([...new Set((request as SettleRequest).settlements.map(({ verdict }) => verdict.kind))]);
        await bench.sleep(10);
        const answer = await next();
        underWay -= 1;
        return answer;
      });
      const together = bench.sleep(1_000);
      // What ends while this is being written goes with the next.
      const first = defineJob("first", { run: () => bench.sleep(995) });
      const good = defineJob("good", { run: () => together });
      const bad = defineJob("bad", { run: () => together.then(() => Promise.reject(new Error("no"))) });
      await bench.add(first);
      for (const job of [good, bad]) await bench.addMany(10, job);
      const { worker } = await bench.employ([first, good, bad], { concurrency: 50, through: away(through, remote) });
      await bench.until(() => worker.counts.completed === 11 && worker.counts.retried >= 10);
      expect(most).toBe(remote ? 2 : 1);
      const apart = [["complete"], ["retry"]];
      expect(kinds.slice(1, 3).map((each) => each.sort())).toEqual(
        expect.arrayContaining(remote ? apart : [apart.flat()]),
      );
    }
  });

  it("writes what a run said of its progress before its verdict, also where the store is a server away", async () => {
    const bench = createBench();
    const kinds: string[][] = [];
    const through = around(bench.store, async (verb, next, [request]) => {
      if (verb === "settle") kinds.push((request as SettleRequest).settlements.map(({ verdict }) => verdict.kind));
      return next();
    });
    const together = bench.sleep(1_000);
    const job = defineJob("told", {
      run: async (_input, { progress }) => {
        await together;
        void progress({ done: 1 });
        return 1;
      },
    });
    await bench.addMany(3, job);
    const { worker } = await bench.employ([job], { concurrency: 50, through: away(through, true) });
    await bench.until(() => worker.counts.completed === 3);
    expect(kinds.flat().filter((kind) => kind === "progress")).toHaveLength(3);
    expect(kinds.find((group) => group.includes("progress"))?.[0]).toBe("progress");
  });

  it("counts stale answers, and those beside them count all the same", async () => {
    const bench = createBench();
    const together = bench.sleep(1_000);
    const job = defineJob("quick", { run: () => together });
    const ids = await bench.addMany(10, job);
    // Somebody else ends three of the runs in the moment before they are settled.
    let stolen = false;
    const through = around(bench.store, async (verb, next, [request]) => {
      if (verb === "settle" && !stolen) {
        stolen = true;
        const { settlements } = request as SettleRequest;
        const verdict = { kind: "release", reason: "shutdown", delayMs: 3_600_000 } as const;
        await bench.store.settle({ settlements: settlements.slice(0, 3).map((one) => ({ ...one, verdict })) });
      }
      return next();
    });
    const hired = await bench.employ([job], { through });
    await bench.until(() => hired.worker.counts.completed === 7);
    expect(hired.worker.counts.stale).toBe(3);
    expect(hired.heard("job.stale")).toHaveLength(3);
    const states = (await bench.store.get(ids)).map((one) => one?.state);
    expect(states.filter((state) => state === "completed")).toHaveLength(7);
  });

  it("tells two leases of one epoch apart, as they come from a server that forgot its last claims", async () => {
    const bench = createBench();
    const settled: string[] = [];
    const settler = openSettler({
      store: around(bench.store, async (verb, next, [request]) => {
        if (verb !== "settle") return next();
        const { settlements } = request as SettleRequest;
        return { stale: settlements.filter(({ nonce }) => nonce === "old"), now: 0 };
      }),
      system: realSystem,
      contact: openContact(realSystem, lineLog("silent")),
      self: { id: "w", startedThrough: 0 },
      release: null,
      giveUp: new AbortController().signal,
      onError: (error) => void settled.push(String(error)),
    });
    const verdict = { kind: "complete", result: null } as const;
    const job = { id: "a", epoch: 3 } as ClaimedJob;
    for (const nonce of ["first", "old", "new"])
      settler.settle({ ...job, nonce }, verdict, (what) => void settled.push(`${nonce} ${what}`));
    expect(settler.isSettling({ id: "a", epoch: 3, nonce: "new" })).toBe(true);
    expect(settler.isSettling({ id: "a", epoch: 3, nonce: "unknown" })).toBe(false);
    await settler.idle();
    expect(settled).toEqual(["first counted", "old stale", "new counted"]);
  });

  it("waits for a job that somebody holds beside all others, and writes what its run said in order", async () => {
    const bench = createBench();
    const isHeld = { now: true };
    let held = "";
    const groups: number[] = [];
    const through = around(bench.store, async (verb, next, [request]) => {
      const { settlements = [] } = (request ?? {}) as Partial<SettleRequest>;
      const locked = settlements.filter(({ id }) => isHeld.now && id === held);
      if (verb !== "settle" || locked.length === 0) return next();
      groups.push(settlements.length);
      await bench.sleep(500);
      const others = settlements.filter(({ id }) => id !== held);
      return { ...(await bench.store.settle({ settlements: others })), locked };
    });
    const job = defineJob("quick", {
      run: async (_input, ctx) => {
        if (ctx.job.id === held) void ctx.progress("half");
        await bench.sleep(100);
        return "whole";
      },
    });
    held = await bench.add(job);
    const { worker, lines } = await bench.employ([job], { concurrency: 5, through });
    await bench.addMany(200, job);
    expect(await bench.until(() => worker.counts.completed === 200)).toBeLessThanOrEqual(10_000);
    // The first met what came with the progress, the second what came with the verdict.
    expect(Math.max(...groups.slice(2))).toBeLessThanOrEqual(2);
    await bench.advance(20_000);
    expect(worker.counts).toMatchObject({ completed: 200, stale: 0, dead: 0 });
    expect(lines.some((line) => JSON.stringify(line).includes("held by transactions that are still open"))).toBe(true);
    isHeld.now = false;
    expect(await bench.until(() => worker.counts.completed === 201)).toBeLessThanOrEqual(2_000);
    expect(await bench.read(held)).toMatchObject({ state: "completed", progress: '"half"', result: '"whole"' });
  });

  it("does not wait longer for a job that somebody holds than for anything else when it stops", async () => {
    const bench = createBench();
    const through = around(bench.store, async (verb, next, [request]) =>
      verb === "settle" ? { stale: [], locked: (request as SettleRequest).settlements, now: 0 } : next(),
    );
    const job = defineJob("quick", { run: () => 1 });
    await bench.add(job);
    const { worker } = await bench.employ([job], { through });
    await bench.advance(3_000);
    const stopped = worker.stop({ withinMs: 2_000 });
    await bench.advance(6_000);
    await stopped;
    expect(worker.counts).toMatchObject({ claimed: 1, completed: 0, stale: 0 });
  });

  it("waits out an outage with every verdict in its hands, and nothing is charged", async () => {
    const bench = createBench();
    const line = cuttable(bench.store);
    const job = defineJob("quick", { run: () => bench.sleep(500) });
    const ids = await bench.addMany(20, job);
    const { worker } = await bench.employ([job], { concurrency: 20, through: line.store, lease: "1m" });
    await bench.advance(400);
    line.away = true;
    await bench.advance(20_000);
    expect(worker.counts).toMatchObject({ completed: 0, stale: 0 });
    line.away = false;
    expect(await bench.until(() => worker.counts.completed === 20)).toBeLessThanOrEqual(3_000);
    for (const one of await bench.store.get(ids)) {
      expect(one).toMatchObject({ state: "completed", attempts: 0, crashes: 0, epoch: 1 });
    }
  });

  it("keeps the verdicts of others when one cannot be written", async () => {
    const bench = createBench();
    let poisoned = "";
    const through = around(bench.store, async (verb, next, [request]) => {
      const { settlements = [] } = (request ?? {}) as Partial<SettleRequest>;
      if (verb === "settle" && settlements.some(({ id }) => id === poisoned)) throw new TypeError("cannot be written");
      return next();
    });
    const together = bench.sleep(1_000);
    const job = defineJob("quick", { run: () => together });
    poisoned = await bench.add(job);
    await bench.addMany(9, job);
    const hired = await bench.employ([job], { through });
    await bench.advance(120_000);
    expect(hired.lines.filter(({ level }) => level === "error").length).toBeGreaterThan(0);
    expect((await bench.store.count()).completed).toBe(9);
  });
});
