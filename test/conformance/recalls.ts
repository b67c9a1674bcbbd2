// Recalls of jobs that were sent back and not taken.
import { expect } from "vitest";
import type { Job } from "../../src/core/job.ts";
import { add, claimBy, finish, leaseOf, read, signUp, take, takeOne } from "../support/runs.ts";
import { cancel, complete, dead, release, retry } from "../support/verdicts.ts";
import { RUN, sent, sendMany, letterOf, countsOf } from "./sent-jobs.ts";
import type { Suite } from "./suite.ts";

/** Tests of recalls. */
export function recallFacts({ fact, timed }: Suite): void {
  const target = ({ id }: Job, generation = 1) => ({ id, generation });

  timed("takes a job back that no worker has taken", async ({ store, clock }) => {
    const verdict = dead({ reason: "permanent" });
    const was = await finish(store, verdict, { maxAttempts: 3, keepDeadMs: 5_000 });
    const old = await letterOf(store, was.id);
    clock.now += 1_000;
    await store.redrive([{ id: was.id, generation: 1, delayMs: 50, redrive: RUN }]);
    clock.now += 10;
    expect(await store.recall([target(was)])).toEqual(["recalled"]);
    const job = await read(store, was.id);
    expect(job).toMatchObject({ state: "dead", generation: 2, epoch: was.epoch, attempts: 0, finishedAt: clock.now });
    expect(job.expiresAt).toBe(clock.now + 5_000);
    const { redrivenAt, generation, job: _job, ...rest } = await letterOf(store, was.id, 2);
    const { redrivenAt: _sent, generation: _old, job: _was, ...before } = old;
    expect({ redrivenAt, generation }).toEqual({ redrivenAt: null, generation: 2 });
    expect(rest).toStrictEqual(before);
    expect(await letterOf(store, was.id, 1)).toMatchObject({ redrive: RUN, outcome: "recalled", outcomeAt: clock.now });
    expect(await countsOf(store)).toEqual({ sent: 1, recalled: 1 });
  });

  fact("leaves nothing to claim, and counts no new death", async ({ store }) => {
    const job = await sent(store);
    const [before] = (await store.causes({ limit: 10, idle: true })).items;
    expect(before).toMatchObject({ live: 0, deaths: 1, failures: 1 });
    await store.recall([target(job)]);
    expect((await claimBy(store, await signUp(store))).jobs).toEqual([]);
    expect((await store.causes({ limit: 10 })).items).toMatchObject([{ live: 1, deaths: 1, failures: 1 }]);
    expect(await store.recount({ after: "", limit: 10 })).toMatchObject({ mended: 0 });
  });

  fact("is refused for the old death, and the job can be sent again", async ({ store }) => {
    const job = await sent(store);
    await store.recall([target(job)]);
    expect(await store.redrive([{ id: job.id, generation: 1, delayMs: 0, redrive: RUN }])).toEqual(["refused"]);
    expect(await store.recall([target(job), target(job, 2)])).toEqual(["refused", "refused"]);
    expect(await store.redrive([{ id: job.id, generation: 2, delayMs: 0, redrive: RUN }])).toEqual(["redriven"]);
    expect((await read(store, job.id)).generation).toBe(3);
    expect(await store.recall([target(job, 2)])).toEqual(["recalled"]);
    expect(await countsOf(store)).toEqual({ sent: 2, recalled: 2 });
  });

  fact("is refused once a worker has taken the job, whatever became of the run", async ({ store }) => {
    const verdicts = [release(), retry({ charge: { attempts: 0, crashes: 0 } }), retry(), complete(), dead(), cancel()];
    for (const verdict of [null, ...verdicts]) {
      const job = await sent(store);
      const run = await takeOne(store, job.id);
      if (verdict) await store.settle({ settlements: [{ ...leaseOf(run), verdict, redriven: true }] });
      const before = await read(store, job.id);
      expect(await store.recall([target(job)])).toEqual(["refused"]);
      expect(await read(store, job.id)).toEqual(before);
    }
  });

  fact(
    "is refused for a job that was never sent back, was cancelled, or is named by another generation",
    async ({ store }) => {
      const [fresh, died, stopped, other] = [
        await add(store),
        await finish(store, dead()),
        await sent(store),
        await sent(store),
      ];
      await store.cancel([stopped.id]);
      const targets = [{ id: fresh, generation: 0 }, { id: fresh, generation: 1 }, target(died), target(stopped)];
      expect(await store.recall([...targets, target(other, 2), { id: "nobody", generation: 1 }])).toEqual([
        ...Array(5).fill("refused"),
        "missing",
      ]);
      expect((await read(store, other.id)).state).toBe("queued");
    },
  );

  fact("takes back a job once, however often it is named", async ({ store }) => {
    const [a, b] = [await sent(store), await sent(store)];
    expect(await store.recall([target(a), target(b), target(a)])).toEqual(["recalled", "recalled", "refused"]);
    expect(await countsOf(store)).toEqual({ sent: 2, recalled: 2 });
  });

  fact("takes back a job that was moved meanwhile", async ({ store }) => {
    const job = await sent(store);
    await store.reschedule([{ id: job.id, delayMs: 60_000, priority: 9 }]);
    expect(await store.recall([target(job)])).toEqual(["recalled"]);
    expect(await store.count()).toMatchObject({ queued: 0, dead: 1 });
  });

  fact("lets the next job of its group go", async ({ store }) => {
    const first = await sent(store, RUN, { type: "g", group: "one" });
    const next = await add(store, { type: "g", group: "one" });
    expect(await store.recall([target(first)])).toEqual(["recalled"]);
    expect((await take(store)).map(({ id }) => id)).toEqual([next]);
    expect((await store.holders({ type: "g", group: "one" })).map(({ id }) => id)).toEqual([next]);
  });

  fact("keeps a job that another process claims at the same time, or gets it", async ({ store, peer }) => {
    const other = await peer();
    const worker = await signUp(store);
    const jobs = await sendMany(store, 20);
    const [claimed, answers] = await Promise.all([
      claimBy(store, worker, { limit: 10 }),
      other.recall(jobs.map((job) => target(job))),
    ]);
    const recalled = answers.filter((answer) => answer === "recalled");
    const rest = (await claimBy(store, worker)).jobs;
    expect(claimed.jobs.length + rest.length + recalled.length).toBe(20);
    expect(await countsOf(store)).toEqual({ sent: 20, ...(recalled.length > 0 && { recalled: recalled.length }) });
  });
}
