// The store behind a real PgBouncer in transaction mode, with fewer connections to the server than it has clients.
import pg from "pg";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { defineJob, fixed, PermanentError } from "../../../src/index.ts";
import { importBuilt } from "../../support/built.ts";
import { HAS_PGBOUNCER, startPgBouncer } from "../../support/pgbouncer.ts";
import { testPool, testSchema } from "../../support/postgres-queue.ts";
import { withPg } from "../../support/transaction-kinds.ts";

const SERVER = inject("postgres18");
const { createRedrive, postgres } = {
  ...(await importBuilt<typeof import("../../../src/index.ts")>("index.js")),
  ...(await importBuilt<typeof import("../../../src/store/postgres/index.ts")>("store/postgres/index.js")),
};

async function behind(connections: number) {
  const { schema } = testSchema(SERVER);
  const url = await startPgBouncer(SERVER, connections);
  return { schema, url, store: `${url}?schema=${schema}` };
}

async function works(): Promise<void> {
  const { store, url } = await behind(2);
  const pool = testPool(url);
  const work = defineJob("work", {
    backoff: fixed(1),
    async run({ n }: { n: number }, ctx) {
      if (n % 10 === 3 && ctx.attempt === 1) throw new Error("once");
      if (n % 10 === 7) throw new PermanentError("never");
      if (n % 10 === 5) await withPg(pool, (tx) => ctx.complete(n, { tx }));
      return n;
    },
  });
  const redrive = await createRedrive({ store: `${store}&pooler=true`, jobs: [work], log: "silent" });
  onTestFinished(() => redrive.close());
  await redrive.enqueueMany(
    work,
    Array.from({ length: 50 }, (_, n) => ({ n })),
  );
  const keyed = Array.from({ length: 30 }, (_, n) => redrive.enqueue(work, { n: 100 }, { key: `k${n % 5}` }));
  expect((await Promise.all(keyed)).filter(({ duplicate }) => !duplicate)).toHaveLength(5);
  await withPg(pool, (tx) => redrive.enqueue(work, { n: 101 }, { key: "own", tenant: "new", tx }));
  const workers = [redrive.worker({ poll: 20 }), redrive.worker({ poll: 20 })];
  const counts = await Promise.all(workers.map((worker) => worker.drain({ grace: "200ms" })));
  const sum = (of: "completed" | "dead" | "stale"): number => counts.reduce((all, each) => all + each[of], 0);
  expect([sum("completed"), sum("dead"), sum("stale")]).toEqual([51, 5, 0]);
  expect(await redrive.jobs.count()).toMatchObject({ queued: 0, running: 0, completed: 51, dead: 5 });
}

async function beats(): Promise<void> {
  const { store } = await behind(2);
  let lost = false;
  const slow = defineJob("slow", {
    async run(_input: null, { signal }) {
      await new Promise((resolve) => setTimeout(resolve, 4_000));
      lost = signal.aborted;
    },
  });
  const redrive = await createRedrive({ store: `${store}&pooler=true`, jobs: [slow], log: "silent" });
  onTestFinished(() => redrive.close());
  await redrive.enqueue(slow, null);
  const counts = await redrive.worker({ lease: "3s", heartbeat: "500ms", poll: 20 }).drain();
  expect(counts).toMatchObject({ claimed: 1, completed: 1, stale: 0 });
  expect(lost).toBe(false);
}

async function saysWhatIsMissing(): Promise<void> {
  const { schema, url, store } = await behind(2);
  await expect(createRedrive({ store, log: "silent" })).rejects.toMatchObject({
    code: "store_unusable",
    message: expect.stringMatching(/pooler: true.*pooler=true/),
  });
  // A pool of one's own gets further, until it meets a connection that has not prepared what it asks for.
  const pool = new pg.Pool({ connectionString: url, max: 8 });
  onTestFinished(() => pool.end());
  const redrive = await createRedrive({ store: postgres({ pool, schema, pooler: true }), log: "silent" });
  await redrive.enqueue("work", null);
  await redrive.close();
  const forgetful = postgres({ pool, schema });
  const calls = Array.from({ length: 40 }, () => forgetful.count());
  const failed = (await Promise.allSettled(calls)).flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
  for (const error of failed as unknown[])
    expect(error).toMatchObject({ code: "store_unusable", message: expect.stringMatching(/pooler: true/) });
  await forgetful.close();
}

describe("behind PgBouncer in transaction mode", () => {
  if (HAS_PGBOUNCER) {
    it("everything works, with fewer connections than clients", works);
    it("a heartbeat keeps the lease", beats);
    it("whoever forgets to say so is told what is missing", saysWhatIsMissing);
  } else it.skip("needs the program pgbouncer, which is not installed here", () => undefined);
});
