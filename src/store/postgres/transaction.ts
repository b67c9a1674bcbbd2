// A caller's transaction of any kind: anything with `query(text, values)`, such as a client of `pg`, a transaction of
// Kysely, or one of Drizzle over `pg`. Others need a wrapper of two lines; the guide shows it.
import { RedriveError } from "../../core/errors.ts";
import { invalid } from "../../core/options.ts";
import type { Ask, PostgresValue } from "./driver.ts";
import { queryOf, sent } from "./driver.ts";
import { named, translate } from "./errors.ts";

/** The simplest form of a transaction; rows come as objects or as arrays, in the order of the columns. */
export interface QueryTransaction {
  query(text: string, values: unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
}

/** A transaction of Kysely. */
export interface KyselyTransaction {
  executeQuery(query: never): Promise<{ readonly rows: readonly unknown[] }>;
  readonly isTransaction: true;
}

/** A transaction of Drizzle over `pg`. */
export interface DrizzleTransaction {
  execute(query: never): unknown;
  rollback(): never;
}

/** A transaction in which jobs can be written. */
export type Transaction = QueryTransaction | KyselyTransaction | DrizzleTransaction;

/** Libraries treat arrays differently, or not at all, so arrays are sent as text that the server parses. */
const ARRAY = /(\$\d+)::(\w+)\[\]/g;

/** Runs statements inside a caller's transaction. Nothing is retried: the caller decides whether to continue. */
export function within(tx: Transaction, place: string): Ask {
  const rows = runnerOf(tx);
  return async (statement, ...values) => {
    try {
      // Other drivers return rows as objects and large integers as text; both are converted.
      return (await rows(statement.text.replace(ARRAY, "$1::text::$2[]"), values.map(sent))).map(
        (row) => (Array.isArray(row) ? row : Object.values(row as object)) as PostgresValue[],
      );
    } catch (error) {
      throw translate(named(error, statement), place);
    }
  };
}

type Runner = (text: string, values: readonly unknown[]) => Promise<readonly unknown[]>;

function runnerOf(tx: unknown): Runner {
  const given = tx as Partial<Record<keyof Shapes, unknown>> | null;
  if (typeof given !== "object" || given === null) throw refused(tx);
  if (typeof given.executeQuery === "function") {
    if (given.isTransaction !== true)
      throw outside("a database of Kysely", "pass what transaction().execute gives you");
    return kysely(given as KyselyTransaction);
  }
  const session = given.session as { readonly client?: unknown } | undefined;
  if (typeof given.execute === "function" && isClient(session?.client)) {
    if (typeof given.rollback !== "function")
      throw outside("a database of Drizzle", "pass what db.transaction gives you");
    return client(session.client);
  }
  if (isClient(given)) return client(given);
  throw refused(tx);
}

type Shapes = QueryTransaction & KyselyTransaction & DrizzleTransaction & { readonly session: unknown };

function isClient(value: unknown): value is QueryTransaction {
  return typeof (value as Partial<QueryTransaction> | null)?.query === "function";
}

/** A client of `pg` gets the whole statement; anything else gets text and values. */
function client(to: QueryTransaction): Runner {
  if ("totalCount" in to) throw outside("a pool", "pass a client of it, after its BEGIN");
  const isPg = "connectionParameters" in to || "processID" in to;
  if (!isPg) return async (text, values) => rowsOf(await to.query(text, [...values]));
  const ask = to as unknown as PgClient;
  // Older clients do not report it.
  if (ask.getTransactionStatus?.() === "I") throw outside("a client", "await its BEGIN first");
  return async (text, values) => (await ask.query(queryOf({ text }, values as never, false))).rows;
}

interface PgClient {
  query(config: object): Promise<{ readonly rows: readonly unknown[] }>;
  getTransactionStatus?(): string | null;
}

/** The rows of an answer from a user's query function. */
function rowsOf(answer: { readonly rows?: unknown } | undefined): readonly unknown[] {
  if (Array.isArray(answer?.rows)) return answer.rows;
  throw invalid("tx.query", "{ rows: […] }", answer, "return what the query found under that name");
}

function kysely(to: KyselyTransaction): Runner {
  return async (text, values) => {
    const query = { sql: text, parameters: values, query: { kind: "RawNode" }, queryId: { queryId: "redrive" } };
    return (await to.executeQuery(query as never)).rows;
  };
}

function refused(tx: unknown): Error {
  const expected =
    "a client of pg in a transaction, a transaction of Kysely or Drizzle, or an object with query(text, values)";
  return invalid("tx", expected, tx, "see the guide on transactions for other libraries");
}

/**
 * The error for a connection outside a transaction: every write would be committed at once, and stay when the caller
 * rolls back.
 */
function outside(what: string, remedy: string): Error {
  const message = `tx: expected a transaction; got ${what} that is not in a transaction; ${remedy}`;
  return new RedriveError("invalid_argument", message);
}
