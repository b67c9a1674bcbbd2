// Stuck runs by hand, and runs as people look at them, through the library on every store.
import { describe, expect, it } from "vitest";
import type { RunStatus } from "../../src/core/run-record.ts";
import { defineJob } from "../../src/jobs/define-job.ts";
import type { RedriveEvent } from "../../src/report/events.ts";
import type { Store } from "../../src/store/store.ts";
import { add, end, leaseOf, signUp, start, takeOne } from "../support/runs.ts";
import { complete, dead, failure, retry } from "../support/verdicts.ts";
import { KINDS, openRedrive } from "../redrive/kinds.ts";

const HOUR = 3_600_000;

/** A run that has been in somebody's hands for as long as it took to get here; `stuckMs` says how long it may. */
async function running(store: Store, limits: Parameters<typeof start>[1]): ReturnType<typeof start> {
  const worker = await signUp(store, 86_400_000);
  const run = await start(store, limits, worker);
  await store.beat({ worker, leaseMs: 86_400_000, startedThrough: 1 });
  return run;
}

/** Until the store's clock has moved on. */
async function later(store: Store): Promise<void> {
  const { now } = await store.control();
  while ((await store.control()).now <= now + 2);
}

describe.each(KINDS)("stuck runs on %s", (kind) => {
  it("are listed with what would become of them, and nothing is changed", async () => {
    const redrive = await openRedrive(kind);
    const { store } = redrive;
    expect(await redrive.stuck.list()).toEqual([]);
    const run = await running(store, { type: "scrape", stuckMs: 1, stuckRetryMs: 4 * HOUR, maxAttempts: 5 });
    const last = await running(store, { type: "scrape", stuckMs: 1, stuckLimit: 0 });
    await running(store, { type: "calm", stuckMs: HOUR });
    await later(store);
    const before = await store.get([run.id, last.id]);
    for (const found of [await redrive.stuck.list(), await redrive.stuck.fix({ dryRun: true })]) {
      expect(found).toMatchObject([
        {
          id: run.id,
          type: "scrape",
          worker: run.worker,
          limitMs: 1,
          verdict: "retry",
          message: expect.stringMatching(/^Run stuck for \d+ms - retry 1\/4 scheduled$/),
          fixed: false,
        },
        {
          id: last.id,
          verdict: "dead",
          retryAt: null,
          message: expect.stringMatching(/^Run stuck for \d+ms - permanently failed after 0 attempts$/),
        },
      ]);
      const [first] = found;
      expect((first?.retryAt ?? 0) - (first?.startedAt ?? 0)).toBe(4 * HOUR + (first?.ranMs ?? 0));
    }
    expect(await store.get([run.id, last.id])).toStrictEqual(before);
  });

  it("are ended when asked: retried or dead, fenced, and told", async () => {
    const died: string[] = [];
    const scrape = defineJob("scrape", { run: () => 1, onDead: ({ id }) => void died.push(id) });
    const redrive = await openRedrive(kind, { jobs: [scrape] });
    const { store } = redrive;
    const events: RedriveEvent[] = [];
    redrive.on("*", (event) => void events.push(event));
    const run = await running(store, { type: "scrape", stuckMs: 1, stuckRetryMs: 4 * HOUR });
    const last = await running(store, { type: "scrape", stuckMs: 1, stuckLimit: 0 });
    await later(store);
    expect(await redrive.stuck.fix()).toMatchObject([
      { id: run.id, verdict: "retry", fixed: true },
      { id: last.id, verdict: "dead", fixed: true },
    ]);
    expect(await redrive.jobs.get(run.id)).toMatchObject({ state: "queued", attempts: 1, failure: { class: "stuck" } });
    expect(await redrive.jobs.get(last.id)).toMatchObject({ state: "dead" });
    expect(died).toEqual([last.id]);
    expect(events.map(({ kind: each }) => each)).toEqual(["job.retried", "job.dead"]);
    const { stale } = await store.settle({ settlements: [{ ...leaseOf(run), verdict: complete() }] });
    expect(stale).toHaveLength(1);
    expect(await redrive.stuck.fix()).toEqual([]);
  });

  it("are what whoever asks says they are, of one type or of all", async () => {
    const redrive = await openRedrive(kind);
    const { store } = redrive;
    const free = await running(store, { type: "free" });
    const other = await running(store, { type: "other", stuckMs: HOUR });
    await later(store);
    expect(await redrive.stuck.fix({ olderThan: "1h" })).toEqual([]);
    expect(await redrive.stuck.fix({ olderThan: 1, type: "free" })).toMatchObject([
      {
        id: free.id,
        limitMs: null,
        verdict: "retry",
        message: expect.stringMatching(/^Run stuck for \d+ms - retry 1\/9 scheduled$/),
      },
    ]);
    expect(await redrive.stuck.list({ olderThan: 1 })).toMatchObject([{ id: other.id }]);
  });

  it.each([
    [{ olderThan: "soon" }, /olderThan/],
    [{ olderThan: 0 }, /olderThan/],
    [{ dryRun: "yes" }, /dryRun/],
    [{ type: 5 }, /type/],
    [{ older: "1h" }, /did you mean "olderThan"/],
  ])("refuse %o", async (options, message) => {
    const redrive = await openRedrive(kind);
    await expect(redrive.stuck.fix(options as object)).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringMatching(message),
    });
  });
});

