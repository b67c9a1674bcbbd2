// The seam between Redrive and `pg`: a pool, statements with rows as arrays and numbers as numbers, transactions, and a
// bound on every wait. Every error leaves here as a RedriveError.
import type pg from "pg";
import type { System } from "../../system/system.ts";
import type { Value } from "../columns.ts";
import { isSilence, isTryAgain, named, translate } from "./errors.ts";
import { boundConnecting, ignore, openLiveConnections } from "./live-connections.ts";

/** A statement; those with a name are prepared once per connection. */
export interface PostgresStatement {
  readonly name?: string;
  readonly text: string;
}

/** A value sent with a statement; an array goes as one. */
export type Parameter = Value | boolean | readonly (Value | boolean)[];

/** A value of a row as Postgres gives it. */
export type PostgresValue = Value | boolean | number[];

/** Runs one statement and returns its rows, each an array of its columns. */
export type Ask = (statement: PostgresStatement, ...values: Parameter[]) => Promise<PostgresValue[][]>;

/** A connection to the server. */
export interface PostgresDatabase {
  /** One statement, as its own transaction. */
  readonly ask: Ask;
  /**
   * Several statements in one transaction. Each may take `waitMs`, where that is longer than usual, and wait `lockMs`
   * for locks of others, where that is shorter.
   */
  together<T>(work: (ask: Ask) => Promise<T>, waitMs?: number, lockMs?: number): Promise<T>;
  close(): Promise<void>;
}

/** How the pool is used. */
export interface DatabaseOptions {
  readonly pool: pg.Pool;
  /** The pool is ours, so we end it. */
  readonly owned: boolean;
  /**
   * Its connections were made with our settings and are used only by us: statements are prepared there, and bounded by
   * the settings. On any other connection each runs in a transaction that bounds it.
   */
  readonly direct: boolean;
  readonly system: System;
  /** The address of the server, for messages; without its password. */
  readonly place: string;
}

/** Longer than any of our statements takes on a healthy server, except migrations. */
const STATEMENT_MS = 15_000;
/** The server stops waiting for a lock this long before we stop waiting for the server. */
const BEFORE_MS = 3_000;
/** The server ends a statement this long before we give up: it does not notice that a client has gone. */
const END_MS = 1_000;
/**
 * Our tables are named with their schema, and everything else is Postgres's own, so that a function of the same name
 * elsewhere is not used. In a caller's transaction, where we set nothing, functions are named with their schema too.
 */
export const SEARCH_PATH = "pg_catalog,pg_temp";
/** The same as settings of a connection. */
export const BOUNDS = `-c statement_timeout=${STATEMENT_MS - END_MS} -c lock_timeout=${STATEMENT_MS - BEFORE_MS}`;
/**
 * A statement that waited for a lock must see what its holder wrote, whatever isolation the role has by default. A
 * process that is halted, or cut off, between two statements keeps its locks, and every process that meets them waits;
 * the server ends its transaction before those waits end.
 */
const begin = (waitMs: number, lockMs: number): string =>
  `begin isolation level read committed; set local idle_in_transaction_session_timeout = '10s'; set local search_path = ${SEARCH_PATH}; set local statement_timeout = ${waitMs - END_MS}; set local lock_timeout = ${lockMs}`;
/** How often deadlocks and serialisation failures are retried. */
const TRIES = 5;

const INT8 = 20;
const INT4_ARRAY = 1007;
const INT8_ARRAY = 1016;
const BOOL = 16;
const INT4 = 23;

const numbers = (text: string): number[] => (text === "{}" ? [] : text.slice(1, -1).split(",").map(Number));
const PARSERS = new Map<number, (text: string) => PostgresValue>([
  [INT8, Number],
  [INT4, Number],
  [INT4_ARRAY, numbers],
  [INT8_ARRAY, numbers],
  [BOOL, (text) => text === "t"],
]);
const asText = (text: string): string => text;
/** Parsers for the types of our columns; everything else stays text. */
const types = { getTypeParser: (oid: number) => PARSERS.get(oid) ?? asText };

