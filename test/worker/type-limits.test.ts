// Whose limits count: those said for a job or by the type it was enqueued with; for a job enqueued by the name of its
// type alone, those of the type as the worker knows it.
import { describe, expect, it } from "vitest";
import { defineJob, immediate, type PolicyOptions } from "../../src/index.ts";
import type { Job } from "../../src/core/job.ts";
import { createTestRedrive } from "../../src/testing/index.ts";
import { withTypeLimits } from "../../src/worker/type-limits.ts";
import { newJob } from "../support/new-job.ts";
import { signUp, start } from "../support/runs.ts";
import { memoryWorld } from "../support/worlds.ts";
import { beside, drain, KINDS, openRedrive } from "../redrive/kinds.ts";

const failing = (): never => {
  throw new Error("no luck");
};
const twice = defineJob("twice", { maxAttempts: 2, backoff: immediate(), run: failing });
/** The library's limits, said by nobody. */
const usual = defineJob("usual", { backoff: immediate(), run: failing });

describe.each(KINDS)("limits on %s", (kind) => {
  it("count for the job they were said for, also where they are the library's", async () => {
    const redrive = await openRedrive(kind, { jobs: [twice] });
    const ids = [];
    for (const maxAttempts of [undefined, 4, 10]) ids.push((await redrive.enqueue(twice, {}, { maxAttempts })).id);
    await drain(redrive);
    const jobs = await Promise.all(ids.map((id) => redrive.jobs.get(id)));
    expect(jobs).toMatchObject([2, 4, 10].map((attempts) => ({ state: "dead", attempts, limited: true })));
  });

  it("are those of the type for a job enqueued by name, once a worker knows it", async () => {
    const redrive = await openRedrive(kind, { jobs: [twice, usual] });
    const producer = await beside(redrive, kind, {});
    const two = await producer.enqueue("twice", {});
    const ten = await producer.enqueue("usual", {});
    expect(await producer.jobs.get(two.id)).toMatchObject({ maxAttempts: 10, limited: false });
    await drain(redrive);
    expect(await redrive.jobs.get(two.id)).toMatchObject({ state: "dead", attempts: 2, limited: false });
    expect(await redrive.jobs.get(ten.id)).toMatchObject({ state: "dead", attempts: 10, limited: false });
  });

  it("that a run was judged by stand on its job, whoever enqueued it, and so does how long it is kept", async () => {
    const kept = { keep: { finished: "3d", dead: "4d" } };
    const fine = defineJob("fine", { maxAttempts: 4, ...kept, run: () => "done" });
    const bad = defineJob("bad", { maxAttempts: 2, ...kept, backoff: immediate(), run: failing });
    const redrive = await openRedrive(kind, { jobs: [fine, bad] });
    const producer = await beside(redrive, kind, {});
    const ids = [(await producer.enqueue("fine", {})).id, (await producer.enqueue("bad", {})).id];
    await drain(redrive);
    const [well, died] = await Promise.all(ids.map((id) => producer.jobs.get(id)));
    const DAY = 86_400_000;
    const keeps = { keepFinishedMs: 3 * DAY, keepDeadMs: 4 * DAY };
    expect(well).toMatchObject({ maxAttempts: 4, ...keeps, expiresAt: (well?.finishedAt ?? 0) + 3 * DAY });
    expect(died).toMatchObject({ maxAttempts: 2, ...keeps, expiresAt: (died?.finishedAt ?? 0) + 4 * DAY });
  });

  it("of a job enqueued by name come from the type, then from the worker's defaults, then from the producer's", async () => {
    const producing = { defaults: { maxAttempts: 4, deadline: "1h" } };
    const attemptsWith = async (defaults: PolicyOptions) => {
      const redrive = await openRedrive(kind, { jobs: [twice, usual], defaults });
      const producer = await beside(redrive, kind, producing);
      const ids = [(await producer.enqueue("twice", {})).id, (await producer.enqueue("usual", {})).id];
      await drain(redrive);
      return Promise.all(ids.map(async (id) => (await redrive.jobs.get(id))?.attempts));
    };
    expect(await attemptsWith({})).toEqual([2, 4]);
    // What the library would have said, said by somebody, counts like any other word.
    expect(await attemptsWith({ maxAttempts: 10 })).toEqual([2, 10]);
  });

  it("that were said for a job enqueued by name count, with the queue's defaults for the rest", async () => {
    const impatient = defineJob("impatient", { deadline: 1, maxAttempts: 2, backoff: immediate(), run: failing });
    const redrive = await openRedrive(kind, { jobs: [impatient] });
    const producer = await beside(redrive, kind, {});
    const three = await producer.enqueue("impatient", {}, { maxAttempts: 3 });
    const again = await producer.enqueue("impatient", {}, { maxRetries: 9 });
    await drain(redrive);
    expect(await redrive.jobs.get(three.id)).toMatchObject({ attempts: 3, deadlineMs: null, limited: true });
    expect(await redrive.jobs.get(again.id)).toMatchObject({ attempts: 10, deadlineMs: null, limited: true });
  });

  it("are the type's where its name is given and it is defined here", async () => {
    const redrive = await openRedrive(kind, { jobs: [twice] });
    const { id } = await redrive.enqueue("twice", {});
    expect(await redrive.jobs.get(id)).toMatchObject({ maxAttempts: 2, limited: true });
  });
});

describe("a run of a job enqueued by name", () => {
  it("is judged by what another worker says of its type, where its own has left no word", async () => {
    const { store, clock } = await memoryWorld();
    const lost = await start(store, { type: "killer", limited: false }, await signUp(store, 1_000));
    const served = { type: "killer", queue: "default", concurrency: null, limits: { maxAttempts: 2 } };
    const value = JSON.stringify({ types: [served], queues: null, concurrency: 1 });
    await store.setCells([{ kind: "load", name: "", holder: "another", version: null, value }]);
    clock.now += 2_000;
    const runs = await withTypeLimits(store, [twice]).expired({ gone: [], limit: 10 });
    expect(runs).toMatchObject([{ job: { id: lost.id, maxAttempts: 2 } }]);
  });

  it("sees the limits of its type", async () => {
    const seen: Partial<Job>[] = [];
    const look = defineJob("look", { maxAttempts: 3, deadline: "1h", run: (_input, ctx) => void seen.push(ctx.job) });
    const test = await createTestRedrive({ jobs: [look] });
    await test.store.enqueue([newJob({ type: "look", limited: false })]);
    await test.drain({ until: "idle" });
    expect(seen).toMatchObject([{ maxAttempts: 3, deadlineMs: 3_600_000 }]);
    await test.close();
  });

  it("may be ended by the stuck limit of its type", async () => {
    const forever = defineJob("forever", {
      stuck: { after: "1m", retryAfter: "1m", limit: 0 },
      run: () => new Promise<void>(() => undefined),
    });
    const test = await createTestRedrive({ jobs: [forever], patience: "300ms" });
    await test.store.enqueue([newJob({ id: "hangs", type: "forever", limited: false })]);
    await test.drain({ until: "idle" });
    expect(await test.jobs.get("hangs")).toMatchObject({ state: "dead", attempts: 1, failure: { class: "stuck" } });
    await test.close();
  });
});
