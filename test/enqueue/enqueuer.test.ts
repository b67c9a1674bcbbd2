// Single enqueue calls that share writes: each caller hears about its own job, whatever becomes of its neighbours.
import { describe, expect, it } from "vitest";
import { RedriveError } from "../../src/core/errors.ts";
import type { NewJob } from "../../src/core/new-job.ts";
import { openEnqueuer } from "../../src/enqueue/enqueuer.ts";
import { createRedrive } from "../../src/index.ts";
import { createMemoryStore } from "../../src/store/memory/index.ts";
import { realSystem } from "../../src/system/real.ts";
import { digestOf, newJob } from "../support/new-job.ts";
import { around, unavailable } from "../support/worker-bench.ts";

/** An enqueuer whose writes the test may refuse, and the sizes of those writes. */
function setup(refuse: (jobs: readonly NewJob[]) => Error | null = () => null) {
  const store = createMemoryStore({ clock: () => 1_000_000 });
  const writes: number[] = [];
  const through = around(store, async (verb, next, [jobs]) => {
    if (verb !== "enqueue") return next();
    writes.push((jobs as NewJob[]).length);
    const error = refuse(jobs as NewJob[]);
    if (error) throw error;
    return next();
  });
  return { store, through, writes, enqueuer: openEnqueuer(through, realSystem) };
}

const manyJobs = (count: number): NewJob[] => Array.from({ length: count }, () => newJob());
const codes = (answers: readonly PromiseSettledResult<unknown>[]): string[] =>
  answers.map((answer) => (answer.status === "fulfilled" ? "stored" : (answer.reason as { code: string }).code));

describe("an enqueuer", () => {
  it("answers each caller about its own job, in few writes", async () => {
    const { store, writes, enqueuer } = setup();
    const jobs = manyJobs(300);
    const answers = await Promise.all(jobs.map((job) => enqueuer.enqueue(job)));
    expect(answers.map(({ id, kind }) => [id, kind])).toEqual(jobs.map(({ id }) => [id, "created"]));
    expect(writes).toEqual([150, 150]);
    expect((await store.count()).queued).toBe(300);
  });

  it("tells a duplicate and a conflict to those alone whose they are", async () => {
    const { enqueuer } = setup();
    const keyed = (payload: string) => newJob({ key: "same", payload, digest: digestOf(payload) });
    const jobs = [keyed("1"), newJob(), keyed("1"), keyed("2"), newJob()];
    const answers = await Promise.all(jobs.map((job) => enqueuer.enqueue(job)));
    expect(answers.map(({ kind }) => kind)).toEqual(["created", "created", "duplicate", "conflict", "created"]);
  });

  it("writes no more than 500 at a time", async () => {
    const { store, writes, enqueuer } = setup();
    await Promise.all(manyJobs(2_300).map((job) => enqueuer.enqueue(job)));
    expect(Math.max(...writes)).toBeLessThanOrEqual(500);
    expect((await store.count()).queued).toBe(2_300);
  });
});

describe("large payloads", () => {
  const large = JSON.stringify("x".repeat(1024 * 1024 - 2));
  const lengths = (jobs: readonly NewJob[]): number => jobs.reduce((sum, { payload }) => sum + payload.length, 0);

  it("share writes of eight MiB at most", async () => {
    const written: number[] = [];
    const { writes, enqueuer } = setup((jobs) => (written.push(lengths(jobs)), null));
    await Promise.all(Array.from({ length: 40 }, () => enqueuer.enqueue(newJob({ payload: large }))));
    expect(writes).toEqual([8, 8, 8, 8, 8]);
    expect(Math.max(...written)).toBeLessThanOrEqual(8 * 1024 * 1024);
  });

  it("go alone where they are larger", async () => {
    const { writes, enqueuer } = setup();
    const payload = JSON.stringify("x".repeat(9 * 1024 * 1024));
    const jobs = [newJob(), newJob({ payload }), newJob({ payload }), newJob()];
    await Promise.all(jobs.map((job) => enqueuer.enqueue(job)));
    expect(writes).toEqual([1, 1, 1, 1]);
  });

  it("of a stream share writes of eight MiB too", async () => {
    const { through, writes } = setup();
    const redrive = await createRedrive({ store: through, log: "silent" });
    const summary = await redrive.enqueueMany("work", Array<string>(20).fill(large.slice(1, -1)));
    expect(summary.enqueued).toBe(20);
    expect(writes).toEqual([8, 8, 4]);
    await redrive.close();
  });
});

describe("a job that cannot be stored", () => {
  it("is refused before it is written when its shape is wrong, and its neighbours do not notice", async () => {
    const { store, writes, enqueuer } = setup();
    const jobs = [newJob(), newJob({ priority: 77 }), newJob({ type: "no spaces allowed" }), newJob()];
    const answers = await Promise.allSettled(jobs.map((job) => enqueuer.enqueue(job)));
    expect(codes(answers)).toEqual(["stored", "invalid_argument", "invalid_argument", "stored"]);
    expect(writes).toEqual([2]);
    expect((await store.count()).queued).toBe(2);
  });

  it("rejects alone when the store refuses it, and its neighbours are stored", async () => {
    const jobs = manyJobs(12);
    const guilty = jobs[5]?.id;
    const { store, enqueuer } = setup((group) =>
      group.some(({ id }) => id === guilty) ? new RedriveError("illegal_transition", "refused") : null,
    );
    const answers = await Promise.allSettled(jobs.map((job) => enqueuer.enqueue(job)));
    expect(codes(answers)).toEqual(jobs.map(({ id }) => (id === guilty ? "illegal_transition" : "stored")));
    expect((await store.count()).queued).toBe(11);
    await enqueuer.idle();
  });

  it("leaves the enqueuer as it was", async () => {
    let broken = true;
    const { enqueuer } = setup(() => (broken ? new TypeError("a defect") : null));
    await expect(enqueuer.enqueue(newJob())).rejects.toThrow("a defect");
    broken = false;
    expect((await enqueuer.enqueue(newJob())).kind).toBe("created");
  });
});

describe("an outage", () => {
  it("rejects all who wait for that write, and none of them is asked for one by one", async () => {
    let away = true;
    const { store, writes, enqueuer } = setup(() => (away ? unavailable() : null));
    const answers = await Promise.allSettled(manyJobs(100).map((job) => enqueuer.enqueue(job)));
    expect(codes(answers)).toEqual(Array(100).fill("store_unavailable"));
    expect(writes).toEqual([50, 50]);
    away = false;
    await Promise.all(manyJobs(3).map((job) => enqueuer.enqueue(job)));
    expect((await store.count()).queued).toBe(3);
  });

  it("in the middle rejects those who were not written, and only those", async () => {
    let writes = 0;
    const { store, enqueuer } = setup(() => (++writes === 1 ? null : unavailable()));
    const jobs = manyJobs(100);
    const answers = await Promise.allSettled(jobs.map((job) => enqueuer.enqueue(job)));
    expect(codes(answers)).toEqual([...Array(50).fill("stored"), ...Array(50).fill("store_unavailable")]);
    expect((await store.count()).queued).toBe(50);
  });
});