/** Characters that JSON writes differently from what Postgres reads. */
// oxlint-disable-next-line no-control-regex
const NOT_AS_JSON = /[\u0000-\u001f\ud800-\udfff]/;
/** A text inside an array. Quotes and backslashes are escaped as in JSON, which V8 writes fastest. */
const quoted = (text: string): string =>
  NOT_AS_JSON.test(text) ? `"${text.replace(/["\\]/g, "\\$&")}"` : JSON.stringify(text);

/** An array as Postgres writes it; the driver would convert numbers to text and scan each for characters to escape. */
function literal(values: readonly (Value | boolean)[]): string {
  const cells = values.map((value) => (typeof value === "string" ? quoted(value) : (value ?? "null")));
  return `{${cells.join(",")}}`;
}

/** A value as it is sent: an array goes as one text. */
export const sent = (value: Parameter): unknown => (Array.isArray(value) ? literal(value) : value);

/** The query in the form of `pg`. */
export function queryOf(
  { name, text }: PostgresStatement,
  values: readonly Parameter[],
  prepare: boolean,
  waitMs = STATEMENT_MS,
): pg.QueryArrayConfig {
  const named = prepare && name !== undefined ? { name } : {};
  const config = { ...named, text, values: values.map(sent), rowMode: "array" as const, types };
  return Object.assign(config, { query_timeout: waitMs }) as unknown as pg.QueryArrayConfig;
}

/** Runs statements on a connection. */
function asker(direct: boolean) {
  return async (
    client: pg.PoolClient,
    statement: PostgresStatement,
    values: readonly Parameter[],
    waitMs?: number,
  ): Promise<PostgresValue[][]> => {
    try {
      return (await client.query<PostgresValue[]>(queryOf(statement, values, direct, waitMs))).rows;
    } catch (error) {
      throw named(error, statement);
    }
  };
}

/** A database over a pool. */
export function openDatabase({ pool, owned, direct, system, place }: DatabaseOptions): PostgresDatabase {
  // The pool replaces an idle connection that breaks; without a listener the error would end the process.
  pool.on("error", ignore);
  const again = async <T>(work: () => Promise<T>): Promise<T> => {
    for (let tries = 1; ; tries++) {
      try {
        return await work();
      } catch (error) {
        if (tries >= TRIES || !isTryAgain(error)) throw translate(error, place);
        await system.sleep(tries * 10 * (0.5 + system.random()));
      }
    }
  };
  if (!owned) boundConnecting(pool);
  const heard = openLiveConnections(pool, system);
  const within = async <T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> => {
    const client = await heard.connect();
    let hasAnswered = false;
    try {
      const answer = await work(client);
      hasAnswered = true;
      return answer;
    } catch (error) {
      if (isSilence(error)) heard.nothing();
      throw error;
    } finally {
      // After an error, whatever state the connection is in, the next query gets a fresh one.
      heard.release(client, hasAnswered);
    }
  };
  const ask = asker(direct);
  const together: PostgresDatabase["together"] = (work, waitMs = STATEMENT_MS, lockMs = waitMs - BEFORE_MS) =>
    again(() =>
      within(async (client) => {
        await client.query(queryOf({ text: begin(waitMs, lockMs) }, [], false));
        const answer = await work((statement, ...values) => ask(client, statement, values, waitMs));
        await client.query(queryOf({ text: "commit" }, [], false, waitMs));
        return answer;
      }),
    );
  return {
    ask: (statement, ...values) =>
      direct
        ? again(() => within((client) => ask(client, statement, values)))
        : together((asked) => asked(statement, ...values)),
    together,
    async close() {
      heard.close();
      pool.off("error", ignore);
      if (owned) {
        pool.on("error", ignore);
        await pool.end();
      }
    },
  };
}
