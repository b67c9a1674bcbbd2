// New lanes on Postgres: those of many jobs are made together, and one that somebody else is about to make is waited for.
import pg from "pg";
import { expect, inject, it, onTestFinished } from "vitest";
import { createPostgresStore } from "../../../src/store/postgres/index.ts";
import { newJob } from "../../support/new-job.ts";
import { freshSchema } from "../../support/postgres-world.ts";
import { end, take } from "../../support/runs.ts";
import { complete, dead } from "../../support/verdicts.ts";

const URL = inject("postgres18");

/** A store on a pool that counts its statements, and a connection beside it. */
async function setup() {
  const s = freshSchema();
  const pool = new pg.Pool({ connectionString: URL, max: 4 });
  let asked = 0;
  pool.on("connect", (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    client.query = ((...args: unknown[]) => {
      asked += 1;
      return query(...args);
    }) as typeof client.query;
  });
  const store = createPostgresStore({ pool, schema: s });
  await store.migrate();
  const client = new pg.Client({ connectionString: URL });
  await client.connect();
  onTestFinished(async () => {
    await store.close();
    await client.query(`drop schema ${s} cascade`);
    await client.end();
    await pool.end();
  });
  return { store, client, s, asked: () => asked };
}

const ofTenants = (count: number) => Array.from({ length: count }, (_, n) => newJob({ tenant: `t${n}` }));

it("are made together, however many tenants are new", async () => {
  const { store, asked } = await setup();
  const before = asked();
  await store.enqueue([...ofTenants(300), ...ofTenants(300)]);
  expect(asked() - before).toBeLessThan(12);
  const { lanes } = await store.lanes(null, 1_000);
  expect(new Set(lanes.map(({ tenant }) => tenant)).size).toBe(300);
  expect(lanes).toHaveLength(300);
});

it("do not get the numbers again that a server has forgotten, and some process remembers", async () => {
  const { store, client, s } = await setup();
  const other = createPostgresStore({ url: URL, schema: s });
  onTestFinished(() => other.close());
  const lost: string[] = [];
  for (let round = 0; round < 5; round++) {
    await other.enqueue([newJob({ type: `mail${round}` })]);
    const { rows } = await client.query<{ base: string }>(`delete from ${s}.lane returning base`);
    await client.query(`alter sequence ${s}.lane_n restart`);
    lost.push(...rows.map(({ base }) => base));
  }
  await store.enqueue([newJob({ type: "refund" })]);
  const { rows } = await client.query<{ base: string }>(`select base from ${s}.lane where type = 'refund'`);
  // Two of six may have the same by chance; that a third one has it too nobody will see.
  expect(new Set([...lost, rows[0]?.base]).size).toBeGreaterThanOrEqual(5);
});

it("are the same for whoever makes them at the same time", async () => {
  const { store, s } = await setup();
  const other = createPostgresStore({ url: URL, schema: s });
  onTestFinished(() => other.close());
  const backwards = ofTenants(300).reverse();
  await Promise.all([store.enqueue(ofTenants(300)), other.enqueue(backwards), store.enqueue(ofTenants(200))]);
  expect((await store.lanes(null, 1_000)).lanes).toHaveLength(300);
});

it("are waited for where an open transaction makes one of them, and nobody waits for the others", async () => {
  const { store, client, s } = await setup();
  await client.query("begin");
  await client.query(
    `insert into ${s}.lane (type, queue, tenant, priority, base, used_at) values ($1, $2, 't1', 0, 4000000, 1)`,
    [newJob().type, newJob().queue],
  );
  const waiting = store.enqueue(ofTenants(3));
  // Somebody who needs only those that nobody holds is not kept from them.
  await store.enqueue([newJob({ tenant: "t0" }), newJob({ tenant: "t2" })]);
  await client.query("commit");
  expect((await waiting).map(({ kind }) => kind)).toEqual(["created", "created", "created"]);
  const { lanes } = await store.lanes(null, 10);
  expect(new Set(lanes.map(({ tenant }) => tenant))).toEqual(new Set(["t0", "t1", "t2"]));
  expect(lanes.find(({ tenant }) => tenant === "t1")?.lane).toBe(4_000_000);
});

it("go when nothing is left of them, however old the jobs are that are kept", async () => {
  const { store, client, s } = await setup();
  const tenants = async (): Promise<string[]> =>
    (await client.query(`select tenant from ${s}.lane order by tenant`)).rows.map((row) => row.tenant as string);
  const keep = { finishedMs: 0, deadMs: null };
  const prune = async (laneMs: number): Promise<void> => {
    for (let step = 0; step < 4; step++)
      await store.prune({ keep, types: [], keyMs: 0, laneMs, limit: 100, isFirst: true });
  };
  await store.enqueue(["kept", "gone"].map((tenant) => newJob({ tenant })));
  for (const job of await take(store)) await end(store, job, job.tenant === "kept" ? dead() : complete());
  await store.enqueue([newJob({ tenant: "waits" })]);
  await prune(60_000);
  expect(await tenants()).toEqual(["gone", "kept", "waits"]);
  await prune(0);
  expect(await tenants()).toEqual(["kept", "waits"]);
});

