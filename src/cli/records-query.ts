// Reads records from a SQL query, one per row, on demand. The database is only read.
import { existsSync } from "node:fs";
import { textOf } from "../core/failure.ts";
import { invalid } from "../core/options.ts";
import { RedriveError } from "../core/errors.ts";
import { openDatabase } from "../store/sqlite/driver.ts";
import type { PlacedRecord } from "./records-in.ts";
import type { StoreAddress } from "../config/store-address.ts";

/** Rows fetched at once from a server. */
const PAGE = 500;

type Row = Readonly<Record<string, unknown>>;

/** The rows of a query as records. */
export async function* queryRecords(from: StoreAddress, sql: string): AsyncGenerator<PlacedRecord> {
  let number = 0;
  for await (const row of from.path === null ? serverRows(from, sql) : fileRows(from.path, sql)) {
    number += 1;
    const place = `row ${number}`;
    const bytes = Object.entries(row).find(([, value]) => value instanceof Uint8Array);
    if (bytes)
      throw invalid(place, "text, numbers or null", `bytes in ${bytes[0]}`, "leave the column out, or encode it");
    yield { text: JSON.stringify(row, allDigits), place };
  }
}

/** Integers that do not fit into a number are written as text, as Postgres returns them. */
function allDigits(_name: string, value: unknown): unknown {
  if (typeof value !== "bigint") return value;
  return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
}

async function* fileRows(path: string, sql: string): AsyncGenerator<Row> {
  if (!existsSync(path)) throw invalid("from", "an existing database", path, "check the path");
  const database = openDatabase(path);
  try {
    database.exec("pragma query_only = on; pragma busy_timeout = 5000");
    yield* database.rows(sql);
  } catch (error) {
    throw refused(error);
  } finally {
    database.close();
  }
}

async function* serverRows({ url, shown }: StoreAddress, sql: string): AsyncGenerator<Row> {
  const { default: pg } = await import("pg");
  const client = new pg.Client({ connectionString: url });
  let lost: unknown = null;
  client.on("error", (error) => (lost ??= error));
  try {
    await client.connect();
  } catch (cause) {
    throw new RedriveError("store_unavailable", `from: could not reach ${shown}: ${textOf(cause)}`, { cause });
  }
  try {
    // Held beyond its transaction: the server stores the rows at the commit, and keeps no snapshot that would hold up
    // VACUUM.
    try {
      await client.query("begin read only");
      // With a name it is prepared, and the server refuses to prepare two statements.
      await client.query({ name: "records", text: `declare records no scroll cursor with hold for ${sql}` });
      await client.query("commit");
    } catch (error) {
      const isThere = await client.query("rollback").then(
        () => true,
        () => false,
      );
      throw isThere ? refused(error) : wentAway(error);
    }
    for (;;) {
      if (lost !== null) throw wentAway(lost);
      const { rows } = await client.query<Row>(`fetch ${PAGE} from records`).catch((error: unknown) => {
        throw wentAway(error);
      });
      yield* rows;
      if (rows.length < PAGE) return;
    }
  } finally {
    await client.end();
  }
}

function wentAway(cause: unknown): RedriveError {
  const message = `query: the source of the records failed: ${textOf(cause)}; run the command again when it is back: known records are skipped`;
  return new RedriveError("store_unavailable", message, { cause });
}

function refused(cause: unknown): RedriveError {
  const message = `query: expected one valid SELECT; got an error from the database: ${textOf(cause)}; correct it`;
  return new RedriveError("invalid_argument", message, { cause });
}
