// The order of the event log on Postgres: that of commits, whatever order transactions began in.
import pg from "pg";
import { expect, inject, it, onTestFinished } from "vitest";
import { recordText, recordValues } from "../../../src/store/postgres/event-log.ts";
import type { NewEvent } from "../../../src/store/store.ts";
import { postgresWorld, sql, storeBeside } from "../../support/postgres-world.ts";

const URL = inject("postgres18");

const event = (subject: string, once = false): NewEvent => {
  return { kind: "pause", actor: "ada", why: null, subject, value: "{}", once };
};

async function connected(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: URL });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

/** True once a backend waits for a lock of this one. */
async function waitsFor(client: pg.Client): Promise<void> {
  const { processID } = client as unknown as { readonly processID: number };
  const blocked = `select pid from pg_stat_activity where ${processID} = any(pg_blocking_pids(pid))`;
  for (let looks = 0; looks < 2_000; looks++) if ((await sql(URL, blocked)).length > 0) return;
  throw new Error("No transaction waits for the open one.");
}

async function world() {
  const opened = await postgresWorld(URL);
  onTestFinished(() => opened.close());
  const { schema, store } = opened;
  const client = await connected();
  const begin = async (given: readonly NewEvent[]): Promise<number[]> => {
    await client.query("begin");
    const { rows } = await client.query<{ seq: string }>(recordText(schema), recordValues(given));
    return rows.map(({ seq }) => Number(seq));
  };
  /** Reads on from the last number it saw, as a page on the screen does. */
  const seen: (string | null)[] = [];
  let cursor: string | null = null;
  const readOn = async (): Promise<void> => {
    const { items } = await store.events({ limit: 200, oldest: true, cursor });
    seen.push(...items.map(({ subject }) => subject));
    cursor = String(items.at(-1)?.seq ?? cursor ?? 0);
  };
  return { store, client, begin, seen, readOn };
}

it("a reader that pages by number misses no event of a transaction that commits late", async () => {
  const { store, client, begin, seen, readOn } = await world();
  await store.record([event("before")]);
  expect(await begin([event("first")])).toEqual([2]);
  const second = store.record([event("second")]);
  // Where it need not wait, it is there before the first, and a reader goes on after it.
  await Promise.race([second, waitsFor(client)]);
  await readOn();
  await client.query("commit");
  expect(await second).toEqual([3]);
  await readOn();
  expect(seen).toEqual(["before", "first", "second"]);
});

it("a transaction that waited for its number has no earlier time than the one before it", async () => {
  const { store, client, s } = await storeBeside(URL);
  await store.record([event("before")]);
  await client.query("begin");
  await client.query(`select from ${s}.event_head for update`);
  // It begins now, and gets its number only after the other one, which begins later.
  const early = store.record([event("early")]);
  await waitsFor(client);
  await client.query("select pg_sleep(0.05)");
  await client.query(recordText(s), recordValues([event("late")]));
  await client.query("commit");
  await early;
  const { items } = await store.events({ limit: 10, oldest: true });
  expect(items.map(({ subject }) => subject)).toEqual(["before", "late", "early"]);
  const times = items.map(({ at }) => at);
  expect(times).toEqual(times.toSorted((a, b) => a - b));
});

it("a transaction that is rolled back leaves no gap for the next", async () => {
  const { store, client, begin, seen, readOn } = await world();
  await begin([event("never")]);
  const second = store.record([event("second")]);
  await waitsFor(client);
  await client.query("rollback");
  expect(await second).toEqual([1]);
  await readOn();
  expect(seen).toEqual(["second"]);
});

it("two transactions that write what is there once write it once", async () => {
  const { store, client, begin, seen, readOn } = await world();
  await begin([event("release:1", true)]);
  const second = store.record([event("release:1", true), event("other")]);
  await waitsFor(client);
  await client.query("commit");
  expect(await second).toMatchObject([null, expect.any(Number)]);
  await readOn();
  expect(seen).toEqual(["release:1", "other"]);
});
