// The counts of causes beside what people and older programs do to letters: filled at the migration, mended by a recount,
// bounded by folding.
import { describe, expect, inject, it, onTestFinished, vi } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { connect, inlineStore } from "../support/database-file.ts";
import { FIXTURES } from "../support/fixtures.ts";
import { storeBeside } from "../support/postgres-world.ts";
import { add, finish, leaseOf, signUp, take } from "../support/runs.ts";
import { dead, failure } from "../support/verdicts.ts";

/** A store, and SQL beside it. */
interface Beside {
  readonly store: Store;
  run(sql: string): Promise<unknown>;
  /** SQL for rows with the numbers from 1 on as `n`. */
  readonly numbers: (count: number) => string;
}

const KINDS: readonly (readonly [string, () => Promise<Beside>])[] = [
  [
    "sqlite",
    async () => {
      const { path, store } = await inlineStore();
      const db = connect(path);
      const numbers = (count: number): string =>
        `(with recursive s (n) as (select 1 union all select n + 1 from s where n < ${count}) select n from s) s`;
      return { store, run: async (text) => db.exec(text), numbers };
    },
  ],
  [
    "postgres",
    async () => {
      const { store, client, s } = await storeBeside(inject("postgres18"));
      await client.query(`set search_path = ${s}`);
      return { store, run: (text) => client.query(text), numbers: (count) => `generate_series(1, ${count}) as s (n)` };
    },
  ],
];

const by = (fingerprint: string) => dead({ failure: failure({ fingerprint }) });

async function live(store: Store): Promise<Record<string, number>> {
  const { items } = await store.causes({ limit: 200, idle: true });
  return Object.fromEntries(items.map((cause) => [cause.fingerprint, cause.live]));
}

async function recount(store: Store, limit = 1): Promise<number> {
  let sum = 0;
  for (let after: string | null = "", steps = 0; after !== null && steps < 100; steps++) {
    const { mended, next } = await store.recount({ after, limit });
    [sum, after] = [sum + mended, next];
  }
  return sum;
}

async function fold(store: Store): Promise<void> {
  for (let more = true, steps = 0; more && steps < 100; steps++) ({ more } = await store.fold({ limit: 1_000 }));
}

describe.each(FIXTURES)("a store of version 1 on %s", (_store, fixture) => {
  it("has the counts of the letters that it was left with", async () => {
    const { open } = await fixture(1);
    const store = await open(Date.now);
    const { total, causes } = await store.tally({});
    const { items } = await store.causes({ limit: 200, idle: true });
    expect(total).toBe(4);
    expect(Object.fromEntries(items.map(({ fingerprint, live: letters }) => [fingerprint, letters]))).toMatchObject(
      Object.fromEntries(causes.map(({ fingerprint, count }) => [fingerprint, count])),
    );
    expect(items.reduce((sum, cause) => sum + cause.deaths, 0)).toBe(5);
    expect(items.every(({ types, sample, firstAt }) => types.length > 0 && sample && firstAt)).toBe(true);
    expect(await recount(store)).toBe(0);
  });
});

