// The kinds of transaction that users have, each as one function: begins, does the work, commits; or rolls back and
// throws what the work threw.
import { drizzle } from "drizzle-orm/node-postgres";
import { Kysely, PostgresDialect } from "kysely";
import type pg from "pg";

/** Does work in a transaction of its own. */
export type InTransaction = <T>(pool: pg.Pool, work: (tx: unknown) => Promise<T>) => Promise<T>;

/** A client of `pg`, by hand. */
export const withPg: InTransaction = async (pool, work) => {
  const client = await pool.connect();
  try {
    await client.query("begin");
    const answer = await work(client);
    await client.query("commit");
    return answer;
  } catch (error) {
    await client.query("rollback");
    throw error;
  } finally {
    client.release();
  }
};

/** The plain form, as one wraps Prisma or postgres.js: no arrays, rows as objects, 64-bit integers as text or as bigint. */
const plainly =
  (integer: (value: unknown) => unknown): InTransaction =>
  (pool, work) =>
    withPg(pool, (tx) => {
      const client = tx as pg.PoolClient;
      const types = { getTypeParser: (oid: number) => (text: string) => (oid === 20 ? integer(text) : text) };
      const query = async (text: string, values: unknown[]): Promise<{ rows: unknown[] }> => {
        // Libraries differ in what they make of them.
        if (values.some(Array.isArray)) throw new Error("an array was sent");
        const { rows } = await client.query<Record<string, unknown>>({ text, values, types } as never);
        return { rows: rows.map((row) => ({ ...row })) };
      };
      return work({ query });
    });

/** Every kind by its name. */
export const TRANSACTIONS: readonly (readonly [string, InTransaction])[] = [
  ["pg", withPg],
  ["Drizzle", (pool, work) => drizzle(pool).transaction((tx) => work(tx))],
  [
    "Kysely",
    (pool, work) =>
      // Not destroyed: the pool is the test's.
      new Kysely<object>({ dialect: new PostgresDialect({ pool }) }).transaction().execute((tx) => work(tx)),
  ],
  ["query(text, values), int8 as text", plainly(String)],
  ["query(text, values), int8 as bigint", plainly((text) => BigInt(text as string))],
];
