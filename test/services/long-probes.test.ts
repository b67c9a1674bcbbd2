// Probes that take longer than a lease: they are still probes, and no others take their place while their worker lives. On
// virtual time.
import { describe, expect, it } from "vitest";
import { initialRecord, openedByHand, recordFrom } from "../../src/core/service-record.ts";
import { defineJob } from "../../src/jobs/define-job.ts";
import { openBench, SCENE_STORES, type VirtualStore } from "../support/virtual-bench.ts";
import type { Hired } from "../support/worker-bench.ts";

/** A service that does not answer for ten minutes, and workers that probe it. */
async function hanging(store: VirtualStore) {
  const bench = await openBench(61, store);
  const running = new Set<string>();
  let most = 0;
  const quote = defineJob("quote", {
    service: "pricing",
    timeout: "10m",
    maxAttempts: 3,
    async run(_, { job, signal }) {
      running.add(job.id);
      most = Math.max(most, running.size);
      await bench.sleep(600_000, signal);
      running.delete(job.id);
      signal.throwIfAborted();
    },
  });
  const record = openedByHand(initialRecord, "maintenance", bench.world.now + 1_000, bench.world.now);
  await bench.store.setService("pricing", 0, JSON.stringify(record));
  await bench.addMany(30, quote);
  const crew: Hired[] = [];
  // With one slot only nobody looks around while it is taken.
  for (const concurrency of [1, 1, 5])
    crew.push(await bench.employ([quote], { concurrency, lease: "9s", heartbeat: "3s" }));
  const stateOf = async (): Promise<string> =>
    recordFrom((await bench.store.control()).services[0]?.value ?? "").breaker.state;
  return { bench, running, crew, stateOf, most: () => most };
}

describe.each(SCENE_STORES)("a probe that takes longer than a lease, on %s", (store) => {
  it("is waited for, and not replaced", async () => {
    const { bench, running, stateOf, most } = await hanging(store);
    await bench.advance(60_000);
    expect([running.size, most()]).toEqual([3, 3]);
    expect(await stateOf()).toBe("half_open");
  });

  it("is replaced when its worker is gone", async () => {
    const { bench, running, crew, most } = await hanging(store);
    await bench.advance(30_000);
    expect(running.size).toBe(3);
    const [gone] = crew as [Hired];
    gone.actor.crash();
    running.clear();
    await bench.advance(5_000);
    expect(running.size).toBe(0);
    await bench.advance(20_000);
    expect(running.size).toBe(1);
    expect(most()).toBe(3);
  });
});
