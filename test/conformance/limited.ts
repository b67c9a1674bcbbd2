// Whether a job's limits were said stays with the job, whatever becomes of it.
import { expect } from "vitest";
import { newJob } from "../support/new-job.ts";
import { add, end, read, signUp, takeOne } from "../support/runs.ts";
import { dead, retry } from "../support/verdicts.ts";
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
}
