// Heartbeats that do not share the handlers' thread, in real processes on a SQLite file.
import { describe, expect, it } from "vitest";
import { createSite } from "../support/worker-processes.ts";

/** Long enough that a busy machine lets a heartbeat through. */
const LIVING = { lease: "2s", heartbeat: "200ms" } as const;
/** More than three leases, and less than the stall limit of five. */
const BLOCK_MS = 7_000;
/** For those that are to be given up. */
const SHORT = { lease: "400ms", heartbeat: "100ms" } as const;

describe("a handler that blocks the event loop for three leases", () => {
  it("loses nothing while another worker is there to reap", async () => {
    const site = await createSite();
    // The reaper comes first, so that it has been in contact for a lease long before the block is over.
    const reaper = await site.start({ options: { ...LIVING, queues: ["other"] }, host: "second" });
    const first = await site.start({ options: LIVING, host: "first" });
    const id = await site.add("blocker", { ms: BLOCK_MS });
    await first.tells("job.completed", 1);
    expect(await site.read(id)).toMatchObject({ state: "completed", attempts: 0, crashes: 0, epoch: 1 });
    expect(first.messages.some(({ event }) => event === "worker.given_up")).toBe(false);
    expect(reaper.messages.some(({ event }) => event?.startsWith("job."))).toBe(false);
  });

  for (const blocker of ["blocker", "later-blocker", "timer-blocker", "immediate-blocker"]) {
    it(`aborts no run beside it (${blocker})`, async () => {
      const site = await createSite();
      const worker = await site.start({ options: LIVING, host: "first", level: "debug" });
      const id = await site.add("sleeper", { ms: 9_000 });
      await worker.hears(({ line }) => line?.startsWith("processing") === true);
      await site.add(blocker, { ms: BLOCK_MS });
      await worker.tells("job.completed", 2);
      expect(site.notes().filter((note) => "aborted" in note)).toEqual([]);
      expect(await site.read(id)).toMatchObject({ state: "completed", releases: 0, epoch: 1 });
    });
  }
});

describe("an event loop that hangs for good", () => {
  it("loses its jobs after the stall limit, and they run elsewhere", async () => {
    const site = await createSite();
    const hung = await site.start({ options: { ...SHORT, stallLimit: "1s" }, host: "first" });
    const other = await site.start({ options: { ...SHORT, queues: ["other"] }, host: "second" });
    const id = await site.add("sleeper", { ms: 120_000 });
    await site.add("later-blocker", { ms: 120_000 });
    await other.tells("job.retried", 2);
    expect(await site.read(id)).toMatchObject({ state: "queued", crashes: 1 });
    hung.child.kill("SIGKILL");
  });

  it("that comes back later finds itself given up, and goes on under a new id", async () => {
    const site = await createSite();
    const stalled = await site.start({ options: { ...SHORT, stallLimit: "800ms" }, host: "first" });
    const other = await site.start({ options: { ...SHORT, queues: ["other"] }, host: "second" });
    const id = await site.add("later-blocker", { ms: 15_000 });
    await other.tells("job.retried", 1);
    await stalled.hears(({ event }) => event === "worker.given_up");
    await stalled.hears(({ event, id: job }) => event === "job.stale" && job === id);
    await site.add("quick");
    await stalled.tells("job.completed", 1);
  });
});
