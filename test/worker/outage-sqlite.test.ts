// Outages of a real SQLite file under real workers: locked, deleted, replaced, and a disk that is full.
import { spawnSync } from "node:child_process";
import { mkdirSync, renameSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { connect, testFolder, testPath } from "../support/database-file.ts";
import { newJob } from "../support/new-job.ts";
import { threadedStore } from "../support/store-processes.ts";
import { createSite, type WorkerProcess } from "../support/worker-processes.ts";

/** The most lines of one text within any second. */
function mostInASecond({ messages }: WorkerProcess, text: string): number {
  const at = messages.filter(({ line }) => line?.includes(text)).map((message) => message.at ?? 0);
  return Math.max(0, ...at.map((from) => at.filter((other) => other >= from && other < from + 990).length));
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe("a file that another connection holds locked", () => {
  it("for seven seconds costs nothing but time", async () => {
    const site = await createSite();
    const worker = await site.start({ options: { concurrency: 2 } });
    const ids = await Promise.all(Array.from({ length: 20 }, () => site.add("sleeper", { ms: 100 })));
    await worker.tells("job.completed", 2);
    const locker = connect(site.path);
    for (let tries = 0; tries < 1_000; tries++) {
      try {
        locker.exec("begin immediate");
        break;
      } catch {
        await pause(1);
      }
    }
    // The lock itself is what is tested, so this waits on the clock.
    await pause(7_000);
    locker.exec("commit");
    await worker.tells("job.completed", 20);
    for (const job of await site.store.get(ids)) expect(job).toMatchObject({ attempts: 0, crashes: 0, epoch: 1 });
    expect(worker.messages.some(({ event }) => event === "worker.given_up")).toBe(false);
    expect(mostInASecond(worker, "did not answer")).toBeLessThanOrEqual(1);
  });

  it("for longer than a lease makes nobody give up the living", async () => {
    const site = await createSite();
    const options = { lease: "3s", heartbeat: "300ms" } as const;
    const first = await site.start({ options, host: "first" });
    const ids = await Promise.all(Array.from({ length: 5 }, () => site.add("sleeper", { ms: 60_000 })));
    const second = await site.start({ options: { ...options, queues: ["other"] }, host: "second" });
    const third = await site.start({ options: { ...options, queues: ["other"] }, host: "third" });
    const locker = connect(site.path);
    for (let round = 0; round < 2; round++) {
      // Reapers judge leases only after a lease of unbroken contact.
      await pause(4_500);
      for (let tries = 0; tries < 1_000; tries++) {
        try {
          locker.exec("begin immediate");
          break;
        } catch {
          await pause(1);
        }
      }
      await pause(6_000);
      locker.exec("commit");
    }
    await pause(4_500);
    const told = [first, second, third].flatMap(({ messages }) => messages.map(({ event }) => event));
    for (const job of await site.store.get(ids)) expect(job).toMatchObject({ attempts: 0, crashes: 0 });
    expect(told).not.toContain("worker.given_up");
  });
});

describe("a file that goes away", () => {
  for (const how of ["deleted", "replaced by another"] as const) {
    it(`because it was ${how} is noticed, and the worker goes on with the new one by itself`, async () => {
      const site = await createSite();
      const worker = await site.start();
      await site.add("quick");
      await worker.tells("job.completed", 1);
      await site.store.close();
      if (how === "deleted") for (const end of ["", "-wal", "-shm"]) rmSync(site.path + end, { force: true });
      else {
        const other = testPath();
        const made = await threadedStore(other);
        await made.migrate();
        await made.close();
        for (const end of ["-wal", "-shm"]) rmSync(site.path + end, { force: true });
        renameSync(other, site.path);
      }
      const again = await threadedStore(site.path);
      const job = newJob({ type: "quick", payload: "{}" });
      await again.enqueue([job]);
      await worker.tells("job.completed", 2);
      expect((await again.get([job.id]))[0]).toMatchObject({ state: "completed", attempts: 0, crashes: 0 });
    });
  }
});

describe("a disk that is full", () => {
  it("is waited out: nothing is lost or charged, and the worker goes on when there is room", async (test) => {
    const folder = join(testFolder(), "small");
    mkdirSync(folder);
    const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=4m,mode=0700", "tmpfs", folder]);
    if (mounted.status !== 0) return test.skip("a small file system cannot be mounted here");
    onTestFinished(() => void spawnSync("umount", ["-l", folder]));
    const site = await createSite(join(folder, "jobs.db"));
    const worker = await site.start({ env: { REDRIVE_NOTES: join(testFolder(), "notes") } });
    const ids = await Promise.all(Array.from({ length: 30 }, () => site.add("sleeper", { ms: 800 })));
    await worker.hears(({ event }) => event === "worker.started");
    const filler = join(folder, "filler");
    // The worker writes at the same time, so the last bytes are taken one page after the other.
    for (let pages = 0; pages < 2_000 && statfsSync(folder).bavail > 0; pages++) {
      try {
        writeFileSync(filler, Buffer.alloc(4_096), { flag: "a" });
      } catch {
        break;
      }
    }
    // What the log still had room for is used up by these.
    const big = "x".repeat(100_000);
    const refused = await site.add("quick", { big }).then(
      () => "accepted",
      (error: { code: string }) => error.code,
    );
    await worker.hears(({ line }) => line?.includes("did not answer") === true);
    await pause(3_000);
    const { line } = await worker.hears((message) => message.line?.includes("did not answer") === true);
    rmSync(filler);
    await worker.tells("job.completed", 30);
    expect(refused).toBe("store_unavailable");
    expect(line).toContain("the disk is full");
    for (const job of await site.store.get(ids))
      expect(job).toMatchObject({ state: "completed", attempts: 0, crashes: 0 });
    expect(mostInASecond(worker, "did not answer")).toBeLessThanOrEqual(1);
    expect(mostInASecond(worker, "the store is back")).toBeLessThanOrEqual(1);
  });
});
