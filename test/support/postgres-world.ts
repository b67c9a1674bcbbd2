// Worlds on a shared Postgres server: each has a schema of its own, which goes with it.
import { randomBytes } from "node:crypto";
import pg from "pg";
import { onTestFinished } from "vitest";
import { newPool, type OpenPool } from "../../src/store/postgres/dependencies.ts";
import { createPostgresStore, type PostgresStore } from "../../src/store/postgres/index.ts";
import type { World } from "../conformance/suite.ts";
import { START } from "./worlds.ts";

/** A schema name that nobody uses. */
export function freshSchema(): string {
  return `t_${randomBytes(8).toString("hex")}`;
}

/** A schema of its own with a store and a connection beside it, all gone with the test. */
export async function storeBeside(
  url: string,
): Promise<{ readonly store: PostgresStore; readonly client: pg.Client; readonly s: string }> {
  const s = freshSchema();
  const store = createPostgresStore({ url, schema: s });
  await store.migrate();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(async () => {
    await store.close();
    await client.query(`drop schema ${s} cascade`);
    await client.end();
  });
  return { store, client, s };
}

/** Runs SQL beside a store. */
export async function sql(url: string, text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text, values)).rows;
  } finally {
    await client.end();
  }
}

const NUMBERED = ["job", "claim", "dead_letter", "worker", "pause"];

/** How the schemas of a server are emptied: on one connection, because a new one knows none of their tables yet. */
function openEmptier(url: string): (schema: string) => Promise<void> {
  const client = new pg.Client({ connectionString: url });
  // The server ends with all tests, and this connection with it.
  client.on("error", () => undefined);
  const connected = client.connect().then(() => (client as unknown as { unref(): void }).unref());
  let names: Promise<string[]> | null = null;
  const tables = async (schema: string): Promise<string[]> => {
    const { rows } = await client.query<{ name: string }>(
      "select tablename as name from pg_tables where schemaname = $1 and tablename <> 'migration'",
      [schema],
    );
    return rows.map(({ name }) => name);
  };
  return async (schema) => {
    await connected;
    names ??= tables(schema);
    const numbers = NUMBERED.map((table) => {
      const column = table === "claim" ? "n" : "seq";
      return `select setval(pg_get_serial_sequence('${schema}.${table}', '${column}'), 1, false);`;
    });
    await client.query(
      `${(await names).map((name) => `delete from ${schema}.${name};`).join(" ")} ${numbers.join(" ")}
       select setval('${schema}.lane_n', 0, false); insert into ${schema}.control values (1, 1)`,
    );
  };
}

const emptiers = new Map<string, (schema: string) => Promise<void>>();

/** Empties a schema for the next test; making a new one, or truncating this one, takes ten times as long. */
export async function empty(url: string, schema: string): Promise<void> {
  const emptier = emptiers.get(url) ?? openEmptier(url);
  emptiers.set(url, emptier);
  await emptier(schema);
}

/** As many as the stores that a test opens at once. */
const KEPT_MOST = 3;
const kept = new Map<string, pg.Pool[]>();

/**
 * A pool that the next store gets when this one closes it: a new connection costs the server more than most tests do. Only
 * where all its connections are idle, so that nothing of one test is left for the next.
 */
const keptPool: OpenPool = (config, max) => {
  const key = JSON.stringify([config, max]);
  const idle = kept.get(key) ?? [];
  kept.set(key, idle);
  const pool = idle.pop() ?? newPool({ ...config, allowExitOnIdle: true } as pg.PoolConfig, max);
  const end = pool.end.bind(pool);
  pool.end = (async () => {
    pool.end = end;
    if (pool.idleCount < pool.totalCount || pool.waitingCount > 0 || idle.length >= KEPT_MOST) return end();
    pool.removeAllListeners();
    pool.on("error", () => undefined);
    idle.push(pool);
  }) as typeof end;
  return pool;
};

const free = new Map<string, string[]>();

/** A Postgres store under a clock of the test's, on a schema that nobody else uses meanwhile. */
export async function postgresWorld(
  url: string,
  clock = { now: START },
): Promise<World & { readonly schema: string; readonly store: PostgresStore }> {
  const known = free.get(url) ?? [];
  free.set(url, known);
  const used = known.pop();
  const schema = used ?? freshSchema();
  const opened: PostgresStore[] = [];
  const open = async (): Promise<PostgresStore> => {
    const store = createPostgresStore(
      { url, schema, maxConnections: 3 },
      { clock: () => clock.now, openPool: keptPool },
    );
    opened.push(store);
    await store.migrate();
    return store;
  };
  const close = async (): Promise<void> => {
    await Promise.all(opened.map((store) => store.close()));
    await empty(url, schema);
    known.push(schema);
  };
  const store = await open();
  // Each migration has left its mark in `control`; a test gets the same, whether its schema is new or used.
  if (used === undefined) await empty(url, schema);
  return { store, clock, peer: open, close, schema };
}
