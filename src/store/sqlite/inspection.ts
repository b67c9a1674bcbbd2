// The inspection of a SQLite file, whether or not it is a store. Every command loads this file, so it loads the code that
// opens a database only when a check reads one.
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { RedriveError } from "../../core/errors.ts";
import { invalid } from "../../core/options.ts";
import { queryRefused, type QueryRow, type StoreInspection } from "../inspection.ts";
import { refuseForeign } from "./file.ts";

/** The inspection of a file, by its absolute path. */
export function inspectSqlite(path: string): StoreInspection {
  return {
    checkPlace() {
      const folder = dirname(path);
      if (existsSync(folder)) return;
      const message = `There is no folder ${folder} for the store ${path}. Check the path, or make it: mkdir it, or run \`migrate\`.`;
      throw new RedriveError("store_unavailable", message);
    },
    async isMade() {
      refuseForeign(path);
      return existsSync(path);
    },
    explained: async (error) => (await import("./foreign-file.ts")).ofForeignFile(error, path),
    schema: async () => (await import("./database-file.ts")).filePlan(path),
    machineFindings: async () => [(await import("./findings.ts")).libraryFinding()],
    placeFindings: async () => (await import("./findings.ts")).fileFindings(path),
    storeFindings: async (store) => [(await import("./findings.ts")).durableFinding(store)],
    rows: (sql) => rowsOf(path, sql),
  };
}

async function* rowsOf(path: string, sql: string): AsyncGenerator<QueryRow> {
  if (!existsSync(path)) throw invalid("from", "an existing database", path, "check the path");
  const { openDatabase } = await import("./driver.ts");
  const database = openDatabase(path);
  try {
    database.exec("pragma query_only = on; pragma busy_timeout = 5000");
    yield* database.rows(sql);
  } catch (error) {
    throw queryRefused(error);
  } finally {
    database.close();
  }
}
