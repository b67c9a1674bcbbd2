// Every worker is killed with `kill -9` while the breaker of a service is open, and replaced: it is still open, and nobody
// calls the service but for probes. Real processes.
import { describe, expect, inject, it } from "vitest";
import { recordFrom } from "../../src/core/service-record.ts";
import { startFlakyServer } from "../support/flaky-server.ts";
import { testSchema } from "../support/postgres-queue.ts";
import { createSite, type Site, type WorkerProcess } from "../support/worker-processes.ts";

const OPEN_MS = 2_000;
const PROBES = 3;
const services = { pricing: { breaker: { openFor: OPEN_MS, probes: PROBES }, ramp: "1s" } } as const;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function stateOf({ store }: Site): Promise<string> {
  const { services: records } = await store.control();
  return recordFrom(records.find(({ name }) => name === "pricing")?.value ?? "").breaker.state;
}

const attemptsOf = async (site: Site, ids: readonly string[]): Promise<number> =>
  (await Promise.all(ids.map(site.read))).reduce((sum, { attempts }) => sum + attempts, 0);

const OPEN = {
  sqlite: () => createSite(),
  postgres: () => createSite(undefined, testSchema(inject("postgres18")).url),
} as const;

describe.each(["sqlite", "postgres"] as const)("a breaker that is open, on %s", (store) => {
  it("stays so when all workers are killed and replaced", async () => {
    const pricing = await startFlakyServer();
    const site = await OPEN[store]();
    if (store === "postgres") await site.store.migrate();
    const hire = (): Promise<WorkerProcess> =>
      site.start({ options: { concurrency: 5, poll: "100ms" }, services, env: { REDRIVE_SERVICE: pricing.url } });
    const crew = await Promise.all([hire(), hire()]);
    pricing.state.down = true;
    const ids: string[] = [];
    const add = async (count: number): Promise<void> => {
      for (let n = 0; n < count; n++) ids.push(await site.add("quote", {}, { service: "pricing", maxAttempts: 3 }));
    };
    await add(60);
    await Promise.race(crew.map((worker) => worker.tells("breaker.changed", 1)));
    for (const { child } of crew) child.kill("SIGKILL");
    await Promise.all(crew.map(({ ended }) => ended));
    const [killedAt, before] = [performance.now(), pricing.calls.length];
    expect(await stateOf(site)).not.toBe("closed");
    await Promise.all([hire(), hire()]);
    await add(20);
    await pause(1_500);
    const periods = Math.floor((performance.now() - killedAt) / OPEN_MS) + 1;
    expect(pricing.calls.length - before).toBeLessThanOrEqual(periods * PROBES);
    expect(await stateOf(site)).not.toBe("closed");
    // What opens it and what was running then, lost with its worker or not.
    expect(await attemptsOf(site, ids)).toBeLessThanOrEqual(10 + 10);
    pricing.state.down = false;
    for (let waited = 0; waited < 40_000 && (await site.store.count()).completed < ids.length; waited += 100)
      await pause(100);
    expect(await site.store.count()).toMatchObject({ completed: ids.length, dead: 0 });
  });
});
