// When work is taken: at once when woken, at its due time, never by luck; and nothing is asked for without need.
import { describe, expect, it } from "vitest";
import { fixed } from "../../src/core/backoff.ts";
import { defineJob } from "../../src/jobs/define-job.ts";
import type { LanePage, Lease, SettleRequest } from "../../src/store/store.ts";
import { newJob } from "../support/new-job.ts";
import { around, createBench, forever, unavailable } from "../support/worker-bench.ts";

describe("an idle worker", () => {
  it("takes a new job at once when it is enqueued in its process", async () => {
    const bench = createBench();
    const job = defineJob("thumbnail", { run: () => 1 });
    const { worker } = await bench.employ([job], { poll: "1m" });
    await bench.advance(10_000);
    await bench.add(job);
    expect(await bench.until(() => worker.counts.completed === 1)).toBe(0);
  });

  it("finds work without any hint at the next poll", async () => {
    const bench = createBench();
    const job = defineJob("thumbnail", { run: () => 1 });
    const deaf = new Proxy(bench.store, {
      get: (target, key) => (key === "onWake" ? () => () => undefined : Reflect.get(target, key)),
    });
    const { worker } = await bench.employ([job], { poll: "1s", through: deaf });
    await bench.advance(10_300);
    await bench.add(job);
    expect(await bench.until(() => worker.counts.completed === 1)).toBeLessThanOrEqual(1_000);
  });

  it("runs a scheduled job at its due time, not at the next poll", async () => {
    const bench = createBench();
    const job = defineJob("thumbnail", { run: () => 1 });
    await bench.add(job, { delayMs: 12_345 });
    const { worker } = await bench.employ([job], { poll: "10s" });
    expect(await bench.until(() => worker.counts.completed === 1)).toBe(12_345);
  });

  it("runs a retry at its due time, not at the next poll", async () => {
    const bench = createBench();
    const job = defineJob("thumbnail", {
      backoff: fixed(777),
      run: (_input, { attempt }) => {
        if (attempt < 4) throw new Error("again");
      },
    });
    await bench.add(job);
    const { worker } = await bench.employ([job], { poll: "1m" });
    expect(await bench.until(() => worker.counts.completed === 1)).toBe(3 * 777);
  });

  it("runs what was paused when the pause ends, not at the next poll", async () => {
    const bench = createBench();
    const job = defineJob("thumbnail", { run: () => 1 });
    await bench.add(job);
    const target = { kind: "type", name: "thumbnail" } as const;
    await bench.store.pause(target, { forMs: 45_678, reason: "" });
    await bench.store.pause({ ...target, kind: "queue", name: "others" }, { forMs: 60_000, reason: "" });
    const { worker } = await bench.employ([job], { poll: "1m" });
    expect(await bench.until(() => worker.counts.completed === 1)).toBe(45_678);
  });

  it("asks the store a few times a second and no more", async () => {
    const bench = createBench();
    let calls = 0;
    const through = around(bench.store, (_verb, next) => {
      calls += 1;
      return next();
    });
    const job = defineJob("thumbnail", { run: () => 1 });
    await bench.employ([job], { through });
    await bench.advance(1_000);
    calls = 0;
    await bench.advance(60_000);
    expect(calls / 60).toBeLessThanOrEqual(5);
  });
});

