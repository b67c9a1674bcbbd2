// A worker process that is stopped for three leases and comes back to life: whatever it says then is refused, and each of
// its jobs is completed once, by somebody else.
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { freshSchema, sql } from "../support/postgres-world.ts";
import { createSite } from "../support/worker-processes.ts";
import { testPath } from "../support/database-file.ts";

const LEASE_MS = 2_000;
const JOBS = 8;
const options = { lease: LEASE_MS, poll: 50, concurrency: JOBS };

async function siteOn(kind: "sqlite" | "postgres") {
  if (kind === "sqlite") return createSite();
  const url = inject("postgres18");
  const schema = freshSchema();
  const site = await createSite(testPath(), `${url}?schema=${schema}`);
  await site.store.migrate();
  onTestFinished(async () => {
    await site.store.close();
    await sql(url, `drop schema ${schema} cascade`);
  });
  return site;
}

describe.each(["sqlite", "postgres"] as const)("a stopped process on %s", (kind) => {
  it("can neither complete nor change what others have taken over", async () => {
    const site = await siteOn(kind);
    const ids: string[] = [];
    for (let n = 0; n < JOBS; n++) ids.push(await site.add("zombie", { ms: 1_500 }));
    const first = await site.start({ options });
    const pid = first.child.pid as number;
    while (site.notes().filter((note) => "runs" in note).length < JOBS) await new Promise((go) => setTimeout(go, 20));
    first.child.kill("SIGSTOP");
    const stoppedAt = performance.now();
    const second = await site.start({ options });
    await second.tells("job.completed", JOBS);
    const left = 3 * LEASE_MS - (performance.now() - stoppedAt);
    await new Promise((go) => setTimeout(go, Math.max(0, left)));
    const before = await site.store.get(ids);
    first.child.kill("SIGCONT");
    await first.tells("job.stale", JOBS);
    expect(await site.store.get(ids)).toStrictEqual(before);
    for (const job of before)
      expect(job).toMatchObject({ state: "completed", crashes: 1, epoch: 2, result: String(second.child.pid) });
    expect(first.messages.filter(({ event }) => event === "job.completed")).toEqual([]);
    // Some learn of it by their own word about progress, others only with their verdict.
    const refused = site.notes().filter((note) => "refused" in note);
    expect(refused.every((note) => note.pid === pid && note.code === "lease_lost")).toBe(true);
    const completed = second.messages.filter(({ event }) => event === "job.completed").map(({ id }) => id);
    expect(completed).toHaveLength(JOBS);
    expect(new Set(completed)).toEqual(new Set(ids));
  });
});
