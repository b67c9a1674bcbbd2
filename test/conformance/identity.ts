// Which job, which run and which release a letter or a record is about: the order of enqueue, the user's key, the release
// that ran, and failures that belong to the present generation.
import { expect } from "vitest";
import type { Job } from "../../src/core/job.ts";
import type { ClaimedJob, DeadLetterQuery, Store } from "../../src/store/store.ts";
import { add, end, finish, leaseOf, read, start, take, takeOne } from "../support/runs.ts";
import { cancel, complete, dead, failure, release, retry } from "../support/verdicts.ts";
import { digestOf, newJob } from "../support/new-job.ts";
import { walk } from "../support/letter-pages.ts";
import { openEventLog } from "../../src/report/event-log.ts";
import { collectLog } from "../../src/testing/collect-log.ts";
import { openDeadLetters } from "../../src/operate/dead-letters.ts";
import type { Suite } from "./suite.ts";

async function revive(store: Store, { id, generation }: Job): Promise<ClaimedJob> {
  expect(await store.redrive([{ id, generation, delayMs: 0 }])).toEqual(["redriven"]);
  return takeOne(store, id);
}

async function idsOf(store: Store, query: DeadLetterQuery): Promise<{ ids: string[]; next: string | null }> {
  const { items, next } = await store.deadLetters(query);
  return { ids: items.map(({ job }) => job.id), next };
}

/** Tests of the walk in the order of enqueue. */
export function enqueueOrderFacts({ fact, timed }: Suite): void {
  const sort = "enqueued";

  fact("lists letters in the order of enqueue, whenever the jobs died", async ({ store }) => {
    const runs: ClaimedJob[] = [];
    for (const tenant of ["a", "b", "a", "b", "a"]) runs.push(await start(store, { tenant, key: `key of ${tenant}` }));
    for (const at of [3, 0, 4, 2, 1]) await end(store, runs[at] as ClaimedJob, dead());
    const ids = runs.map(({ id }) => id);
    for (const limit of [1, 2, 5, 200]) expect(await walk(store, { limit, sort })).toEqual(ids);
    expect(await walk(store, { limit: 1, sort, tenant: "b" })).toEqual([ids[1], ids[3]]);
    expect(await walk(store, { limit: 1, sort, fingerprint: "f1" })).toEqual(ids);
    expect(await walk(store, { limit: 2, sort, type: runs[2]?.type ?? "" })).toEqual([ids[2]]);
  });

  fact("ends that order with the letters that were there at its first page", async ({ store }) => {
    const early = await start(store);
    const runs = [await start(store), await start(store), await start(store)];
    const late = await start(store);
    for (const run of runs) await end(store, run, dead());
    const first = await idsOf(store, { limit: 1, sort });
    expect(first.ids).toEqual([runs[0]?.id]);
    for (const run of [early, late]) await end(store, run, dead());
    await finish(store, dead());
    await end(store, await revive(store, await read(store, runs[0]?.id as string)), dead());
    await end(store, await revive(store, await read(store, runs[2]?.id as string)), dead());
    const rest = await idsOf(store, { limit: 9, sort, cursor: first.next });
    expect(rest).toEqual({ ids: [runs[1]?.id], next: null });
  });

  fact("lists every letter of a job once in that order, also across pages", async ({ store }) => {
    const first = await finish(store, dead());
    const second = await finish(store, dead());
    for (let times = 0; times < 2; times++) await end(store, await revive(store, await read(store, first.id)), dead());
    const expected = [first.id, first.id, first.id, second.id];
    for (const limit of [1, 2, 3, 4]) expect(await walk(store, { limit, sort, redriven: true })).toEqual(expected);
    expect(await walk(store, { limit: 1, sort })).toEqual([first.id, second.id]);
  });

  timed("redrives by filter in the order of enqueue, each that was dead once", async ({ store, clock }) => {
    const jobs = Array.from({ length: 450 }, () => newJob({ type: "many" }));
    await store.enqueue(jobs);
    const runs = await take(store);
    // They die in another order, as with several workers.
    const died = runs.toSorted((a, b) => (digestOf(a.id) < digestOf(b.id) ? -1 : 1));
    await store.settle({ settlements: died.map((run) => ({ ...leaseOf(run), verdict: dead() })) });
    let calls = 0;
    const slow: Store = {
      ...store,
      deadLetters: (query) => store.deadLetters(query),
      async redrive(requests) {
        calls += 1;
        if (calls > 10) throw new Error("The walk does not end.");
        clock.now += 1;
        const answers = await store.redrive(requests);
        // Meanwhile others die.
        await finish(store, dead(), { type: "late", tenant: String(calls) });
        return answers;
      },
    };
    const eventLog = openEventLog({ store, actor: "a test", log: collectLog() });
    const letters = openDeadLetters({
      store: slow,
      eventLog,
      jobs: [],
      maxPayloadBytes: 1,
      openModule: () => Promise.reject(new Error("There is no module.")),
    });
    expect(await letters.retry({ all: true })).toEqual({ redriven: 450, refused: 0, missing: 0 });
    expect((await take(store)).map(({ id }) => id)).toEqual(jobs.map(({ id }) => id));
    expect(await walk(store, { limit: 200 })).toHaveLength(calls);
  });

  fact("refuses an unknown order and the cursor of another one", async ({ store }) => {
    for (let died = 0; died < 2; died++) await finish(store, dead());
    const refused = { code: "invalid_argument" };
    const unknown = store.deadLetters({ limit: 1, sort: "due" as "enqueued" });
    await expect(unknown).rejects.toMatchObject(refused);
    const { next: newest } = await store.deadLetters({ limit: 1 });
    const { next: enqueued } = await store.deadLetters({ limit: 1, sort });
    await expect(store.deadLetters({ limit: 1, sort, cursor: newest })).rejects.toMatchObject(refused);
    await expect(store.deadLetters({ limit: 1, cursor: enqueued })).rejects.toMatchObject(refused);
  });
}

