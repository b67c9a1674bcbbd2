// Real processes on one file: they start together, work together, and are killed.
import { describe, expect, it } from "vitest";
import { MIGRATIONS } from "../../../src/store/sqlite/schema.ts";
import { reader, testPath } from "../../support/database-file.ts";
import { newJob } from "../../support/new-job.ts";
import { heard, startProcess, succeeds, threadedStore } from "../../support/store-processes.ts";

describe("processes on one file", () => {
  it("eight open a new file at once, and its schema is made once", async () => {
    const path = testPath();
    const processes = Array.from({ length: 8 }, () => startProcess("open", path));
    await Promise.all(processes.map((one) => heard(one, 1)));
    for (const { child } of processes) child.send("go");
    await Promise.all(processes.map(succeeds));
    expect((await (await threadedStore(path)).count()).queued).toBe(8);
    expect(reader(path)("pragma user_version")).toEqual([[MIGRATIONS.length]]);
    expect(reader(path)("pragma integrity_check")).toEqual([["ok"]]);
  });

  it("four enqueue while three work: every job is completed exactly once", async () => {
    const path = testPath();
    const enqueuers = Array.from({ length: 4 }, () => startProcess("enqueue", path, "500"));
    const workers = Array.from({ length: 3 }, () => startProcess("work", path, "2000"));
    const created = (await Promise.all(enqueuers.map(succeeds))).flatMap(
      ([said]) => (said as { created: string[] }).created,
    );
    const done = (await Promise.all(workers.map(succeeds))).flatMap(([said]) => (said as { done: string[] }).done);
    expect(created).toHaveLength(2000);
    expect(done).toHaveLength(2000);
    expect(new Set(done)).toEqual(new Set(created));
    const ask = reader(path);
    // One claim each, and the result that its own run gave.
    expect(ask("select state, epoch, count(*) from job group by 1, 2")).toEqual([["completed", 1, 2000]]);
    expect(ask("select count(*) from job where result <> id")).toEqual([[0]]);
    expect(await (await threadedStore(path)).count()).toEqual({
      queued: 0,
      running: 0,
      completed: 2000,
      dead: 0,
      cancelled: 0,
    });
  });

  // Without a sync as well: what is written stays with the system when the process dies.
  it.each(["full", "normal"])("one that is killed while writing leaves all it was told, with sync=%s", async (sync) => {
    const path = testPath();
    const writer = startProcess("write", path, sync);
    await heard(writer, 150);
    writer.child.kill("SIGKILL");
    expect((await writer.ended).code).toBeNull();
    const acknowledged = writer.messages.map((said) => (said as { acknowledged: string }).acknowledged);
    expect(acknowledged.length).toBeGreaterThanOrEqual(150);
    const store = await threadedStore(path);
    const found = await store.get(acknowledged);
    expect(found.map((job) => job?.id)).toEqual(acknowledged);
    expect(found.map((job) => job?.payload)).toEqual(acknowledged.map((id) => JSON.stringify({ id })));
    expect(reader(path)("pragma integrity_check")).toEqual([["ok"]]);
    expect(await store.enqueue([newJob()])).toEqual([{ kind: "created", id: expect.any(String) }]);
  });
});