it("that are retired are not written to before they are in use again", async () => {
  const { store, client, s } = await setup();
  await store.enqueue([newJob({ tenant: "a" })]);
  await client.query(`update ${s}.lane set retired_at = 1`);
  const jobs = [newJob({ tenant: "a" }), newJob({ tenant: "b" })];
  expect(await store.enqueue(jobs)).toEqual(jobs.map(({ id }) => ({ kind: "created", id })));
  const { rows } = await client.query(`select count(*)::int as count from ${s}.lane where retired_at is null`);
  expect(rows).toEqual([{ count: 2 }]);
});

it.each([
  ["without a key", {}],
  ["with a key", { key: "k" }],
])("that are retired again as soon as they are in use take a job %s all the same", async (_what, more) => {
  const { store, client, s } = await setup();
  await store.enqueue([newJob({ tenant: "a" })]);
  for (const job of await take(store)) await end(store, job, complete());
  await client.query(`update ${s}.lane set retired_at = 1`);
  await client.query(`create sequence ${s}.turn`);
  await client.query(`create function ${s}.retire() returns trigger language plpgsql as
    $$ begin if nextval('${s}.turn') < 3 then new.retired_at := 1; end if; return new; end $$`);
  await client.query(`create trigger retire before update on ${s}.lane for each row execute function ${s}.retire()`);
  const job = newJob({ tenant: "a", ...more });
  expect(await store.enqueue([job])).toEqual([{ kind: "created", id: job.id }]);
  expect((await take(store)).map(({ id }) => id)).toEqual([job.id]);
});

it("that are retired again and again refuse a job, with nothing written", async () => {
  const { store, client, s } = await setup();
  await store.enqueue([newJob({ tenant: "a" })]);
  await client.query(`update ${s}.lane set retired_at = 1`);
  await client.query(`create function ${s}.retire() returns trigger language plpgsql as
    $$ begin new.retired_at := 1; return new; end $$`);
  await client.query(`create trigger retire before update on ${s}.lane for each row execute function ${s}.retire()`);
  for (const more of [{}, { key: "k" }]) {
    const job = newJob({ tenant: "a", ...more });
    await expect(store.enqueue([job])).rejects.toMatchObject({ code: "store_unavailable" });
    expect(await store.get([job.id])).toEqual([null]);
  }
});

it("that a restored server has lost are made again by the process that remembers them", async () => {
  const { store, client, s } = await setup();
  await store.enqueue([newJob({ tenant: "a" })]);
  await client.query(`delete from ${s}.waiting`);
  await client.query(`delete from ${s}.job`);
  await client.query(`delete from ${s}.lane`);
  const jobs = [newJob({ tenant: "a" }), newJob({ tenant: "a", key: "k" })];
  for (const job of jobs) expect(await store.enqueue([job])).toEqual([{ kind: "created", id: job.id }]);
  expect((await take(store)).map(({ id }) => id)).toEqual(jobs.map(({ id }) => id));
  expect((await store.deadLetters({ limit: 10 })).items).toEqual([]);
});

const EVERYTHING = { keep: { finishedMs: 0, deadMs: 0 }, types: [], keyMs: 0, laneMs: 0, limit: 100, isFirst: true };

/** A lane that was in use and holds nothing, and the way to delete it, given time for each step. */
async function emptyLane() {
  const { store, client, ...rest } = await setup();
  await store.enqueue([newJob({ tenant: "a" })]);
  for (const job of await take(store)) await end(store, job, complete());
  const prune = async (): Promise<void> => {
    for (let step = 0; step < 4; step++) await store.prune(EVERYTHING);
  };
  return { store, client, ...rest, prune };
}

it("stay while an open transaction holds a job for them, however long", async () => {
  const { store, client, prune } = await emptyLane();
  await store.enqueue([newJob({ key: "k", unique: "replace", delayMs: 60_000 })]);
  await client.query("begin");
  const jobs = [newJob({ tenant: "a" }), newJob({ tenant: "a", key: "own" })];
  await store.within(client).enqueue(jobs);
  await prune();
  await client.query("commit");
  expect((await take(store)).map(({ id }) => id).toSorted()).toEqual(jobs.map(({ id }) => id).toSorted());
  expect((await store.deadLetters({ limit: 10 })).items).toEqual([]);
});

it("stay while an open transaction has moved a job to them", async () => {
  const { store, client, prune } = await emptyLane();
  const holder = newJob({ tenant: "b", key: "k", unique: "replace" });
  await store.enqueue([holder]);
  await client.query("begin");
  const body = newJob({ tenant: "a", key: "k", unique: "replace", payload: '"new"' });
  expect(await store.within(client).enqueue([body])).toEqual([{ kind: "replaced", id: holder.id }]);
  await prune();
  await client.query("commit");
  expect(await take(store)).toMatchObject([{ id: holder.id, tenant: "a" }]);
});

it("that were deleted since a repeatable read began are refused to it", async () => {
  const { store, client, s, prune } = await emptyLane();
  await client.query("begin isolation level repeatable read");
  await client.query(`select from ${s}.lane`);
  await prune();
  await expect(store.within(client).enqueue([newJob({ tenant: "a" })])).rejects.toThrow(/serialize/);
  await client.query("rollback");
});
