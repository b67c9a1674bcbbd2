// A queue on a schema of its own on a shared Postgres server, beside a pool as an application has one. Both end with the
// test.
import pg from "pg";
import { onTestFinished } from "vitest";
import type { Redrive, RedriveOptions } from "../../src/index.ts";
import { createRedrive } from "../../src/index.ts";
import type { PostgresStore } from "../../src/store/postgres/index.ts";
import { importBuilt } from "./built.ts";
import { empty, freshSchema, sql } from "./postgres-world.ts";

/** The queue, and the ways around it. */
export interface PostgresQueue {
  readonly redrive: Redrive;
  readonly store: PostgresStore;
  /** The pool of the application. */
  readonly pool: pg.Pool;
  readonly schema: string;
  /** The URL of the store, with its schema. */
  readonly url: string;
  /** Runs SQL on a connection of its own; `@` stands for the schema. */
  sql(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>;
}

/** A schema that goes with the test, and the URL that names it. */
export function testSchema(server: string): { readonly schema: string; readonly url: string } {
  const schema = freshSchema();
  onTestFinished(async () => void (await sql(server, `drop schema if exists ${schema} cascade`)));
  return { schema, url: `${server}?schema=${schema}` };
}

/** A pool that ends with the test. */
export function testPool(server: string, max = 4): pg.Pool {
  const pool = new pg.Pool({ connectionString: server, max });
  pool.on("error", () => undefined);
  onTestFinished(() => pool.end());
  return pool;
}

const free: string[] = [];

/** A schema that nobody uses meanwhile, made or emptied; making one takes ten times as long. */
function usedSchema(server: string): { readonly schema: string; readonly url: string } {
  const schema = free.pop() ?? freshSchema();
  onTestFinished(async () => {
    await empty(server, schema);
    free.push(schema);
  });
  return { schema, url: `${server}?schema=${schema}` };
}

/** Opens a queue; with `built`, from the compiled library, whose workers have their threads. */
export async function openQueue(
  server: string,
  { built = false, ...options }: Omit<RedriveOptions, "store"> & { readonly built?: boolean } = {},
): Promise<PostgresQueue> {
  const { schema, url } = usedSchema(server);
  const library = built ? await importBuilt<typeof import("../../src/index.ts")>("index.js") : { createRedrive };
  const redrive = await library.createRedrive({ log: "silent", ...options, store: url });
  const pool = testPool(server);
  onTestFinished(() => redrive.close());
  return {
    redrive,
    store: redrive.store as PostgresStore,
    pool,
    schema,
    url,
    sql: (text, values) => sql(server, text.replaceAll("@", schema), values),
  };
}
