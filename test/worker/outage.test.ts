// What an outage of a service does to the work for it: nothing is lost, little is charged, nothing else notices, and the
// load comes back on a ramp. On virtual time; the service answers or not by the clock of the world.
import { describe, expect, it } from "vitest";
import { defineJob } from "../../src/queue/define-job.ts";
import { type Bench, createBench, type Hired } from "../support/worker-bench.ts";

const MINUTE = 60_000;

/** A service that can be down, and the times at which it was called. */
function service(bench: Bench) {
  const calls: { readonly at: number; readonly ok: boolean; readonly worker: number }[] = [];
  let down = false;
  return {
    calls,
    isDown: (value: boolean) => {
      down = value;
    },
    async call(worker: number, broken = false): Promise<void> {
      const ok = !down && !broken;
      calls.push({ at: bench.world.now, ok, worker });
      await bench.sleep(20);
      if (!ok) throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
    },
    since: (at: number) => calls.filter((call) => call.at >= at),
  };
}

/** The most calls in any window of a second. */
function mostInASecond(times: readonly number[]): number {
  let most = 0;
  for (let from = 0, to = 0; to < times.length; to++) {
    while ((times[to] as number) - (times[from] as number) >= 1000) from++;
    most = Math.max(most, to - from + 1);
  }
  return most;
}

function counts(hired: readonly Hired[], kind: Parameters<Hired["heard"]>[0]): number {
  return hired.reduce((sum, each) => sum + each.heard(kind).length, 0);
}

describe("a service that is down for forty minutes at 50 jobs a second", () => {
  it("costs hardly an attempt and no dead letter, spares everything else, and gets its load back on a ramp", async () => {
    const bench = createBench(7);
    const pricing = service(bench);
    const quote = (worker: number) =>
      defineJob("quote", { service: "pricing", maxAttempts: 3, run: () => pricing.call(worker) });
    const other: number[] = [];
    const mail = defineJob("mail", {
      run: (_, { job }) => {
        other.push(bench.world.now - job.createdAt);
      },
    });
    const crew = await Promise.all([1, 2].map((n) => bench.employ([quote(n), mail], { concurrency: 10 })));
    const feed = async (minutes: number): Promise<void> => {
      for (let second = 0; second < minutes * 60; second++) {
        await bench.addMany(50, "quote", { service: "pricing", maxAttempts: 3 });
        await bench.add("mail");
        await bench.advance(1000);
      }
    };
    await feed(1);
    const before = { ...(await bench.store.count()) };
    pricing.isDown(true);
    const downAt = bench.world.now;
    await feed(40);
    const during = pricing.since(downAt);
    // Attempts charged: at most the threshold and what was in flight when it opened.
    expect(counts(crew, "job.retried")).toBeLessThanOrEqual(10 + 20);
    expect(during.length).toBeLessThanOrEqual(10 + 20 + 40 * 2 * 3);
    expect(counts(crew, "job.dead")).toBe(0);
    pricing.isDown(false);
    const backAt = bench.world.now;
    await bench.advance(15 * MINUTE);
    const { queued, running, completed, dead } = await bench.store.count();
    expect({ queued, running, dead }).toEqual({ queued: 0, running: 0, dead: 0 });
    expect(completed).toBeGreaterThan(before.completed + 40 * 60 * 50);
    expect(Math.max(...other)).toBeLessThan(1_500);
    // The ramp: 3 a second at first, twice as many every two seconds.
    const times = pricing.since(backAt).map(({ at }) => at);
    const from = times[0] as number;
    for (const second of [1, 3, 5, 9]) {
      const allowed = 3 * 2 ** ((second + 1) / 2);
      const window = times.filter((at) => at >= from + second * 1000 && at < from + (second + 1) * 1000);
      expect(window.length, `second ${second}`).toBeLessThanOrEqual(Math.ceil(allowed * 1.05) + 3);
    }
    expect(mostInASecond(times)).toBeGreaterThan(200);
  }, 120_000);
});