/** Tests of keys outside of enqueue. */
export function shownKeyFacts({ fact }: Suite): void {
  fact("narrows letters by key and counts them", async ({ store }) => {
    const a = await finish(store, dead(), { key: "order 17" });
    const b = await finish(store, dead(), { key: "order 17" });
    const c = await finish(store, dead(), { key: "Order 17" });
    await finish(store, dead());
    for (const [key, jobs] of [
      ["order 17", [b, a]],
      ["Order 17", [c]],
      ["order", []],
    ] as const) {
      expect(await walk(store, { limit: 1, key })).toEqual(jobs.map(({ id }) => id));
      expect((await store.tally({ key })).total).toBe(jobs.length);
    }
    expect(await walk(store, { limit: 1, key: "order 17", type: a.type })).toEqual([a.id]);
    for (const key of ["", "\0", 5 as unknown as string]) {
      await expect(store.deadLetters({ limit: 1, key })).rejects.toMatchObject({ code: "invalid_argument" });
      await expect(store.tally({ key })).rejects.toMatchObject({ code: "invalid_argument" });
    }
  });

  fact("has the key in letters and in the history", async ({ store }) => {
    const run = await start(store, { key: "order 18" });
    await end(store, run, retry());
    await end(store, await takeOne(store, run.id), dead());
    expect((await store.history(run.id)).map(({ key }) => key)).toEqual(["order 18", "order 18"]);
    expect((await store.deadLetters({ limit: 1 })).items).toMatchObject([{ job: { key: "order 18" } }]);
    const plain = await finish(store, dead());
    expect(await store.history(plain.id)).toMatchObject([{ key: null }]);
  });
}