describe.each(KINDS)("runs on %s", (kind) => {
  it("of a job are one history, from the id of any of them", async () => {
    const redrive = await openRedrive(kind);
    const { store } = redrive;
    const id = await add(store, { type: "scrape", maxAttempts: 5 });
    const message = "Run stuck for 1.2h - retry 1/4 scheduled";
    await end(store, await takeOne(store, id), retry({ failure: failure({ message }) }));
    await end(store, await takeOne(store, id), retry({ delayMs: 4 * HOUR }));
    const runs = await redrive.runs.history(id);
    expect(runs).toMatchObject([
      {
        id,
        isRetry: false,
        originalRunId: null,
        retryCount: 0,
        maxRetries: 4,
        status: "failed",
        errorMessage: message,
        label: null,
      },
      { id: `${id}:1.2`, isRetry: true, originalRunId: id, retryCount: 1, status: "failed", label: "[RETRY 1/4]" },
      {
        id: `${id}:1.3`,
        isRetry: true,
        originalRunId: id,
        retryCount: 2,
        status: "pending_retry",
        label: "[RETRY 2/4]",
      },
    ]);
    expect(runs[2]?.nextRetryAt).toBe(runs[1]?.nextRetryAt);
    for (const run of runs) expect(await redrive.runs.history(run.id)).toEqual(runs);
    await expect(redrive.runs.history("nobody")).rejects.toMatchObject({ code: "not_found" });
    await expect(redrive.runs.history(`${id}:x`)).rejects.toMatchObject({ code: "not_found" });
  });

  it("are listed by how they stand, retries by the time they are due", async () => {
    const redrive = await openRedrive(kind);
    const { store } = redrive;
    const waits = async (delayMs: number): Promise<string> =>
      (await end(store, await start(store, { type: "scrape" }), retry({ delayMs }))).id;
    const late = await waits(9 * HOUR);
    const soon = await waits(HOUR);
    const died = await end(store, await start(store), dead());
    const done = await end(store, await start(store), complete());
    const now = await start(store);
    const queued = await add(store, { delayMs: HOUR });
    const list = async (status: RunStatus) => (await redrive.runs.list({ status })).items.map(({ jobId }) => jobId);
    expect(await list("pending_retry")).toEqual([soon, late]);
    expect(await list("failed")).toEqual([died.id]);
    expect(await list("completed")).toEqual([done.id]);
    expect(await list("running")).toEqual([now.id]);
    expect(await list("queued")).toEqual([queued]);
    const first = await redrive.runs.list({ status: "pending_retry", type: "scrape", limit: 1 });
    expect(first.items).toMatchObject([{ jobId: soon, label: "[RETRY 1/9]" }]);
    const second = await redrive.runs.list({ status: "pending_retry", limit: 1, cursor: first.next });
    expect(second).toMatchObject({ items: [{ jobId: late }], next: null });
    expect((await redrive.runs.list()).items).toHaveLength(6);
    await expect(redrive.runs.list({ status: "stuck" as "queued" })).rejects.toMatchObject({
      code: "invalid_argument",
    });
  });
});