describe("a worker on a store that is far away", () => {
  /** A worker that has worked before, idles, and writes down what it asks. */
  async function idling({ concurrency = 10 } = {}) {
    const bench = createBench();
    const asked: string[] = [];
    /** Done once when a look was answered, before the worker hears of it. */
    const during: { look: (() => Promise<unknown>) | null } = { look: null };
    const near = around(bench.store, async (verb, next) => {
      asked.push(verb);
      const answer = await next();
      const { look } = during;
      if (verb !== "lanes" || !look) return answer;
      during.look = null;
      await look();
      return answer;
    });
    const through = new Proxy(near, {
      get: (target, key) => (key === "remote" ? true : Reflect.get(target, key)),
    });
    const started: number[] = [];
    const job = defineJob("thumbnail", {
      async run(_: unknown, { job: { id } }) {
        started.push((await bench.store.get([id]))[0]?.priority as number);
      },
    });
    const { worker } = await bench.employ([job], { poll: "1m", concurrency, through });
    await bench.add(job);
    await bench.until(() => worker.counts.completed === 1);
    await bench.advance(10_000);
    asked.length = 0;
    return { bench, job, worker, asked, started, during };
  }

  it("claims at once where there was work before, when it is woken", async () => {
    const { bench, job, worker, asked } = await idling();
    await bench.add(job);
    expect(await bench.until(() => worker.counts.completed === 2)).toBe(0);
    expect(asked[0]).toBe("claim");
  });

  it("claims at once after a look in whose course it was woken", async () => {
    const { bench, job, worker, asked, during } = await idling();
    during.look = () => bench.add(job);
    await bench.add("theirs");
    await bench.until(() => worker.counts.completed === 2);
    expect(asked.slice(asked.indexOf("lanes") + 1).find((verb) => verb !== "control")).toBe("claim");
  });

  it("looks where else there is work if that gave nothing", async () => {
    const { bench, job, worker, asked } = await idling();
    await bench.add(job, { tenant: "new", priority: 9 });
    expect(await bench.until(() => worker.counts.completed === 2)).toBe(0);
    expect(asked.filter((verb) => verb === "claim").length).toBeGreaterThanOrEqual(2);
  });

  it("takes what has the higher priority first, though it was not there before", async () => {
    const { bench, job, started } = await idling({ concurrency: 1 });
    await bench.store.enqueue([newJob({ type: job.type }), newJob({ type: job.type, priority: 9 })]);
    await bench.until(() => started.length === 3);
    expect(started.slice(1)).toEqual([9, 0]);
  });

  it("takes nothing of what was paused meanwhile", async () => {
    const { bench, job, worker } = await idling();
    await bench.store.pause({ kind: "type", name: "thumbnail" }, { forMs: null, reason: "test" });
    await bench.add(job);
    await bench.advance(10_000);
    expect(worker.counts.completed).toBe(1);
  });
});

describe("a wake-up", () => {
  // The store answers from a picture made before the job came, and the hint comes before the loop has gone to rest.
  for (const verb of ["control", "lanes"] as const) {
    it(`that rings while ${verb} is being asked is not lost`, async () => {
      const bench = createBench();
      const job = defineJob("thumbnail", { run: () => 1 });
      let trap: (() => Promise<unknown>) | null = null;
      const through = around(bench.store, async (asked, next) => {
        // A look that tells of changes would save the question.
        const answer = asked === "lanes" ? { ...((await next()) as LanePage), signs: undefined } : await next();
        if (asked !== verb || !trap) return answer;
        const act = trap;
        trap = null;
        await act();
        await bench.sleep(5);
        return answer;
      });
      const { worker } = await bench.employ([job], { poll: "1h", lease: "2h", heartbeat: "10m", through });
      await bench.advance(1_000);
      trap = () => bench.add(job);
      await bench.add("somebody-elses");
      expect(await bench.until(() => worker.counts.completed === 1, 10_000)).toBeLessThan(100);
    });
  }

  it("that rings while the hands are full is made up for as soon as a slot is free", async () => {
    const bench = createBench();
    const job = defineJob("thumbnail", { run: () => bench.sleep(500) });
    const { worker } = await bench.employ([job], { concurrency: 1, poll: "1h", lease: "2h", heartbeat: "10m" });
    await bench.add(job);
    await bench.advance(100);
    await bench.add(job);
    await bench.add(job);
    expect(await bench.until(() => worker.counts.completed === 3, 60_000)).toBeLessThan(1_500);
  });
});

