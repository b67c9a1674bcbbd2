// Killers in real processes: the last chance runs in a child, exactly the killer dies, and its end is the evidence.
import { describe, expect, it } from "vitest";
import { initialRecord, openedByHand, recordFrom } from "../../src/core/service-record.ts";
import { isAlive } from "../../src/system/processes.ts";
import { startFlakyServer } from "../support/flaky-server.ts";
import { claimBy, signUp } from "../support/runs.ts";
import { crashed } from "../support/verdicts.ts";
import { createSite, type Site } from "../support/worker-processes.ts";

const OPTIONS = { lease: "2s", heartbeat: "300ms", concurrency: 10 } as const;

/** A job that was already part of two crashes: the next one is its last. */
async function lastChance(site: Site, type: string, payload = {}, overrides = {}): Promise<string> {
  const id = await site.add(type, payload, overrides);
  for (const lane of ["suspect", "last"] as const) {
    const worker = await signUp(site.store);
    const { jobs } = await claimBy(site.store, worker, { only: (found) => found.type === type });
    const verdict = crashed({ charge: { attempts: 0, crashes: 1 }, lane });
    await site.store.settle({
      settlements: jobs.map(({ id: job, epoch, nonce }) => ({ id: job, epoch, nonce, verdict })),
    });
    await site.store.leave(worker);
  }
  return id;
}

describe("a job with its last crash left, in a child process", () => {
  it("completes there, and is told and counted like any other", async () => {
    const site = await createSite();
    const id = await lastChance(site, "quick");
    const worker = await site.start({ options: OPTIONS, isolate: true });
    await worker.tells("job.completed", 1).catch(() => undefined);
    const job = await site.read(id);
    expect(job).toMatchObject({ state: "completed", crashes: 2 });
    expect(Number(job.result)).not.toBe(worker.child.pid);
    expect(worker.messages.filter(({ event }) => event === "job.completed")).toHaveLength(1);
  });

  it("that kills its process dies alone, with the signal as evidence, and onDead is called", async () => {
    const site = await createSite();
    const id = await lastChance(site, "killer");
    const worker = await site.start({ options: OPTIONS, isolate: true });
    await worker.tells("job.dead", 1);
    const { items } = await site.store.deadLetters({ limit: 10 });
    expect(items).toMatchObject([{ reason: "crashed", crashes: 3, job: { id }, failure: { code: "SIGKILL" } }]);
    expect(site.notes()).toEqual([{ dead: id, type: "killer" }]);
    expect(worker.child.exitCode).toBeNull();
  });

  it("that exits leaves its exit code and its last output", async () => {
    const site = await createSite();
    await lastChance(site, "leaver");
    const worker = await site.start({ options: OPTIONS, isolate: true });
    await worker.tells("job.dead", 1);
    const { items } = await site.store.deadLetters({ limit: 10 });
    expect(items[0]?.failure).toMatchObject({
      class: "crashed",
      code: "7",
      message: expect.stringContaining("exit code 7"),
      stack: expect.stringContaining("the leaver says goodbye"),
    });
  });

  it("that eats memory dies at the cap, and says so", async () => {
    const site = await createSite();
    await lastChance(site, "hungry");
    const worker = await site.start({ options: { lease: "30s" }, isolate: true });
    await worker.tells("job.dead", 1);
    const { items } = await site.store.deadLetters({ limit: 10 });
    expect(items[0]?.failure).toMatchObject({ name: "ProcessDied", stack: expect.stringContaining("out of memory") });
    expect(worker.child.exitCode).toBeNull();
  });

  it("that fails for good there calls onDead and is told, as it would be anywhere", async () => {
    const site = await createSite();
    const id = await lastChance(site, "thrower");
    const worker = await site.start({ options: OPTIONS, isolate: true });
    await worker.tells("job.dead", 1).catch(() => undefined);
    expect((await site.read(id)).state).toBe("dead");
    expect(site.notes()).toEqual([{ dead: id, type: "thrower" }]);
    expect(worker.messages.filter(({ event }) => event === "job.dead")).toHaveLength(1);
  });

  it("that blocks the event loop there for three leases loses nothing", async () => {
    const site = await createSite();
    const id = await lastChance(site, "blocker", { ms: 9_500 });
    const worker = await site.start({ options: { lease: "3s", heartbeat: "200ms" }, isolate: true });
    const { event } = await worker.hears((told) => told.event === "job.completed" || told.event === "job.dead");
    expect(event).toBe("job.completed");
    expect(await site.read(id)).toMatchObject({ state: "completed", crashes: 2 });
  });

  it("that hangs there loses its job after the stall limit, and its process is ended", async () => {
    const site = await createSite();
    const options = { lease: "400ms", heartbeat: "100ms" } as const;
    await lastChance(site, "hanger");
    const next = await lastChance(site, "killer");
    const worker = await site.start({ options, isolate: true });
    await worker.tells("job.dead", 1);
    const { pid } = site.notes().find((note) => "hangs" in note) as { pid: number };
    const run = await worker.tells("job.dead", 2).then(
      () => "the next last chance ran",
      () => "the next last chance never ran",
    );
    const hung = isAlive(pid);
    if (hung) process.kill(pid, "SIGKILL");
    expect({ hung, run }).toEqual({ hung: false, run: "the next last chance ran" });
    expect((await site.read(next)).state).toBe("dead");
  });

  it("that hangs there is ended when its worker is killed", async () => {
    const site = await createSite();
    await lastChance(site, "hanger");
    const worker = await site.start({ options: { ...OPTIONS, lease: "60s", abortGrace: 0 }, isolate: true });
    const hanging = (): number | undefined => site.notes().find((note) => "hangs" in note)?.pid as number | undefined;
    const until = async (is: () => boolean, withinMs: number): Promise<boolean> => {
      for (const from = performance.now(); !is() && performance.now() - from < withinMs; )
        await new Promise((resolve) => setTimeout(resolve, 50));
      return is();
    };
    expect(await until(() => hanging() !== undefined, 50_000)).toBe(true);
    const pid = hanging() as number;
    worker.child.kill("SIGKILL");
    const isEnded = await until(() => !isAlive(pid), 50_000);
    if (!isEnded) process.kill(pid, "SIGKILL");
    expect(isEnded).toBe(true);
  });
});

