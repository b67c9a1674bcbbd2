// Jobs with their last crash left run in a child process, and the breaker of their service holds there too: it stops them,
// it is probed with them, and hears how they ended. On virtual time, with the code of the real child.
import { describe, expect, it } from "vitest";
import { fixed } from "../../src/core/backoff.ts";
import type { ServiceOptions } from "../../src/core/service.ts";
import { initialRecord, openedByHand, recordFrom } from "../../src/core/service-record.ts";
import { defineJob } from "../../src/jobs/define-job.ts";
import { runAlone } from "../../src/worker/alone.ts";
import { ALONE_DONE, type AloneReport, type Isolation } from "../../src/worker/isolation.ts";
import { resolveWorker } from "../../src/worker/settings.ts";
import { claimBy, signUp } from "../support/runs.ts";
import { crashed } from "../support/verdicts.ts";
import { openBench, SCENE_STORES, type VirtualStore } from "../support/virtual-bench.ts";
import type { Hired } from "../support/worker-bench.ts";

const breaker = { failures: 3, openFor: "10s", probes: 1, closeAfter: 1 } as const;
const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

/** Jobs with their last crash left, a worker that runs them in children, and the calls they make. */
async function play(store: VirtualStore, count: number, service: ServiceOptions, openUntil?: number | null) {
  const bench = await openBench(71, store);
  const scene = { down: false };
  const calls: number[] = [];
  const quote = defineJob("quote", {
    service: "pricing",
    maxAttempts: 9,
    backoff: fixed("1s"),
    async run() {
      calls.push(bench.world.now);
      await bench.sleep(50);
      if (scene.down) throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
    },
  });
  const ids = await bench.addMany(count, quote);
  for (const lane of ["suspect", "last"] as const) {
    const worker = await signUp(bench.store);
    const { jobs } = await claimBy(bench.store, worker);
    const verdict = crashed({ charge: { attempts: 0, crashes: 1 }, lane });
    await bench.store.settle({ settlements: jobs.map(({ id, epoch, nonce }) => ({ id, epoch, nonce, verdict })) });
    await bench.store.leave(worker);
  }
  if (openUntil !== undefined) {
    const until = openUntil === null ? null : bench.world.now + openUntil;
    const record = openedByHand(initialRecord, "maintenance", until, bench.world.now);
    await bench.store.setService("pricing", 0, JSON.stringify(record));
  }
  const isolation: Isolation = async (request) => {
    const { system } = bench.world.spawn(request.worker, async () => undefined);
    const told: (AloneReport | string)[] = [];
    const report = (said: AloneReport): void => void told.push(JSON.parse(JSON.stringify(said)) as AloneReport);
    const process = { pid: 9_999, host: "child" };
    const settings = resolveWorker({});
    await runAlone({ ...request, store: bench.store, system, jobs: [quote], settings, process, log, report });
    return { code: 0, signal: null, output: "", told: [...told, ALONE_DONE] };
  };
  const hire = (): Promise<Hired> => bench.employ([quote], { isolation, services: { pricing: service } });
  const stateOf = async (): Promise<string> =>
    recordFrom((await bench.store.control()).services[0]?.value ?? "").breaker.state;
  return { bench, scene, calls, ids, hire, stateOf };
}

describe.each(SCENE_STORES)("a job with its last crash left and the breaker of its service, on %s", (store) => {
  it("is dead-lettered uncharged, without a call, where that is to be done while it is open", async () => {
    const { bench, calls, ids, hire } = await play(store, 2, { breaker, whenOpen: "dead-letter" }, null);
    await hire();
    await bench.advance(5_000);
    for (const id of ids) expect(await bench.read(id)).toMatchObject({ state: "dead", attempts: 0 });
    const { items } = await bench.store.deadLetters({ limit: 9 });
    expect(items.map(({ reason }) => reason)).toEqual(["breaker", "breaker"]);
    expect(calls).toEqual([]);
  });

  it("fails as an attempt, without a call, where that is to be done", async () => {
    const { bench, calls, ids, hire } = await play(store, 1, { breaker, whenOpen: "fail" }, null);
    await hire();
    await bench.advance(500);
    expect(await bench.read(ids[0] as string)).toMatchObject({ state: "queued", attempts: 1, crashes: 2 });
    expect(calls).toEqual([]);
  });

  it("is a probe whose success closes it", async () => {
    const { bench, calls, hire, stateOf } = await play(store, 3, { breaker, ramp: 0 }, 2_000);
    const hired = await hire();
    await bench.advance(1_900);
    expect(calls).toEqual([]);
    await bench.advance(3_000);
    expect(await stateOf()).toBe("closed");
    expect(calls.length).toBe(3);
    expect(hired.worker.counts.completed).toBe(3);
  });

  it("is a probe whose failure is not charged and leaves it open", async () => {
    const { bench, scene, calls, ids, hire, stateOf } = await play(store, 3, { breaker, ramp: 0 }, 1_000);
    scene.down = true;
    await hire();
    await bench.advance(25_000);
    expect(await stateOf()).not.toBe("closed");
    // After a second, and after every ten.
    expect(calls.length).toBe(3);
    for (const id of ids) expect(await bench.read(id)).toMatchObject({ state: "queued", attempts: 0 });
  });

  it("is evidence that opens it", async () => {
    const { bench, scene, calls, hire, stateOf } = await play(store, 5, { breaker, ramp: 0 });
    scene.down = true;
    await hire();
    await bench.advance(9_000);
    expect(await stateOf()).toBe("open");
    expect(calls.length).toBe(3);
  });
});