describe.each(KINDS)("the counts of causes on %s", (_name, open) => {
  it("are mended after letters were written, redriven and deleted without counting", async () => {
    const { store, run } = await open();
    for (const cause of ["a", "b", "b", "c", "c", "d"]) await finish(store, by(cause), { type: "mail" });
    await run("delete from cause_tick where fingerprint in ('a', 'b')");
    await run("update dead_letter set redriven_at = 1 where fingerprint = 'c'");
    await run("delete from dead_letter where fingerprint = 'd'");
    expect(await live(store)).toEqual({ c: 2, d: 1 });
    expect(await recount(store)).toBe(3);
    expect(await live(store)).toEqual({ a: 1, b: 2, c: 2, d: 1 });
    // A cause without live letters is found by its sums, once its minute is folded.
    await run("update cause_tick set minute = 0");
    await fold(store);
    expect(await recount(store)).toBe(3);
    expect(await live(store)).toEqual({ a: 1, b: 2, c: 0, d: 0 });
    expect((await store.causes({ limit: 1 })).items).toMatchObject([{ fingerprint: "b", types: ["mail"], deaths: 2 }]);
    expect(await recount(store)).toBe(0);
  });

  it("are one for all rare ones beyond 10,000, but for those that live or were just seen", async () => {
    const { store, run, numbers } = await open();
    const now = (await store.control()).now;
    const day = now - (now % 86_400_000) - 20 * 86_400_000;
    const columns = "fingerprint, type, release, failures, deaths, redriven, removed, first_at, last_at";
    await run(
      `insert into cause (${columns}) select 'rare' || n, 'mail', '', 2, 1, 1, 0, 1, 1 from ${numbers(10_000)}`,
    );
    await run(`insert into cause (${columns}) values ('frequent', 'mail', '', 9, 1, 0, 1, 1, 1),
      ('living', 'mail', '', 1, 1, 0, 0, 1, 1), ('recent', 'mail', '', 1, 0, 0, 0, ${now}, ${now})`);
    const ticks = "fingerprint, type, release, minute, holder, failures, deaths, redriven, removed";
    await run(
      `insert into cause_tick (${ticks}) select fingerprint, 'mail', '', ${day}, '', 1, 1, 1, 0 from cause where fingerprint like 'rare%'`,
    );
    // The second time, because the others have become one cause more.
    await fold(store);
    await fold(store);
    const [others] = (await store.causes({ limit: 1, idle: true, fingerprint: "other" })).items;
    expect(others).toMatchObject({ live: 0, failures: 8, deaths: 4 });
    for (const kept of ["frequent", "living", "recent"])
      expect((await store.causes({ limit: 1, idle: true, fingerprint: kept })).items, kept).toHaveLength(1);
    const query = { fingerprint: "other", from: day, until: now, stepMs: 86_400_000 };
    expect((await store.trend(query)).map(({ counts }) => counts.deaths)).toEqual([4]);
  });
});

describe("the counts of causes on postgres", () => {
  it("are compared to the end though another process folds meanwhile", async () => {
    const { store, client, s } = await storeBeside(inject("postgres18"));
    for (const cause of ["a", "b"]) await finish(store, by(cause), { type: "mail" });
    await client.query(`delete from ${s}.cause_tick`);
    await client.query("begin");
    await client.query(`select pg_advisory_xact_lock(hashtext('redrive fold'), hashtext('${s}'))`);
    let isOver = false;
    const mended = recount(store).finally(() => (isOver = true));
    const waiting = `select from pg_locks where locktype = 'advisory' and not granted and objid = hashtext('${s}')::oid`;
    await vi.waitUntil(async () => isOver || (await client.query(waiting)).rowCount === 1, { timeout: 10_000 });
    await client.query("commit");
    expect(await mended).toBe(2);
  });

  it("need no mending while workers, operators and folds are at work", async () => {
    const { store, client, s } = await storeBeside(inject("postgres18"));
    const worker = await signUp(store);
    let isOver = false;
    onTestFinished(() => void (isOver = true));
    const mended: number[] = [];
    const recounts = (async () => {
      while (!isOver) mended.push(await recount(store, 10));
    })();
    for (let round = 0; round < 15; round++) {
      for (let n = 0; n < 6; n++) await add(store, { type: "mail" });
      const jobs = await take(store, worker);
      const settlements = jobs.map((job, at) => ({ ...leaseOf(job), verdict: by(`f${at % 3}`) }));
      await store.settle({ settlements, worker });
      const letters = (await store.deadLetters({ limit: 4 })).items.map(({ job, generation }) => ({
        id: job.id,
        generation,
      }));
      // A minute of its own that is over.
      await client.query(
        `update ${s}.cause_tick set minute = minute - 60000 * ${10 * round + 5} where holder <> '' and minute > $1`,
        [Date.now() - 240_000],
      );
      await Promise.all([
        store.redrive(letters.slice(0, 2).map((letter) => ({ ...letter, delayMs: 3_600_000 }))),
        store.remove(letters.slice(2)),
        store.fold({ limit: 2 }),
      ]);
    }
    isOver = true;
    await recounts;
    expect(mended.length).toBeGreaterThan(2);
    expect(mended.every((count) => count === 0)).toBe(true);
    const { total } = await store.tally({});
    expect(Object.values(await live(store)).reduce((sum, letters) => sum + letters, 0)).toBe(total);
  });
});