/** Tests of the release that ran. */
export function releaseFacts({ fact }: Suite): void {
  fact("has the release of the worker that ran in the history and in the letter", async ({ store }) => {
    const worker = { leaseMs: 30_000, pid: 1, host: "h" };
    await store.register({ ...worker, id: "old", release: "1.4.1" });
    await store.register({ ...worker, id: "new", release: "1.5.0" });
    await store.register({ ...worker, id: "none", release: null });
    const run = await start(store, {}, "old");
    await end(store, run, retry());
    await end(store, await takeOne(store, run.id, "none"), retry());
    const died = await end(store, await takeOne(store, run.id, "new"), dead());
    expect((await store.history(run.id)).map((each) => each.release)).toEqual(["1.4.1", null, "1.5.0"]);
    expect((await store.deadLetters({ limit: 1 })).items).toMatchObject([{ release: "1.5.0" }]);
    await store.redrive([{ id: died.id, generation: died.generation, delayMs: 0 }]);
    await end(store, await takeOne(store, run.id, "none"), dead());
    const letters = (await store.deadLetters({ limit: 2, redriven: true })).items;
    expect(letters.map((each) => each.release)).toEqual([null, "1.5.0"]);
  });

  fact("has the release of the lost worker where a reaper of another one judges its run", async ({ store }) => {
    const worker = { leaseMs: 30_000, pid: 1, host: "h" };
    await store.register({ ...worker, id: "lost", release: "1.4.1" });
    await store.register({ ...worker, id: "reaper", release: "1.5.0" });
    await store.register({ ...worker, id: "leaving", release: "1.4.2" });
    const runs = [await start(store, {}, "lost"), await start(store, {}, "leaving")];
    await store.leave("leaving");
    const expired = await store.expired({ gone: ["lost"], limit: 10 });
    expect(expired.map(({ job }) => job.id)).toEqual(runs.map(({ id }) => id));
    const settlements = expired.map(({ lease }) => ({ ...lease, verdict: dead({ reason: "crashed" }) }));
    expect(await store.settle({ settlements, worker: "reaper", startedThrough: 0 })).toMatchObject({ stale: [] });
    const letters = (await store.deadLetters({ limit: 2, sort: "enqueued" })).items;
    expect(letters.map((each) => each.release)).toEqual(["1.4.1", "1.4.2"]);
    for (const [at, run] of runs.entries())
      expect(await store.history(run.id)).toMatchObject([{ release: letters[at]?.release }]);
  });
}

/** Tests of the failure of a job after a redrive. */
export function presentFailureFacts({ fact }: Suite): void {
  const first = failure({ class: "permanent", message: "of the first generation" });
  const second = failure({ message: "of the second generation" });
  /** Every way to read a job that is not running. */
  const shown = async (store: Store, id: string) => {
    const [job] = await store.get([id]);
    const { items: jobs } = await store.list({ limit: 200 });
    const { items: letters } = await store.deadLetters({ limit: 200, redriven: true, jobId: id });
    const all = [job, jobs.find((each) => each.id === id), ...letters.map((letter) => letter.job)];
    return all.map((each) => each?.failure ?? null);
  };
  const redriven = async (store: Store): Promise<ClaimedJob> => {
    const died = await finish(store, dead({ failure: first }));
    expect(await shown(store, died.id)).toEqual([first, first, first]);
    expect(await store.redrive([{ id: died.id, generation: 1, delayMs: 0 }])).toEqual(["redriven"]);
    expect(await shown(store, died.id)).toEqual([null, null, null]);
    const run = await takeOne(store, died.id);
    expect(run.failure).toBeNull();
    expect(await shown(store, died.id)).toEqual([null, null, null]);
    return run;
  };
  const kept = async (store: Store, id: string): Promise<void> => {
    expect((await store.history(id))[0]).toMatchObject({ generation: 1, failure: first });
    expect((await store.deadLetters({ limit: 5, redriven: true, jobId: id })).items.at(-1)?.failure).toEqual(first);
  };

  for (const [how, verdict] of [
    ["completes", complete()],
    ["is released", release()],
    ["is cancelled", cancel()],
  ] as const) {
    fact(`has no failure of an earlier generation when it ${how}`, async ({ store }) => {
      const run = await redriven(store);
      await end(store, run, verdict);
      expect(await shown(store, run.id)).toEqual([null, null, null]);
      await kept(store, run.id);
    });
  }

  for (const [how, verdict] of [
    ["fails", retry({ failure: second })],
    ["fails without being charged", retry({ failure: second, charge: { attempts: 0, crashes: 0 } })],
    ["dies without being charged", dead({ failure: second, charge: { attempts: 0, crashes: 0 } })],
  ] as const) {
    fact(`has the failure of its own generation when it ${how}`, async ({ store }) => {
      const run = await redriven(store);
      await end(store, run, verdict);
      expect(new Set((await shown(store, run.id)).map((each) => each?.message))).toEqual(new Set([second.message]));
      await kept(store, run.id);
      if (verdict.kind === "retry") expect((await takeOne(store, run.id)).failure).toEqual(second);
    });
  }

  fact("leaves nothing behind where a redriven job is not kept", async ({ store }) => {
    const run = await redriven(store);
    await store.settle({
      settlements: [{ ...leaseOf(run), verdict: { kind: "complete", result: null, keep: false } }],
    });
    expect(await store.get([run.id])).toEqual([null]);
    expect(await store.history(run.id)).toEqual([]);
    expect((await store.deadLetters({ limit: 5, redriven: true })).items).toEqual([]);
    await add(store);
    expect(await take(store)).toHaveLength(1);
  });
}
