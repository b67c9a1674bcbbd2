// The store thread: shared commits, failures that stay with their request, closing, and locks of other processes.
import { describe, expect, it } from "vitest";
import { commitsInLog, connect, reader, testPath } from "../../support/database-file.ts";
import { newJob } from "../../support/new-job.ts";
import { claimBy, leaseOf, read, signUp, start } from "../../support/runs.ts";
import { startProcess, threadedStore } from "../../support/store-processes.ts";
import { complete, dead, release } from "../../support/verdicts.ts";

async function setup() {
  const path = testPath();
  const store = await threadedStore(path);
  await store.migrate();
  return { path, store };
}

describe("commits", () => {
  it("a hundred calls of one moment share a few, and a hundred one after the other take one each", async () => {
    const { path, store } = await setup();
    const before = commitsInLog(path);
    await Promise.all(Array.from({ length: 100 }, () => store.enqueue([newJob()])));
    const together = commitsInLog(path) - before;
    expect(together).toBeGreaterThan(0);
    expect(together).toBeLessThanOrEqual(3);
    for (let n = 0; n < 100; n++) await store.enqueue([newJob()]);
    expect(commitsInLog(path) - before - together).toBe(100);
    expect((await store.count()).queued).toBe(200);
  });

  it("calls that arrive while others are written go together with the next", async () => {
    const { path, store } = await setup();
    const before = commitsInLog(path);
    const calls: Promise<unknown>[] = [];
    for (let n = 0; n < 100; n++) {
      calls.push(store.enqueue([newJob()]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(calls);
    expect(commitsInLog(path) - before).toBeLessThan(60);
    expect((await store.count()).queued).toBe(100);
  });

  it("reads write nothing", async () => {
    const { path, store } = await setup();
    await store.enqueue([newJob()]);
    const before = commitsInLog(path);
    await Promise.all([store.count(), store.list({ limit: 1 }), store.control(), store.workers(), store.get(["a"])]);
    expect(commitsInLog(path)).toBe(before);
  });
});

describe("a picture of several statements", () => {
  it("shows one moment, whatever others write meanwhile", async () => {
    const { path, store } = await setup();
    const other = await threadedStore(path);
    await store.enqueue(Array.from({ length: 2_000 }, () => newJob()));
    const worker = await signUp(other);
    let rounds = 0;
    const flip = async (): Promise<void> => {
      for (; rounds < 300; rounds++) {
        const { jobs } = await claimBy(other, worker, { limit: 20 });
        await other.settle({ settlements: jobs.map((job) => ({ ...leaseOf(job), verdict: release() })) });
      }
    };
    const flipping = flip();
    const totals = new Set<number>();
    while (rounds < 300) totals.add(Object.values(await store.count()).reduce((sum, count) => sum + count, 0));
    await flipping;
    expect([...totals]).toEqual([2_000]);
  });
});

describe("a group with a request that fails", () => {
  it("fails that one alone, and the others are written", async () => {
    const { store } = await setup();
    const run = await start(store);
    const other = await start(store);
    const { id, epoch, nonce } = run;
    const verdict = dead({ reason: "bored" as "manual" });
    const answers = await Promise.allSettled([
      store.enqueue([newJob({ id: "before" })]),
      store.settle({ settlements: [{ id, epoch, nonce, verdict }] }),
      store.settle({ settlements: [{ ...other, verdict: complete() }] }),
      store.enqueue([newJob({ id: "after" })]),
    ]);
    expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled"]);
    expect((await store.get(["before", "after"])).map((job) => job?.state)).toEqual(["queued", "queued"]);
    expect((await read(store, other.id)).state).toBe("completed");
    // Nothing of the failed one was written: it runs on, and its lease still holds.
    expect(await read(store, id)).toMatchObject({ state: "running", attempts: 0, failure: null });
    expect(await store.history(id)).toEqual([]);
    expect((await store.settle({ settlements: [{ id, epoch, nonce, verdict: complete() }] })).stale).toEqual([]);
  });

  it("fails that one alone where SQLite cannot take a value", async () => {
    const { store } = await setup();
    const { id, epoch, nonce } = await start(store);
    const result = { not: "text" } as unknown as string;
    const [bad, good] = await Promise.allSettled([
      store.settle({ settlements: [{ id, epoch, nonce, verdict: complete(result) }] }),
      store.enqueue([newJob()]),
    ]);
    expect([bad.status, good.status]).toEqual(["rejected", "fulfilled"]);
    expect((await read(store, id)).state).toBe("running");
  });

  it("fails that one alone where a value cannot travel to the thread", async () => {
    const { code, output } = await startProcess("unsendable", testPath()).ended;
    expect({ code, output }).toEqual({ code: 0, output: expect.stringMatching(/^\["\w+","created"\]\n$/) });
    expect(output).not.toContain("accepted");
  });
});

describe("close", () => {
  it("finishes what is under way; later calls say that the store is closed", async () => {
    const { path, store } = await setup();
    const calls = Array.from({ length: 50 }, () => store.enqueue([newJob()]));
    const closed = store.close();
    await expect(store.enqueue([newJob()])).rejects.toMatchObject({ code: "closed" });
    const answers = await Promise.all(calls);
    expect(answers.flat().map(({ kind }) => kind)).toEqual(Array.from({ length: 50 }, () => "created"));
    await closed;
    expect(reader(path)("select count(*) from job")).toEqual([[50]]);
    for (const call of [() => store.count(), () => store.migrate(), () => store.get(["a"])]) {
      await expect(call()).rejects.toMatchObject({
        code: "closed",
        message: expect.stringContaining("Open a new one"),
      });
    }
  });

  it("twice is the same as once, and before the first use it is nothing", async () => {
    const { store } = await setup();
    await Promise.all([store.close(), store.close()]);
    await store.close();
    const unused = await threadedStore(testPath());
    await unused.close();
    await expect(unused.count()).rejects.toMatchObject({ code: "closed" });
  });

  it("is not needed for a process to end by itself", async () => {
    const path = testPath();
    const { code, output } = await startProcess("idle", path).ended;
    expect({ code, output }).toEqual({ code: 0, output: "enqueued\n" });
    expect(reader(path)("select id from job")).toEqual([["idle"]]);
  });
});

describe("a lock of another process", () => {
  it("for a moment delays a write and does not fail it", async () => {
    const { path, store } = await setup();
    const holder = connect(path);
    holder.exec("begin immediate");
    let held = true;
    const call = store.enqueue([newJob()]).then((answer) => ({ answer, held }));
    setTimeout(() => {
      held = false;
      holder.exec("commit");
    }, 300);
    expect(await call).toEqual({ answer: [{ kind: "created", id: expect.any(String) }], held: false });
  });

  it("beyond the patience gives store_unavailable, and the store works again afterwards", async () => {
    const { path, store } = await setup();
    const holder = connect(path);
    holder.exec("begin immediate");
    const from = performance.now();
    await expect(store.enqueue([newJob({ id: "late" })])).rejects.toMatchObject({ code: "store_unavailable" });
    expect(performance.now() - from).toBeGreaterThan(4_900);
    holder.exec("commit");
    expect(await store.get(["late"])).toEqual([null]);
    expect(await store.enqueue([newJob({ id: "late" })])).toEqual([{ kind: "created", id: "late" }]);
  });
});
