// A transaction that somebody leaves open keeps everything that was taken meanwhile in the way of whoever looks for work.
// Floors keep a look and a claim quick then, hide nothing for longer than a second, and are not used without need.
import pg from "pg";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { type FullLook, openFloors } from "../../../src/store/postgres/floors.ts";
import { createPostgresStore, type PostgresStore } from "../../../src/store/postgres/index.ts";
import { newJob } from "../../support/new-job.ts";
import { blocksRead } from "../../support/postgres-blocks.ts";
import { freshSchema } from "../../support/postgres-world.ts";
import { nextNonce, signUp } from "../../support/runs.ts";

const URL = inject("postgres18");
const DEAD = 150_000;

/** What `explain` says about the blocks of a statement. */
interface Buffers {
  readonly Plan: { readonly "Shared Hit Blocks": number; readonly "Shared Read Blocks": number };
}

function floorsAt(time: { now: number }) {
  return openFloors({ monotonic: () => time.now });
}

const slow: FullLook = {
  after: -1,
  through: null,
  heads: new Map([[4, { runAt: 100, seq: 7 }]]),
  known: [4, 5, 8],
  now: 1_000,
  tookMs: 50,
};

describe("floors", () => {
  it("are not made by a look that was quick, also when there were many lanes", () => {
    const floors = floorsAt({ now: 0 });
    floors.looked({ ...slow, tookMs: 9 });
    const many = new Map(Array.from({ length: 1_000 }, (_, n) => [n * 4, { runAt: 1, seq: n }] as const));
    floors.looked({ ...slow, heads: many, tookMs: 100 });
    expect(floors.stretches(-1)).toHaveLength(1);
    expect(floors.at(4).runAt).not.toBe(100);
  });

  it("begin at the heads that were seen, and at the time of the look in lanes that were empty", () => {
    const floors = floorsAt({ now: 0 });
    floors.looked(slow);
    expect(floors.at(4)).toEqual({ runAt: 100, seq: 7 });
    expect(floors.at(5).runAt).toBe(1_000);
    expect(floors.stretches(-1).map(({ lane, below }) => [lane, below])).toEqual([
      [0, 4],
      [4, 5],
      [5, 8],
      [8, "9223372036854775807"],
    ]);
    expect(floors.stretches(5).map(({ lane }) => lane)).toEqual([6, 8]);
  });

  it("go up with claims, and never down", () => {
    const floors = floorsAt({ now: 0 });
    floors.looked(slow);
    floors.took(4, { runAt: 300, seq: 9 });
    floors.took(4, { runAt: 200, seq: 8 });
    expect(floors.at(4)).toEqual({ runAt: 300, seq: 9 });
    floors.took(12, { runAt: 300, seq: 9 });
    expect(floors.at(12)).not.toEqual({ runAt: 300, seq: 9 });
  });

  it("are forgotten after a second, whatever happens meanwhile", () => {
    const time = { now: 0 };
    const floors = floorsAt(time);
    floors.looked(slow);
    time.now = 999;
    floors.looked({ ...slow, after: 8, known: [], heads: new Map([[16, { runAt: 5, seq: 5 }]]) });
    expect(floors.at(16)).toEqual({ runAt: 5, seq: 5 });
    time.now = 1_000;
    expect(floors.stretches(-1)).toHaveLength(1);
    expect([floors.at(4), floors.at(16)]).toEqual([floors.at(99), floors.at(99)]);
  });
});

/** A store whose queue is full of what was taken while a transaction elsewhere was open, and one job behind it. */
async function crowded(): Promise<{ readonly store: PostgresStore; readonly client: pg.Client; readonly s: string }> {
  const s = freshSchema();
  const store = createPostgresStore({ url: URL, schema: s });
  await store.enqueue(Array.from({ length: 60 }, () => newJob({ type: "busy" })));
  const [client, other] = [new pg.Client({ connectionString: URL }), new pg.Client({ connectionString: URL })];
  await Promise.all([client.connect(), other.connect()]);
  onTestFinished(async () => {
    await store.close();
    await other.end();
    await client.query(`drop schema ${s} cascade`);
    await client.end();
  });
  await client.query(`alter table ${s}.waiting set (autovacuum_enabled = false)`);
  await client.query(
    `insert into ${s}.waiting (lane, run_at, seq) select lane, 1, n + 1000 from (select lane from ${s}.waiting limit 1) l, generate_series(1, ${DEAD}) n`,
  );
  await other.query("begin isolation level repeatable read");
  await other.query(`select count(*) from ${s}.waiting`);
  await client.query(`delete from ${s}.waiting where run_at = 1`);
  return { store, client, s };
}

describe("behind a long transaction", () => {
  it("looks and claims read little again after the first look, and take everything in order", async () => {
    const { store, client, s } = await crowded();
    const claimed: string[] = [];
    const began = performance.now();
    const blocks = await blocksRead(client, s, store, async () => {
      const worker = await signUp(store);
      const control = (await store.control()).version;
      const page = await store.lanes(null, 100);
      const quotas = page.lanes.map(({ lane }) => ({ lane, limit: 1 }));
      for (let n = 0; n < 60; n++) {
        const request = { worker, quotas, limit: 1, control, nonce: nextNonce(), ticket: n + 1, startedThrough: n };
        claimed.push(...(await store.claim(request)).jobs.map(({ id }) => id));
        await store.lanes(null, 100);
      }
    });
    // Floors are forgotten after a second: then there is a look in full, and maybe a claim beside it.
    const full = 2 * (2 + Math.ceil((performance.now() - began) / 1_000));
    const look = `select from ${s}.waiting where lane >= 0 order by lane, run_at, seq limit 1`;
    const { rows } = await client.query<{ "QUERY PLAN": Buffers[] }>(`explain (analyze, buffers, format json) ${look}`);
    const { Plan: plan } = rows[0]?.["QUERY PLAN"][0] ?? { Plan: null };
    const once = (plan?.["Shared Hit Blocks"] ?? 0) + (plan?.["Shared Read Blocks"] ?? 0);
    expect(once).toBeGreaterThan(400);
    expect(blocks).toBeLessThan(full * once + 120 * 50);
    // Ids fall while jobs are enqueued, so the order of enqueue is the order of falling ids.
    expect(claimed).toEqual(claimed.toSorted().toReversed());
    expect(claimed).toHaveLength(60);
  });

  it("a job that falls below a floor is found within a second or two, and at once where nothing else is due", async () => {
    const { store } = await crowded();
    const worker = await signUp(store);
    const control = (await store.control()).version;
    const take = async (limit: number) => {
      const { lanes } = await store.lanes(null, 100);
      const quotas = lanes.map(({ lane }) => ({ lane, limit }));
      const request = { worker, quotas, limit, control, nonce: nextNonce(), ticket: 1, startedThrough: 0 };
      return (await store.claim(request)).jobs;
    };
    await take(10);
    const early = newJob({ type: "busy", runAt: 5 });
    await store.enqueue([early]);
    const began = performance.now();
    let found = false;
    while (!found && performance.now() - began < 20_000) {
      found = (await take(1)).some(({ id }) => id === early.id);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(found).toBe(true);
    for (let left = 1; left > 0; ) left = (await take(100)).length;
    const alone = newJob({ type: "busy", runAt: 5 });
    await store.enqueue([alone]);
    expect((await take(1)).map(({ id }) => id)).toEqual([alone.id]);
  });
});
