// How much of its tables a store reads on a Postgres server, counted in blocks: what a statement costs, however busy the
// machine is.
import type pg from "pg";
import type { PostgresStore } from "../../src/store/postgres/index.ts";

/** Blocks of a schema's tables and indexes that this work reads. The store is closed then: a backend says what it read when it ends. */
export async function blocksRead(
  client: pg.Client,
  schema: string,
  store: PostgresStore,
  work: (store: PostgresStore) => Promise<unknown>,
): Promise<number> {
  const total = async (): Promise<number> => {
    await client.query("select pg_stat_force_next_flush(), pg_stat_clear_snapshot()");
    const { rows } = await client.query<{ blocks: string }>(
      `select sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read + idx_blks_hit, 0)) as blocks
       from pg_statio_user_tables where schemaname = $1`,
      [schema],
    );
    return Number(rows[0]?.blocks);
  };
  // What the server reads to tidy up is no part of it; a clean-up that is under way ends with this.
  const { rows: tables } = await client.query<{ name: string }>(
    "select format('%I.%I', schemaname, relname) as name from pg_stat_user_tables where schemaname = $1",
    [schema],
  );
  for (const { name } of tables) await client.query(`alter table ${name} set (autovacuum_enabled = false)`);
  await total();
  const before = await total();
  await work(store);
  await store.close();
  for (let [last, tries] = [-1, 0]; ; tries++) {
    const now = await total();
    if (now > before && now === last) return now - before;
    if (tries > 200) throw new Error("The server does not say what was read.");
    last = now;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
}