describe("a claim", () => {
  it("whose answer was lost loses no job: what it took is run in the end, and nothing is charged", async () => {
    const bench = createBench();
    let lost = 0;
    const through = around(bench.store, async (verb, next) => {
      const answer = await next();
      if (verb === "claim" && lost++ === 0) throw unavailable();
      return answer;
    });
    const job = defineJob("thumbnail", { run: () => 1 });
    const ids = await bench.addMany(3, job);
    await bench.employ([job], { lease: "5s", through });
    await bench.employ([job], { lease: "5s" });
    await bench.advance(60_000);
    expect(await bench.store.count()).toMatchObject({ completed: 3, running: 0 });
    for (const id of ids) expect(await bench.read(id)).toMatchObject({ attempts: 0, crashes: 0 });
  });

  it("that is held under another nonce than the run in hand is not taken for it", async () => {
    const bench = createBench();
    const released: Lease[] = [];
    // As after a crash of the server: it forgot the claim of this run, and gave out its epoch again.
    const through = around(bench.store, async (verb, next, [request]) => {
      if (verb === "held") return ((await next()) as Lease[]).map((lease) => ({ ...lease, nonce: "another" }));
      if (verb === "settle") released.push(...(request as SettleRequest).settlements);
      return next();
    });
    const job = defineJob("thumbnail", { run: forever });
    const id = await bench.add(job);
    await bench.employ([job], { lease: "5s", abortGrace: "1h", through });
    await bench.advance(8_000);
    expect(released).toMatchObject([{ id, epoch: 1, nonce: "another", verdict: { kind: "release" } }]);
  });

  it("that reaches the store long after it was given up for lost loses no job either", async () => {
    const bench = createBench();
    const job = defineJob("thumbnail", { run: () => 1 });
    let claims = 0;
    let late: Promise<string> | null = null;
    const arriveLate = async (claim: () => Promise<unknown>): Promise<string> => {
      await bench.sleep(5_000);
      const id = await bench.add(job);
      expect(await claim()).toMatchObject({ jobs: [{ id }] });
      return id;
    };
    const through = around(bench.store, async (verb, next) => {
      if (verb !== "claim" || claims++ > 0) return next();
      late = arriveLate(next);
      throw unavailable();
    });
    await bench.add(job);
    await bench.employ([job], { lease: "10s", through });
    await bench.advance(30_000);
    expect(await bench.store.count()).toMatchObject({ completed: 2, running: 0 });
    expect(await bench.read(await (late as unknown as Promise<string>))).toMatchObject({ attempts: 0, crashes: 0 });
  });
});

describe("the lanes", () => {
  it("of others, however many, do not hide our own", async () => {
    const bench = createBench();
    const job = defineJob("ours", { run: () => 1 });
    await bench.employ([job]);
    for (let n = 0; n < 1_100; n++) await bench.add("theirs", { tenant: `tenant-${n}`, priority: 5 });
    await bench.add(job);
    await bench.advance(30_000);
    expect(await bench.store.count()).toMatchObject({ completed: 1, queued: 1_100 });
  });

  it("that wait for later do not hide what is due", async () => {
    const bench = createBench();
    const job = defineJob("ours", { run: () => 1 });
    await bench.employ([job]);
    for (let n = 0; n < 1_100; n++) await bench.add(job, { tenant: `tenant-${n}`, delayMs: 3_600_000 });
    await bench.add(job, { tenant: "last" });
    await bench.advance(30_000);
    expect(await bench.store.count()).toMatchObject({ completed: 1, queued: 1_100 });
  });
});

describe("a pause", () => {
  it("of a queue is noticed at once, and so is its end", async () => {
    const bench = createBench();
    const job = defineJob("thumbnail", { queue: "media", run: () => 1 });
    const { worker } = await bench.employ([job], { poll: "1m" });
    await bench.store.pause({ kind: "queue", name: "media" }, { forMs: null, reason: "test" });
    await bench.addMany(3, job);
    await bench.advance(50_000);
    expect(worker.counts.completed).toBe(0);
    await bench.store.resume({ kind: "queue", name: "media" });
    expect(await bench.until(() => worker.counts.completed === 3)).toBe(0);
  });

  it("in the middle of a burst stops the claims", async () => {
    const bench = createBench();
    const job = defineJob("thumbnail", { run: () => bench.sleep(50) });
    await bench.addMany(100, job);
    const { worker } = await bench.employ([job], { concurrency: 2 });
    await bench.until(() => worker.counts.completed >= 10);
    await bench.store.pause({ kind: "type", name: "thumbnail" }, { forMs: null, reason: "test" });
    const held = worker.counts.claimed;
    await bench.advance(20_000);
    expect(worker.counts.claimed).toBe(held);
    expect(worker.counts.completed).toBe(held);
  });

  it("with an end is over at its end, idle or busy", async () => {
    const bench = createBench();
    const paused = defineJob("paused", { queue: "media", run: () => 1 });
    const busy = defineJob("busy", { run: () => bench.sleep(20) });
    await bench.store.pause({ kind: "queue", name: "media" }, { forMs: 3_000, reason: "test" });
    const id = await bench.add(paused);
    await bench.addMany(2_000, busy);
    await bench.employ([paused, busy], { concurrency: 4 });
    await bench.advance(2_900);
    expect((await bench.read(id)).state).toBe("queued");
    await bench.advance(2_100);
    expect((await bench.store.count()).queued).toBeGreaterThan(500);
    expect((await bench.read(id)).state).toBe("completed");
  });
});
