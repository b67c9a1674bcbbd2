// `stuck list|fix`, `jobs history` and `jobs list --sort due`: runs that hang, as people find and end them.
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createRedrive, defineJob, type JobContext } from "../../src/index.ts";
import { createInlineSqliteStore } from "../../src/store/sqlite/inline.ts";
import { type Bench, createBench } from "../support/cli.ts";
import { end, signUp, start, takeOne } from "../support/runs.ts";
import { complete, failure, retry } from "../support/verdicts.ts";

const HOUR = 3_600_000;

interface Hanging extends Bench {
  /** One that hangs for the second time, one that hangs for the last, one without a limit, one that waits. */
  readonly ids: Readonly<Record<"second" | "last" | "free" | "waits", string>>;
}

/** A handler that ends only when it is told to. */
const forever = (_input: object, { signal }: JobContext): Promise<void> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve()));

/** A file in which runs hang since more than an hour. */
async function hanging(): Promise<Hanging> {
  const bench = createBench();
  const path = join(bench.folder, "redrive.db");
  const clock = { now: Date.now() - 6 * HOUR };
  const store = createInlineSqliteStore({ path, clock: () => clock.now });
  await store.migrate();
  const worker = await signUp(store, 86_400_000);
  const limits = { type: "scrape", stuckMs: HOUR, stuckRetryMs: 4 * HOUR, maxAttempts: 5 };
  const first = await start(store, limits, worker);
  clock.now += HOUR;
  const message = "Run stuck for 1.0h - retry 1/4 scheduled";
  await end(
    store,
    first,
    retry({ delayMs: 3 * HOUR, failure: failure({ class: "stuck", name: "RunStuck", message }) }),
  );
  const waits = await start(store, { ...limits, type: "later" }, worker);
  await end(store, waits, retry({ delayMs: 9 * HOUR }));
  const soon = await start(store, { ...limits, type: "later" }, worker);
  await end(store, soon, retry({ delayMs: 7 * HOUR }));
  clock.now = Date.now() - 1.2 * HOUR;
  const second = await takeOne(store, first.id, worker);
  const last = await start(store, { ...limits, stuckLimit: 0 }, worker);
  const free = await start(store, { type: "free" }, worker);
  const done = await start(store, { type: "done" }, worker);
  await end(store, done, complete());
  await store.beat({ worker, leaseMs: 86_400_000, startedThrough: 1 });
  await store.close();
  chmodSync(path, 0o600);
  return { ...bench, ids: { second: second.id, last: last.id, free: free.id, waits: soon.id } };
}

describe("stuck list", () => {
  it("knows the limits of a job enqueued by name from the worker that runs it", async () => {
    const bench = createBench();
    const path = join(bench.folder, "redrive.db");
    const clock = { now: Date.now() - 1.2 * HOUR };
    const store = createInlineSqliteStore({ path, clock: () => clock.now });
    const redrive = await createRedrive({
      store,
      log: "silent",
      jobs: [defineJob("scrape", { preset: "runs", run: forever })],
    });
    const worker = redrive.worker({ lease: "1d", heartbeat: "1h" });
    await worker.start();
    const other = await createRedrive({ store, log: "silent" });
    const { id } = await other.enqueue("scrape", {});
    await expect.poll(() => worker.counts.claimed).toBe(1);
    const { code, out } = await bench.run(["stuck", "list"]);
    await worker.stop({ within: 0 });
    await store.close();
    expect(code).toBe(0);
    expect(out).toMatch(
      new RegExp(`${id} +scrape +\\S+ +1h +\\S+ +again in 4h +Run stuck for 1.2h - retry 1/4 scheduled`),
    );
  });

  it("shows runs over their limit, with what would become of them", async () => {
    const bench = await hanging();
    const { code, out } = await bench.run(["stuck", "list"]);
    expect(code).toBe(0);
    expect(out).toMatch(/^ID +TYPE +RAN +LIMIT +WORKER +THEN +MESSAGE\n/);
    expect(out).toMatch(
      new RegExp(`${bench.ids.second} +scrape +\\S+ +1h +\\S+ +again in 4h +Run stuck for 1.2h - retry 2/4 scheduled`),
    );
    expect(out).toContain("Run stuck for 1.2h - permanently failed after 0 attempts");
    expect(out).not.toContain(bench.ids.free);
    const { document } = await bench.json(["stuck", "list", "--older-than", "30m"]);
    expect(document.items).toHaveLength(3);
    expect(document.items[0]).toMatchObject({ id: bench.ids.second, verdict: "retry", limitMs: HOUR, fixed: false });
    expect(document.items[0].retryAt).toMatch(/^\d{4}-\d\d-\d\dT.*Z$/);
  });

  it("says that there is none", async () => {
    const bench = createBench();
    await bench.run(["enqueue", "hello", "{}"]);
    expect(await bench.run(["stuck", "list"])).toMatchObject({ code: 0, out: "No run is stuck.\n" });
    expect((await bench.json(["stuck", "list"])).document).toEqual({ items: [] });
    const fixed = await bench.run(["stuck", "fix"]);
    expect(fixed).toMatchObject({ code: 0, out: "No run is stuck; nothing was changed.\n" });
  });
});

