// The stores that version 1 has left behind, opened by this program: everything in them goes on rightly. What they hold is
// in scripts/fixture-scene.mjs.
import { describe, expect, it, onTestFinished } from "vitest";
import { batchJob, booksOf } from "../../src/batch-command/batch-run.ts";
import { beginRun } from "../../src/batch-command/batch-state.ts";
import { workThrough } from "../../src/batch-command/rounds.ts";
import { done } from "../../src/index.ts";
import { assemble } from "../../src/redrive.ts";
import { realSystem } from "../../src/system/real.ts";
import { programOn } from "../support/fixture-program.ts";
import { FIXTURES } from "../support/fixtures.ts";

const HOUR = 3_600_000;

const DUE = ["key", "queued", "active", "replace", "debounce"].map((mode) => `due, unique by ${mode}`);
const VIEWS = ["jobs", "attempts", "dead_letters", "item_errors", "retry_queue", "runs"];

describe.each(FIXTURES)("a store of version 1 on %s", (_store, fixture) => {
  it("has all that was in it, also for people", async () => {
    const { redrive, store, rows } = await programOn(await fixture(1));
    expect(await store.count()).toEqual({ queued: 13, running: 1, completed: 4, dead: 4, cancelled: 1 });
    const letters = (await store.deadLetters({ limit: 50, redriven: true })).items;
    expect(
      letters.map(({ reason, redrivenAt }) => `${reason}${redrivenAt === null ? "" : " redriven"}`).toSorted(),
    ).toEqual(["deadline", "exhausted", "permanent", "permanent", "permanent redriven"]);
    expect(new Set(letters.map(({ release }) => release))).toEqual(new Set([null]));
    expect((await redrive.breakers.get("bank")).state).toBe("isolated");
    expect((await redrive.pauses()).map(({ kind, name }) => `${kind} ${name}`)).toEqual([
      "queue slow",
      "tenant late payer",
    ]);
    expect((await redrive.schedules.list()).filter(({ name }) => ["hourly", "paused"].includes(name))).toMatchObject([
      { name: "hourly", paused: false },
      { name: "paused", paused: true },
    ]);
    expect(await rows("select * from events")).toEqual([]);
    for (const view of VIEWS)
      expect(Number((await rows(`select count(*) from ${view}`))[0]?.[0]), view).toBeGreaterThan(0);
  });

  it("runs what is due, the run of the gone worker once more, and nothing that is held", async () => {
    const { store, drain } = await programOn(await fixture(1));
    const ran = await drain();
    expect(ran.toSorted()).toEqual(
      [...DUE, "runs in a worker that is gone", "waits behind it in its group", "waits for its retry"].toSorted(),
    );
    expect(ran.indexOf("waits behind it in its group")).toBeGreaterThan(ran.indexOf("runs in a worker that is gone"));
    const [lost] = (await store.list({ limit: 10, type: "import" })).items.toReversed();
    expect(lost).toMatchObject({ state: "completed", crashes: 1, attempts: 1 });
    expect(await store.history(lost?.id ?? "")).toMatchObject([{ failure: { class: "crashed" }, release: "1.0.0" }]);
    expect(await drain()).toEqual([]);
  });

  it("goes on with what was held, with its schedule and with dead letters", async () => {
    const { redrive, drain, pass } = await programOn(await fixture(1));
    await drain();
    await redrive.breakers.reset("bank");
    await redrive.resume({ kind: "queue", name: "slow" });
    expect((await drain()).toSorted()).toEqual(["parked by the open breaker", "waits in a paused queue"]);
    const { items: events } = await redrive.events({ oldest: true });
    expect(events.map(({ kind }) => kind)).toEqual([
      "worker.given_up",
      // The causes of the letters that were there.
      "cause.opened",
      "cause.opened",
      ...["breaker.reset", "resume"].flatMap((kind) => [kind, kind]),
    ]);
    pass(HOUR);
    expect((await drain()).toSorted()).toEqual(["by the schedule", "due, of a paused tenant", "later"]);
    expect(await redrive.deadLetters.retry({ all: true })).toMatchObject({ redriven: 4 });
    expect((await drain()).filter((label) => label.startsWith("dead: "))).toHaveLength(3);
    expect((await redrive.deadLetters.list()).items).toEqual([]);
  });

  it("still refuses doubles of its keys", async () => {
    const { redrive, mail } = await programOn(await fixture(1));
    const again = { label: "completed", progress: { step: 1 } };
    expect(await redrive.enqueue(mail, again, { key: "completed" })).toMatchObject({ duplicate: true });
    await expect(redrive.enqueue(mail, { label: "other" }, { key: "completed" })).rejects.toMatchObject({
      code: "conflict",
    });
    const queued = { key: "unique queued", unique: "queued" } as const;
    expect(await redrive.enqueue(mail, { label: "other" }, queued)).toMatchObject({ duplicate: true });
    expect(await redrive.enqueue(mail, { label: "other" }, { key: "free" })).toMatchObject({ duplicate: false });
  });

  it("resumes the batch that was half done, and runs only what is left of it", async () => {
    const ran: unknown[] = [];
    const items = ["one", "two", "three", "four"].map((code) => JSON.stringify({ code }));
    const plan = {
      name: "nightly",
      items,
      run: (batch: readonly { input: unknown }[]) => {
        ran.push(...batch.map(({ input }) => input));
        return batch.map(() => done());
      },
      isExact: true,
      size: 2,
      retrySize: 1,
      maxRetries: 3,
      parallel: 1,
    };
    const { store, drain } = await programOn(await fixture(1));
    // The run of the gone worker first: a drain waits for such runs.
    await drain();
    const { state, isResumed } = await beginRun(store, plan);
    expect([isResumed, state.run, state.firstPassMs]).toEqual([true, 1, 250]);
    const job = batchJob(plan, state);
    const process = { pid: 2, host: "here", isAlive: () => true };
    const redrive = await assemble({ store, jobs: [job], log: "silent" }, { system: realSystem, process });
    onTestFinished(() => redrive.close());
    const ignore = (): void => undefined;
    const caller = { signal: new AbortController().signal, onWorker: ignore, onRound: ignore, onWait: ignore };
    await workThrough({ redrive, job, plan, state }, caller);
    expect(ran).toEqual([{ code: "three" }, { code: "four" }]);
    expect(await booksOf(store, job)).toMatchObject({ succeeded: 4, failed: 0, retried: 2 });
  });
});
