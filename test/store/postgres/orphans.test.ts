// Jobs that somebody deleted in SQL: their bad runs and dead letters go with the next prunes, a page at a time, and nobody
// else's do.
import { expect, inject, it, onTestFinished } from "vitest";
import { postgresWorld, sql } from "../../support/postgres-world.ts";
import { end, start } from "../../support/runs.ts";
import { dead, retry } from "../../support/verdicts.ts";

const SERVERS = [inject("postgres18"), inject("postgres15")].filter((url) => url !== null);
const RETENTION = { keep: { finishedMs: 86_400_000, deadMs: null }, types: [], keyMs: 86_400_000, isFirst: true };
const JOBS = 13;

it.each(SERVERS)("what is left of jobs that were deleted by hand is pruned, on %s", async (server) => {
  const { store, schema, close } = await postgresWorld(server);
  onTestFinished(close);
  for (let n = 0; n < JOBS; n++) await end(store, await start(store, { type: `t${n % 2}` }), dead());
  await end(store, await start(store, { type: "alive" }), retry({ delayMs: 60_000 }));
  const left = async (): Promise<unknown> => {
    const { total: count } = await store.tally({});
    const [row] = await sql(server, `select count(*)::int as attempts from ${schema}.attempt`);
    return { count, ...row };
  };
  const pass = () => store.prune({ ...RETENTION, limit: 1 });
  expect(await left()).toEqual({ count: JOBS, attempts: JOBS + 1 });
  await sql(server, `delete from ${schema}.job where lane in (select base from ${schema}.lane where type = 't0')`);
  // A pass looks at ten rows of each table.
  await pass();
  expect(await left()).toEqual({ count: JOBS - 5, attempts: JOBS - 4 });
  await pass();
  expect(await left()).toEqual({ count: 6, attempts: 7 });
  expect((await store.deadLetters({ limit: 20, cursor: null })).items).toHaveLength(6);
  // From the beginning again.
  await sql(server, `delete from ${schema}.job where state = 'dead'`);
  await pass();
  expect(await left()).toEqual({ count: 0, attempts: 1 });
});

it.each(SERVERS)("what is noted of jobs set aside goes once no such job is left, on %s", async (server) => {
  const { store, schema, clock, close } = await postgresWorld(server);
  onTestFinished(close);
  const keeps = { keepFinishedMs: 10, keepDeadMs: 10 };
  const jobs = [];
  for (let n = 0; n < 2; n++) {
    const job = await start(store, keeps);
    await end(store, job, dead());
    jobs.push(job);
  }
  clock.now += 10;
  await store.prune({ ...RETENTION, types: [{ type: jobs[0]?.type ?? "", finishedMs: 10, deadMs: null }], limit: 10 });
  const noted = () => sql(server, `select cardinality(seqs) as jobs from ${schema}.ended where state = 'dead'`);
  expect(await noted()).toEqual([{ jobs: 2 }]);
  await store.remove([jobs[0]?.id ?? ""]);
  await store.prune({ ...RETENTION, limit: 10 });
  expect(await noted()).toEqual([{ jobs: 2 }]);
  expect((await store.tally({ aside: true })).total).toBe(1);
  await store.redrive([{ id: jobs[1]?.id ?? "", generation: 1, delayMs: 0 }]);
  await store.prune({ ...RETENTION, limit: 10 });
  expect(await noted()).toEqual([]);
});
