// A dead worker's many long jobs: back at work soon, because suspects join in growing numbers, and still no more
// processes are lost to a killer among them than its budget allows.
import { describe, expect, it } from "vitest";
import { defineJob, type JobDefinition } from "../../src/jobs/define-job.ts";
import { type Bench, createBench, forever, type Hired } from "../support/worker-bench.ts";

const LEASE = { lease: "10s", heartbeat: "2s" } as const;
const MANY = 64;

/** Jobs in the hands of a worker of this host that died a moment ago. */
async function orphans(bench: Bench, count: number): Promise<string[]> {
  const dying = defineJob("long", { run: forever });
  const ids = await bench.addMany(count, dying);
  const victim = await bench.employ([dying], { ...LEASE, host: "here", concurrency: count });
  await bench.until(() => victim.worker.counts.claimed === count);
  victim.actor.crash();
  return ids;
}

describe("a dead worker's 64 long jobs", () => {
  it("are all running again within 1.5 s of being found", async () => {
    const bench = createBench();
    const starts: number[] = [];
    const long = defineJob("long", {
      run: () => {
        starts.push(bench.world.now);
        return bench.sleep(3_600_000);
      },
    });
    await orphans(bench, MANY);
    const hired = await bench.employ([long], { ...LEASE, host: "here", concurrency: MANY });
    await bench.until(() => hired.worker.counts.retried === MANY);
    const found = bench.world.now;
    expect(await bench.until(() => starts.length === MANY, 1_500)).toBeLessThanOrEqual(1_500);
    // The first is watched alone, and no moment brings more than have run for a while without harm.
    const within = (ms: number): number => starts.filter((at) => at - found < ms).length;
    expect(within(90)).toBe(1);
    expect(within(190)).toBeLessThanOrEqual(2);
    expect(within(290)).toBeLessThanOrEqual(4);
    expect(within(390)).toBeLessThanOrEqual(8);
  });

  it("take no longer beside other work, which keeps running meanwhile", async () => {
    const bench = createBench();
    let started = 0;
    const long = defineJob("long", {
      run: () => {
        started += 1;
        return bench.sleep(3_600_000);
      },
    });
    const quick = defineJob("quick", { run: () => bench.sleep(10) });
    await orphans(bench, MANY);
    const hired = await bench.employ([long, quick], { ...LEASE, host: "here", concurrency: MANY + 8 });
    await bench.until(() => hired.worker.counts.retried === MANY);
    await bench.addMany(200, quick);
    await bench.until(() => started === MANY, 1_500);
    await bench.until(() => hired.worker.counts.completed === 200, 1_500);
  });

  it("never take more slots than there are", async () => {
    const bench = createBench();
    const seen = { now: 0, most: 0 };
    const long = defineJob("long", {
      run: async () => {
        seen.most = Math.max(seen.most, ++seen.now);
        await bench.sleep(2_000);
        seen.now -= 1;
      },
    });
    await orphans(bench, MANY);
    const { worker } = await bench.employ([long], { ...LEASE, host: "here", concurrency: 10 });
    await bench.until(() => worker.counts.completed === MANY);
    expect(seen.most).toBe(10);
  });
});

describe("a killer among them", () => {
  /** Whoever dies is replaced, as in production; answers how many died before the killer was dead. */
  async function supervised(bench: Bench, jobOf: (die: () => void) => JobDefinition): Promise<number> {
    for (let deaths = 0; deaths < 10; deaths++) {
      let die = (): void => undefined;
      const hired: Hired = bench.hire([jobOf(() => die())], { ...LEASE, host: "here", concurrency: MANY });
      die = () => hired.actor.crash();
      // Not awaited: whoever dies at once never answers.
      void hired.worker.start();
      await bench.until(() => !hired.actor.alive || hired.worker.counts.dead > 0, 600_000);
      if (hired.actor.alive) return deaths;
    }
    throw new Error("The killer took ten workers with it.");
  }

  it.each([
    ["as it starts", 0],
    ["after the watch over it has ended", 150],
    ["when most of the others have joined it", 700],
  ])("that kills %s takes no more workers than its budget, and nobody else dies", async (_when, afterMs) => {
    const bench = createBench();
    const ids = await orphans(bench, MANY);
    const killer = ids[20] as string;
    const deaths = await supervised(bench, (die) =>
      defineJob("long", {
        run: async (_input, context) => {
          if (context.job.id !== killer) return bench.sleep(3_000);
          await bench.sleep(afterMs);
          die();
          return forever();
        },
      }),
    );
    // One crash was its record already; two more are its budget.
    expect(deaths).toBe(2);
    expect(await bench.read(killer)).toMatchObject({ state: "dead", crashes: 3 });
    await bench.advance(300_000);
    const others = await bench.store.get(ids.filter((id) => id !== killer));
    expect(others.filter((job) => job?.state !== "completed")).toEqual([]);
    expect((await bench.store.deadLetters({ limit: 10 })).items.map((letter) => letter.job.id)).toEqual([killer]);
  });
});
