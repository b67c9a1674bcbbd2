// Completing a job in the same transaction as its effect: both are there, or neither. Whatever the handler does after
// that cannot make the job run again or count twice.
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { defineJob, fixed, type JobContext, permanent, type WorkerCounts } from "../../../src/index.ts";
import { newJob } from "../../support/new-job.ts";
import { openQueue, type PostgresQueue } from "../../support/postgres-queue.ts";
import { TRANSACTIONS, withPg } from "../../support/transaction-kinds.ts";

const SERVER = inject("postgres18");

type Handler = (ctx: JobContext, queue: PostgresQueue) => unknown;

/** Runs one job with this handler until nothing is left; the worker looks often. */
async function runOne(handler: Handler) {
  const pay = defineJob("pay", {
    maxAttempts: 3,
    backoff: fixed(1),
    run: (_input: null, ctx): unknown => handler(ctx, queue),
  });
  const queue: PostgresQueue = await openQueue(SERVER, { built: true, jobs: [pay] });
  await queue.sql("create table @.effect (name text)");
  onTestFinished(async () => void (await queue.sql("drop table @.effect")));
  const heard: string[] = [];
  for (const kind of ["job.completed", "job.retried", "job.dead", "job.released", "job.stale"] as const)
    queue.redrive.on(kind, () => void heard.push(kind));
  const { id } = await queue.redrive.enqueue(pay, null);
  const counts: WorkerCounts = await queue.redrive.worker({ poll: 20 }).drain({ grace: "100ms" });
  const job = await queue.redrive.jobs.get(id);
  const effects = (await queue.sql("select name from @.effect")).map(({ name }) => name);
  const [{ ended }] = (await queue.sql("select coalesce(sum(cardinality(seqs)), 0)::int as ended from @.ended")) as [
    { ended: number },
  ];
  return { queue, counts, job, effects, heard, ended };
}

async function effect(tx: unknown, { schema }: PostgresQueue, name: string): Promise<void> {
  const client = tx as { query(text: string): Promise<unknown> };
  await client.query(`insert into ${schema}.effect values ('${name}')`);
}

const ONCE = { claimed: 1, completed: 1, retried: 0, dead: 0, stale: 0 };

/** Ends the run of a job and gives the job to somebody else. */
const GIVEN_AWAY = `with ended as (update @.job set epoch = epoch + 1 where id = $1 returning seq, epoch)
  insert into @.claim (worker, nonce, ticket, started, at, seqs, epochs)
  select 'somebody', 'somebody', 1, 1, 0, array[seq], array[epoch + 1] from ended`;

