// An idle worker as a real process: it is woken by others, and it ends. What it costs is judged in idle.timed.ts.
import { describe, expect, it } from "vitest";
import { createSite } from "../support/worker-processes.ts";

describe("an idle worker", () => {
  it("picks up work that another process enqueued, long before it would poll", async () => {
    const site = await createSite();
    const worker = await site.start({ options: { poll: "30m" } });
    for (let n = 1; n <= 20; n++) {
      await site.add("quick");
      await worker.tells("job.completed", n);
    }
  });
});

describe("a process with a worker", () => {
  it("ends by itself once the worker is stopped and the store is closed", async () => {
    const site = await createSite();
    const worker = await site.start();
    const ids = await Promise.all(Array.from({ length: 3 }, () => site.add("sleeper", { ms: 60_000 })));
    await worker.hears(({ event }) => event === "worker.started");
    for (let n = 0; n < 200 && site.notes().length < 3; n++) await new Promise((resolve) => setTimeout(resolve, 10));
    worker.order("stop", 200);
    await worker.hears(({ stopped }) => stopped !== undefined);
    expect((await worker.ended).code).toBe(0);
    for (const job of await site.store.get(ids))
      expect(job).toMatchObject({ state: "queued", attempts: 0, crashes: 0 });
    expect(await site.store.workers()).toEqual([]);
  });

  it("that was killed leaves its jobs to a drain on the same host", async () => {
    const site = await createSite();
    const victim = await site.start();
    const ids = await Promise.all(Array.from({ length: 5 }, () => site.add("sleeper", { ms: 1_500 })));
    for (let n = 0; n < 500 && site.notes().length < 5; n++) await new Promise((resolve) => setTimeout(resolve, 10));
    victim.child.kill("SIGKILL");
    await victim.ended;
    const drain = await site.start({ unstarted: true });
    drain.order("drain", 1_000);
    const { drained } = await drain.hears((message) => message.drained !== undefined);
    expect(drained).toMatchObject({ completed: 5, dead: 0 });
    for (const job of await site.store.get(ids)) expect(job).toMatchObject({ state: "completed", crashes: 1 });
  });
});
