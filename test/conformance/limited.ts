// Whether a job's limits were said stays with the job, whatever becomes of it; what its runs are judged by is written with
// their verdicts.
import { expect } from "vitest";
import { newJob } from "../support/new-job.ts";
import { add, end, isStale, leaseOf, read, signUp, start, takeOne } from "../support/runs.ts";
import { cancel, complete, dead, JUDGED_BY, retry } from "../support/verdicts.ts";
import type { Suite } from "./suite.ts";

/** Tests of the mark that a job's limits were said. */
export function limitedFacts({ fact }: Suite): void {
  for (const limited of [true, false]) {
    fact(`stays with the job through all of its life: ${limited}`, async ({ store }) => {
      const id = await add(store, { limited });
      expect((await read(store, id)).limited).toBe(limited);
      const first = await takeOne(store, id);
      expect(first.limited).toBe(limited);
      expect((await end(store, first, retry({ delayMs: 0 }))).limited).toBe(limited);
      const second = await takeOne(store, id);
      expect(second.limited).toBe(limited);
      const { generation } = await end(store, second, dead());
      expect((await store.deadLetters({ limit: 5, cursor: null })).items).toMatchObject([{ job: { id, limited } }]);
      expect(await store.redrive([{ id, generation, delayMs: 0 }])).toEqual(["redriven"]);
      expect((await store.list({ limit: 5, cursor: null })).items).toMatchObject([{ id, limited }]);
      expect((await takeOne(store, id)).limited).toBe(limited);
    });

    fact(`is that of the body that replaced another: ${limited}`, async ({ store }) => {
      const id = await add(store, { type: "keyed", key: "k", limited: !limited });
      const [answer] = await store.enqueue([newJob({ type: "keyed", key: "k", unique: "replace", limited })]);
      expect(answer).toEqual({ kind: "replaced", id });
      expect((await read(store, id)).limited).toBe(limited);
      expect((await takeOne(store, id)).limited).toBe(limited);
    });

    fact(`is that of each job of a call: ${limited} first`, async ({ store }) => {
      const jobs = Array.from({ length: 25 }, (_, n) => newJob({ limited: n % 2 === 0 ? limited : !limited }));
      await store.enqueue(jobs);
      const found = await store.get(jobs.map(({ id }) => id));
      expect(found.map((job) => job?.limited)).toEqual(jobs.map((job) => job.limited));
    });

    fact(`is known of a run whose worker is gone: ${limited}`, async ({ store }) => {
      const id = await add(store, { limited });
      const worker = await signUp(store);
      await takeOne(store, id, worker);
      const runs = await store.expired({ gone: [worker], limit: 5 });
      expect(runs).toMatchObject([{ job: { id, limited } }]);
    });
  }

  for (const verdict of [retry(), dead(), complete(), cancel()]) {
    fact(`the limits that a run was judged by are written with its ${verdict.kind}`, async ({ store }) => {
      const [first, second] = [await start(store, { limited: false }), await start(store, { limited: false })];
      const silent = await start(store);
      const settlements = [
        { ...leaseOf(first), verdict: { ...verdict, said: JUDGED_BY } },
        { ...leaseOf(silent), verdict },
        { ...leaseOf(second), verdict: { ...verdict, said: { ...JUDGED_BY, maxAttempts: 3, deadlineMs: null } } },
      ];
      expect((await store.settle({ settlements })).stale).toEqual([]);
      const after = await read(store, first.id);
      const keepMs = verdict.kind === "dead" ? 2_000 : 1_000;
      const expiresAt = verdict.kind === "retry" ? null : (after.finishedAt as number) + keepMs;
      expect(after).toMatchObject({ ...JUDGED_BY, limited: false, expiresAt });
      expect(await read(store, second.id)).toMatchObject({ ...JUDGED_BY, maxAttempts: 3, deadlineMs: null });
      expect(await read(store, silent.id)).toMatchObject({ maxAttempts: 10, keepFinishedMs: null, expiresAt: null });
    });
  }

  fact("a stale verdict says nothing", async ({ store }) => {
    const run = await start(store, { limited: false });
    await end(store, run, retry());
    expect(await isStale(store, run, { ...complete(), said: JUDGED_BY })).toBe(true);
    expect(await read(store, run.id)).toMatchObject({ maxAttempts: 10, keepFinishedMs: null });
  });

  fact("a stop that was asked for goes by what its run was judged by", async ({ store }) => {
    const run = await start(store, { limited: false });
    await store.cancel([run.id]);
    const after = await end(store, run, { ...retry(), said: JUDGED_BY });
    expect(after).toMatchObject({ state: "cancelled", expiresAt: (after.finishedAt as number) + 1_000 });
  });
}
