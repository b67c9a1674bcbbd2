// The counts of redrive runs, and letters found by run and outcome.
import { expect } from "vitest";
import type { Job } from "../../src/core/job.ts";
import { NO_SUMS } from "../../src/store/dead-letters.ts";
import type { Settlement } from "../../src/store/store.ts";
import { newJob } from "../support/new-job.ts";
import { finish, leaseOf, signUp, take, takeOne } from "../support/runs.ts";
import { cancel, complete, dead, retry } from "../support/verdicts.ts";
import { RUN, SAME, OTHER, KEEP, sent, sendMany, settle, letterOf, countsOf } from "./sent-jobs.ts";
import type { Suite } from "./suite.ts";

/** Tests of counts of runs, and of letters found by run and outcome. */
export function redriveCountFacts({ fact, timed }: Suite): void {
  fact("counts a job as gone that is deleted before its outcome is known", async ({ store }) => {
    // As programs of version 1 settle: without saying that the job was sent back.
    const jobs = [await sent(store), await sent(store), await sent(store), await sent(store)] as [Job, Job, Job, Job];
    for (const [at, verdict] of [dead(), cancel(), complete(), dead()].entries()) {
      const { id } = jobs[at] as Job;
      await store.settle({ settlements: [{ ...leaseOf(await takeOne(store, id)), verdict }] });
    }
    expect(await store.remove(jobs.slice(0, 3).map(({ id }) => id))).toBe(3);
    expect(await countsOf(store)).toEqual({ sent: 4, gone: 2 });
    const retention = { keep: KEEP, types: [], keyMs: 0, limit: 10, isFirst: true };
    await store.prune(retention);
    await store.prune(retention);
    expect(await countsOf(store)).toEqual({ sent: 4, gone: 3 });
  });

  fact("does not count a job as gone whose outcome is known", async ({ store }) => {
    const job = await sent(store);
    await settle(store, job, dead());
    expect(await store.remove([{ id: job.id, generation: 2 }])).toBe(1);
    expect(await countsOf(store)).toEqual({ sent: 1, same: 1, dead: 1 });
  });

  timed("keeps the counts of a run when their ticks become one an hour", async ({ store, clock }) => {
    const worker = await signUp(store, 86_400_000);
    const run = async (count: number, verdict: Settlement["verdict"]): Promise<void> => {
      await sendMany(store, count);
      const taken = await take(store, worker, { only: ({ type }) => type === "many" });
      await store.settle({ settlements: taken.map((each) => ({ ...leaseOf(each), verdict, redriven: true })), worker });
    };
    clock.now += 3_600_000 - (clock.now % 3_600_000);
    await run(5, dead({ failure: OTHER }));
    clock.now += 10_000;
    await run(100, complete());
    const counts = { sent: 105, good: 100, other: 5, dead: 5 };
    expect(await countsOf(store)).toEqual(counts);
    expect((await store.redriveCounts([RUN]))[0]?.recent).toEqual({ ...NO_SUMS, sent: 100, good: 100 });
    clock.now += 8 * 3_600_000;
    for (let more = true; more; ) ({ more } = await store.fold({ limit: 1_000 }));
    expect(await countsOf(store)).toEqual(counts);
    expect((await store.redriveCounts([RUN]))[0]?.recent).toEqual({ ...NO_SUMS, ...counts });
  });

  timed("knows the newest ticks that have a hundred first runs", async ({ store, clock }) => {
    const worker = await signUp(store, 86_400_000);
    const runs = async (count: number, verdict: Settlement["verdict"], by: string | undefined) => {
      await sendMany(store, count);
      const settlements = (await take(store, worker, { only: ({ type }) => type === "many" })).map((run) => {
        return { ...leaseOf(run), verdict, redriven: true };
      });
      await store.settle({ settlements, ...(by !== undefined && { worker: by }) });
    };
    clock.now += 10_000 - (clock.now % 10_000);
    await runs(5, dead({ failure: OTHER }), worker);
    clock.now += 10_000;
    await runs(40, complete(), worker);
    await runs(10, retry({ failure: SAME, delayMs: 86_400_000 }), undefined);
    clock.now += 10_000;
    const [few] = await store.redriveCounts([RUN]);
    expect(few?.recent).toEqual({ ...NO_SUMS, sent: 55, good: 40, same: 10, other: 5, dead: 5 });
    await runs(60, complete(), worker);
    const [counts, none] = await store.redriveCounts([RUN, "r_none"]);
    expect(counts).toMatchObject({ id: RUN, sent: 115, good: 100, same: 10, other: 5, dead: 5 });
    expect(counts?.recent).toEqual({ ...NO_SUMS, sent: 110, good: 100, same: 10 });
    expect(none).toEqual({ id: "r_none", ...NO_SUMS, recent: NO_SUMS });
  });

  fact("finds letters by run and outcome", async ({ store }) => {
    const [good, bad, waits, own] = [await sent(store), await sent(store), await sent(store), await sent(store, null)];
    const live = await finish(store, dead());
    await settle(store, good, complete());
    await settle(store, bad, retry({ failure: SAME }));
    const ids = async (query: object) =>
      (await store.deadLetters({ limit: 10, oldest: true, ...query })).items.map(({ job }) => job.id);
    expect(await ids({ redrive: RUN })).toEqual([good.id, bad.id, waits.id]);
    expect(await ids({ redrive: RUN, sort: "enqueued" })).toEqual([good.id, bad.id, waits.id]);
    expect(await ids({ redrive: RUN, outcome: "completed" })).toEqual([good.id]);
    expect(await ids({ outcome: "failing" })).toEqual([bad.id]);
    expect(await ids({ outcome: "none" })).toEqual([waits.id, own.id]);
    expect(await ids({})).toEqual([live.id]);
    expect((await store.tally({ redrive: RUN })).total).toBe(3);
  });

  fact("tells the upper end of a list in the order of enqueue, and keeps to a given one", async ({ store }) => {
    const page = (query = {}) => store.deadLetters({ limit: 1, sort: "enqueued", ...query });
    expect(await page()).toEqual({ items: [], next: null, through: 0 });
    const first = await finish(store, dead());
    const { through } = await page();
    const later = await finish(store, dead());
    expect((await page()).through).toBeGreaterThan(through as number);
    const kept = await page({ through, limit: 5 });
    expect(kept.items.map(({ job }) => job.id)).toEqual([first.id]);
    expect(kept).toMatchObject({ next: null, through });
    const all = await page();
    const next = await page({ cursor: all.next });
    expect(next.items.map(({ job }) => job.id)).toEqual([later.id]);
    expect((await page({ cursor: all.next, through })).items).toEqual([]);
  });

  fact("counts and lists letters up to a number, and up to a place in the order of enqueue", async ({ store }) => {
    const jobs = [newJob(), newJob(), newJob()];
    await store.enqueue(jobs);
    const worker = await signUp(store);
    const runs = await take(store, worker);
    const [first, second, third] = jobs.map(({ id }) => runs.find((run) => run.id === id));
    // The second dies last, so that the order of enqueue and that of the deaths differ.
    for (const run of [first, third, second])
      if (run) await store.settle({ settlements: [{ ...leaseOf(run), verdict: dead() }] });
    const page = (query = {}) => store.deadLetters({ limit: 1, sort: "enqueued", ...query });
    const [one] = [await page({ limit: 2 })];
    const { through = 0, next } = one;
    expect(one.items.map(({ job }) => job.id)).toEqual([first?.id, second?.id]);
    const upTo = next as string;
    const total = async (range: object): Promise<number> => (await store.tally(range)).total;
    expect([await total({ through }), await total({ through: through - 1 }), await total({ upTo })]).toEqual([3, 2, 2]);
    expect(await total({ through: through - 1, upTo })).toBe(1);
    const listed = await page({ limit: 9, through: through - 1, upTo });
    expect(listed.items.map(({ job }) => job.id)).toEqual([first?.id]);
    expect((await page({ limit: 9, upTo })).items.map(({ job }) => job.id)).toEqual([first?.id, second?.id]);
    for (const bad of [{ through: -1 }, { upTo: "x" }])
      await expect(store.tally(bad)).rejects.toMatchObject({ code: "invalid_argument" });
  });

  fact("keeps the dead where a prune is told to", async ({ store }) => {
    const [gone, kept] = [await finish(store, complete()), await finish(store, dead())];
    const retention = { keep: KEEP, types: [], keyMs: 0, limit: 10, isFirst: false };
    await store.prune({ ...retention, holdDead: true });
    expect(await store.prune({ ...retention, holdDead: true })).toMatchObject({ dead: 0, more: false });
    expect((await store.get([gone.id, kept.id])).map((job) => job?.state ?? null)).toEqual([null, "dead"]);
    expect((await store.prune(retention)).dead).toBe(1);
  });

  fact("knows the newer job under the key of a letter", async ({ store }) => {
    const old = await finish(store, dead(), { type: "keyed", key: "k" });
    const without = await finish(store, dead(), { type: "keyless" });
    const holder = async (id: string) => (await letterOf(store, id)).supersededBy;
    expect(await holder(old.id)).toBeNull();
    expect(await holder(without.id)).toBeNull();
    const newer = newJob({ type: "keyed", key: "k", unique: "active" });
    expect((await store.enqueue([newer]))[0]).toMatchObject({ kind: "created" });
    expect(await holder(old.id)).toEqual({ id: newer.id, state: "queued" });
    const run = await takeOne(store, newer.id);
    expect(await holder(old.id)).toEqual({ id: newer.id, state: "running" });
    await store.settle({ settlements: [{ ...leaseOf(run), verdict: complete() }] });
    expect(await holder(old.id)).toEqual({ id: newer.id, state: "completed" });
    await store.remove([newer.id]);
    expect(await holder(old.id)).toEqual({ id: newer.id, state: null });
  });
}