describe("a job with its last crash left whose service was down", () => {
  const PATIENT = { concurrency: 10, poll: "200ms" } as const;
  const services = { pricing: { breaker: { openFor: "1s", probes: 1, closeAfter: 1 } } } as const;

  /** The breaker of the service, open by hand for so long. */
  const opened = async ({ store }: Site, ms: number | null): Promise<void> => {
    const until = ms === null ? null : Date.now() + ms;
    const record = openedByHand(initialRecord, "maintenance", until, Date.now());
    await store.setService("pricing", 0, JSON.stringify(record));
  };

  it("is the probe that closes the breaker, from its own process", async () => {
    const pricing = await startFlakyServer();
    const site = await createSite();
    const id = await lastChance(site, "quote", {}, { service: "pricing" });
    await opened(site, 500);
    const env = { REDRIVE_SERVICE: pricing.url };
    const worker = await site.start({ options: PATIENT, services, isolate: true, env });
    await worker.tells("job.completed", 1);
    await worker.tells("breaker.changed", 3);
    expect((await site.read(id)).state).toBe("completed");
    const [record] = (await site.store.control()).services;
    expect(recordFrom(record?.value ?? "").breaker.state).toBe("closed");
    expect(pricing.calls.length).toBe(1);
  });

  it("does not call it from there while its work is to be dead-lettered", async () => {
    const pricing = await startFlakyServer();
    const site = await createSite();
    const id = await lastChance(site, "quote", {}, { service: "pricing" });
    await opened(site, null);
    const env = { REDRIVE_SERVICE: pricing.url };
    const dead = { pricing: { ...services.pricing, whenOpen: "dead-letter" } } as const;
    const worker = await site.start({ options: PATIENT, services: dead, isolate: true, env });
    await worker.tells("job.dead", 1);
    const { items } = await site.store.deadLetters({ limit: 10 });
    expect(items).toMatchObject([{ reason: "breaker", attempts: 0, job: { id } }]);
    expect(pricing.calls).toEqual([]);
  });
});

describe("a killer among many", () => {
  it("takes at most its budget of processes with it, and nobody else dies", async () => {
    const site = await createSite();
    const ids: string[] = [];
    for (let n = 0; n < 200; n++) ids.push(await site.add("quick"));
    const killer = await site.add("killer");
    for (let n = 0; n < 200; n++) ids.push(await site.add("quick"));
    let deaths = 0;
    let over = false;
    // A supervisor: whoever dies is replaced, as in production.
    const supervise = async (): Promise<void> => {
      for (let n = 0; n < 6 && !over; n++) {
        const worker = await site.start({ options: { ...OPTIONS, lease: "3s" }, isolate: true }).catch(() => null);
        if (!worker) {
          deaths += 1;
          continue;
        }
        const died = await Promise.race([
          worker.ended.then(() => true),
          worker.hears(({ event }) => event === "job.dead").then(() => false),
        ]);
        if (!died) over = true;
        else deaths += 1;
        if (over) return;
      }
    };
    await supervise();
    expect(deaths).toBeLessThanOrEqual(4);
    expect(await site.read(killer)).toMatchObject({ state: "dead", crashes: 3 });
    const worker = await site.start({ options: OPTIONS, isolate: true, unstarted: true });
    worker.order("drain", 1_000);
    await worker.hears(({ drained }) => drained !== undefined);
    const jobs = await site.store.get(ids);
    expect(jobs.filter((job) => job?.state !== "completed")).toEqual([]);
  });
});