describe("ctx.complete in a transaction", () => {
  it.each(TRANSACTIONS)("of %s commits with it, and counts once", async (_name, inTransaction) => {
    const { job, counts, heard, ended } = await runOne((ctx, { redrive, pool }) =>
      inTransaction(pool, async (tx) => {
        await ctx.complete({ paid: 1 }, { tx });
        expect(await redrive.jobs.get(ctx.job.id)).toMatchObject({ state: "running", result: null });
      }),
    );
    expect(job).toMatchObject({ state: "completed", attempts: 0, result: '{"paid":1}', failure: null });
    expect(counts).toMatchObject(ONCE);
    expect({ heard, ended }).toEqual({ heard: ["job.completed"], ended: 1 });
  });

  it("writes what the run was judged by, where the job was enqueued by name", async () => {
    const pay = defineJob("pay", {
      maxAttempts: 3,
      keep: { finished: "3d" },
      run: (_input: null, ctx) => withPg(queue.pool, (tx) => ctx.complete(null, { tx })),
    });
    const queue: PostgresQueue = await openQueue(SERVER, { built: true, jobs: [pay] });
    await queue.redrive.store.enqueue([newJob({ id: "by-name", type: "pay", limited: false })]);
    await queue.redrive.worker({ poll: 20 }).drain({ grace: "100ms" });
    const job = await queue.redrive.jobs.get("by-name");
    const keepFinishedMs = 3 * 86_400_000;
    const expiresAt = (job?.finishedAt ?? 0) + keepFinishedMs;
    expect(job).toMatchObject({ state: "completed", maxAttempts: 3, keepFinishedMs, expiresAt });
  });

  it("commits together with the effect", async () => {
    const { job, effects } = await runOne((ctx, queue) =>
      withPg(queue.pool, async (tx) => {
        await effect(tx, queue, "paid");
        await ctx.complete(null, { tx });
      }),
    );
    expect(job?.state).toBe("completed");
    expect(effects).toEqual(["paid"]);
  });

  it("is taken back with the effect where the transaction fails, and the job tries again", async () => {
    const { job, effects, counts, heard } = await runOne((ctx, queue) =>
      withPg(queue.pool, async (tx) => {
        await effect(tx, queue, `try ${ctx.attempt}`);
        await ctx.complete(ctx.attempt, { tx });
        if (ctx.attempt < 3) throw new Error("the card was refused");
      }),
    );
    expect(job).toMatchObject({ state: "completed", attempts: 2, result: "3" });
    expect(effects).toEqual(["try 3"]);
    expect(counts).toMatchObject({ claimed: 3, completed: 1, retried: 2, stale: 0 });
    expect(heard).toEqual(["job.retried", "job.retried", "job.completed"]);
  });

  it("is lost with a lease that is lost, and the effect with it", async () => {
    let caught: unknown;
    const { job, effects, counts } = await runOne(async (ctx, queue) => {
      // Somebody else was given the job.
      await queue.sql(GIVEN_AWAY, [ctx.job.id]);
      await withPg(queue.pool, async (tx) => {
        await effect(tx, queue, "paid twice");
        await ctx.complete(null, { tx });
      }).catch((error: unknown) => {
        caught = error;
        throw error;
      });
    });
    expect(caught).toMatchObject({ name: "RedriveError", code: "lease_lost" });
    expect(job).toMatchObject({ state: "running", epoch: 2 });
    expect(effects).toEqual([]);
    expect(counts).toMatchObject({ completed: 0, retried: 0, stale: 1 });
  });

  it("that was rolled back does not count where the lease is lost afterwards", async () => {
    const { job, counts, heard } = await runOne(async (ctx, queue) => {
      await withPg(queue.pool, async (tx) => {
        await ctx.complete("never", { tx });
        throw new Error("roll back");
      }).catch(() => undefined);
      await queue.sql(GIVEN_AWAY, [ctx.job.id]);
      throw new Error("too late");
    });
    expect(job).toMatchObject({ state: "running", epoch: 2, result: null });
    expect(counts).toMatchObject({ completed: 0, retried: 0, stale: 1 });
    expect(heard).toEqual(["job.stale"]);
  });

  it("that was rolled back is not taken for that of somebody else under the same epoch", async () => {
    // As after a crash of the server that lost the claim: the epoch is given out again.
    const completed = `with other as (update @.job set state = 'completed', epoch = epoch + 1, worker = 'somebody', started_at = 1,
        finished_at = 2 where id = $1 returning seq) delete from @.claim where (select seq from other) = any(seqs)`;
    const { counts, heard } = await runOne(async (ctx, queue) => {
      await withPg(queue.pool, async (tx) => {
        await ctx.complete("never", { tx });
        throw new Error("roll back");
      }).catch(() => undefined);
      await queue.sql(completed, [ctx.job.id]);
    });
    expect(counts).toMatchObject({ completed: 0, stale: 1 });
    expect(heard).toEqual(["job.stale"]);
  });

  it("stays where the handler throws after the commit", async () => {
    const { job, effects, counts, heard, ended, queue } = await runOne(async (ctx, own) => {
      await withPg(own.pool, async (tx) => {
        await effect(tx, own, "paid");
        await ctx.complete("paid", { tx });
      });
      throw new Error("the mail about it failed");
    });
    expect(job).toMatchObject({ state: "completed", attempts: 0, result: '"paid"', failure: null });
    expect({ effects, heard, ended }).toEqual({ effects: ["paid"], heard: ["job.completed"], ended: 1 });
    expect(counts).toMatchObject(ONCE);
    expect(await queue.redrive.store.history(job?.id as string)).toEqual([]);
  });

  it.each([
    ["another result", () => "other"],
    ["a snooze", (ctx: JobContext) => ctx.snooze("1h")],
    ["that it failed", () => permanent("the mail about it failed")],
  ])("stays where the handler returns %s after the commit", async (_what, after) => {
    const { job, counts, heard } = await runOne(async (ctx, { pool }) => {
      await withPg(pool, (tx) => ctx.complete("first", { tx }));
      return after(ctx);
    });
    expect(job).toMatchObject({ state: "completed", result: '"first"' });
    expect(counts).toMatchObject(ONCE);
    expect(heard).toEqual(["job.completed"]);
  });

  it("is refused for an outcome that says the work failed: the transaction is rolled back, and the outcome counts", async () => {
    const { job, effects, counts } = await runOne((ctx, queue) =>
      withPg(queue.pool, async (tx) => {
        await effect(tx, queue, "paid");
        await ctx.complete(permanent("no such card"), { tx });
      }),
    );
    expect(job).toMatchObject({ state: "dead", failure: { class: "permanent", message: "no such card" } });
    expect({ effects, dead: counts.dead }).toEqual({ effects: [], dead: 1 });
  });

  it("means nothing where the handler rolls back and returns: that is a success like any other", async () => {
    const { job, effects, counts, heard } = await runOne(async (ctx, queue) => {
      await withPg(queue.pool, async (tx) => {
        await effect(tx, queue, "paid");
        await ctx.complete("in vain", { tx });
        throw new Error("undo");
      }).catch(() => undefined);
      return "returned";
    });
    expect(job).toMatchObject({ state: "completed", result: '"returned"' });
    expect(effects).toEqual([]);
    expect(counts).toMatchObject(ONCE);
    expect(heard).toEqual(["job.completed"]);
  });

  it("works once: the lease ends with it", async () => {
    let second: unknown;
    const { job } = await runOne((ctx, { pool }) =>
      withPg(pool, async (tx) => {
        await ctx.complete("first", { tx });
        second = await ctx.complete("second", { tx }).catch((error: unknown) => error);
      }),
    );
    expect(second).toMatchObject({ code: "lease_lost" });
    expect(job).toMatchObject({ state: "completed", result: '"first"' });
  });

  it.each([
    ["nothing", undefined, /^complete: expected an object with tx/],
    ["no transaction", {}, /^tx: expected/],
    ["a word", { tx: "begin" }, /^tx: expected/],
    ["another option", { within: 1 }, /^complete: expected an object with tx; got "within"; did you mean "tx"\?/],
  ])("refuses %s in place of the transaction, and the job goes on", async (_what, options, message) => {
    let caught: unknown;
    const { job } = await runOne(async (ctx) => {
      caught = await ctx.complete(1, options as never).catch((error: unknown) => error);
      return "returned";
    });
    expect(caught).toMatchObject({ code: "invalid_argument", message: expect.stringMatching(message) });
    expect(job).toMatchObject({ state: "completed", result: '"returned"' });
  });
});
