// The inspection of a store on a Postgres server.
import { RedriveError } from "../../core/errors.ts";
import { textOf } from "../../core/failure.ts";
import { queryRefused, type QueryRow, type StoreInspection } from "../inspection.ts";
import { loadPg } from "./load-pg.ts";
import { serverFindings } from "./findings.ts";
import { createPostgresStore, type PostgresStore } from "./index.ts";

/** Rows fetched at once. */
const PAGE = 500;

/** The inspection of a schema on a server, by its URL. */
export function inspectPostgres(url: string, shown: string): StoreInspection {
  return {
    checkPlace: () => undefined,
    isMade: async (store) => (await (store as PostgresStore).schema()).from > 0,
    explained: async (error) => error,
    async schema() {
      const store = createPostgresStore({ url });
      try {
        return await store.schema();
      } finally {
        await store.close();
      }
    },
    machineFindings: async () => [],
    placeFindings: async () => [],
    storeFindings: (store) => serverFindings(store as PostgresStore),
    rows: (sql) => rowsOf(url, shown, sql),
  };
}

async function* rowsOf(url: string, shown: string, sql: string): AsyncGenerator<QueryRow> {
  const client = new (loadPg().Client)({ connectionString: url });
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
      throw isThere ? queryRefused(error) : wentAway(error);
    }
    for (;;) {
      if (lost !== null) throw wentAway(lost);
      const { rows } = await client.query<QueryRow>(`fetch ${PAGE} from records`).catch((error: unknown) => {
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