describe("stuck fix", () => {
  it("changes nothing on a dry run", async () => {
    const bench = await hanging();
    const { out } = await bench.run(["stuck", "fix", "--dry-run"]);
    expect(out).toContain("2 runs would be ended; nothing was changed.");
    expect((await bench.json(["stuck", "list"])).document.items).toHaveLength(2);
  });

  it("ends them, of one type or longer than asked for", async () => {
    const bench = await hanging();
    const free = await bench.json(["stuck", "fix", "--type", "free", "--older-than", "1h"]);
    expect(free.document).toMatchObject({ dryRun: false, fixed: 1, items: [{ id: bench.ids.free, limitMs: null }] });
    const { code, out } = await bench.run(["stuck", "fix"]);
    expect({ code, end: out.split("\n").at(-2) }).toEqual({ code: 0, end: "2 runs ended." });
    const second = await bench.json(["jobs", "show", bench.ids.second]);
    expect(second.document).toMatchObject({ shown: "retrying", attempts: 2, failure: { class: "stuck" } });
    expect((await bench.json(["dlq", "list"])).document.items).toMatchObject([{ id: bench.ids.last, reason: "stuck" }]);
    expect((await bench.json(["stuck", "list"])).document.items).toEqual([]);
  });

  it.each([
    [["stuck", "fix", "--older-than", "soon"], /olderThan/],
    [["stuck", "fix", "now"], /too many arguments/],
    [["stuck"], /of stuck: list, fix/],
  ])("refuses %j", async (args, message) => {
    const { code, err } = await (await hanging()).run(args);
    expect(code).toBe(2);
    expect(err).toMatch(message);
  });
});

describe("jobs history", () => {
  it("is a table of all runs with their labels and messages", async () => {
    const bench = await hanging();
    const { out } = await bench.run(["jobs", "history", bench.ids.second]);
    const [head, ...rows] = out.trimEnd().split("\n");
    expect(head).toMatch(/^RUN +STATUS +STARTED +TOOK +NEXT RETRY +MESSAGE$/);
    expect(rows).toHaveLength(2);
    expect(rows[0]).toMatch(
      /^original +failed +\S+ \S+ +1h +\S+ \S+ \(.* ago\) +Run stuck for 1.0h - retry 1\/4 scheduled$/,
    );
    expect(rows[1]).toMatch(/^\[RETRY 1\/4\] +running +\S+ \S+ +\S+ +-$/);
    const { document } = await bench.json(["jobs", "history", `${bench.ids.second}:1.2`]);
    expect(document.items).toMatchObject([
      { id: bench.ids.second, label: null, originalRunId: null },
      { label: "[RETRY 1/4]", originalRunId: bench.ids.second, status: "running", completedAt: null },
    ]);
    expect(await bench.run(["jobs", "history", "nobody"])).toMatchObject({ code: 1, out: "" });
  });
});

describe("jobs list --sort due", () => {
  it("lists retries by the time they are due", async () => {
    const bench = await hanging();
    const { document } = await bench.json(["jobs", "list", "--state", "retrying", "--sort", "due", "--limit", "1"]);
    expect(document.items).toMatchObject([{ id: bench.ids.waits, shown: "retrying" }]);
    const rest = await bench.json(["jobs", "list", "--state", "retrying", "--sort", "due", "--cursor", document.next]);
    expect(rest.document).toMatchObject({ items: [{ type: "later" }], next: null });
    const refused = await bench.run(["jobs", "list", "--state", "dead", "--sort", "due"]);
    expect(refused).toMatchObject({ code: 2, err: expect.stringContaining("only waiting jobs have a due time") });
    expect(await bench.run(["jobs", "list", "--sort", "age"])).toMatchObject({ code: 2 });
  });
});
