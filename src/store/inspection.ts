// The address of a store that is not open yet, and what a store reports besides its verbs. Commands and config files use
// only this, so that a new kind of store needs no change there.
import { textOf } from "../core/failure.ts";
import { RedriveError } from "../core/errors.ts";
import type { MigrationPlan } from "./migrations.ts";
import type { Store, StoreDescription } from "./store.ts";

/** The address of a store: its description, and the URL that opens it. */
export interface StoreAddress extends StoreDescription {
  /** The URL, with its password; for a file, with an absolute path. */
  readonly url: string;
  /** Loads the inspection of the store; opens nothing. */
  inspect(): Promise<StoreInspection>;
}

/** The inspection of a store at an address. It creates nothing and migrates nothing. */
export interface StoreInspection {
  /** Refuses a missing folder for a new store: its name is more often mistyped than meant. */
  checkPlace(): void;
  /** False if the store does not exist yet. The given store was opened, but no verb was called on it. */
  isMade(store: Store): Promise<boolean>;
  /** The error of a store, with its cause if the inspection finds one; any other error unchanged. */
  explained(error: unknown): Promise<unknown>;
  /** The version of the schema, and what `migrate` would do. */
  schema(): Promise<MigrationPlan>;
  /** The checks of `doctor` on what the store needs from this machine. */
  machineFindings(): Promise<Finding[]>;
  /** The checks of `doctor` before the store is opened; a problem of the check `store` means that there is no store. */
  placeFindings(): Promise<Finding[]>;
  /** The checks of `doctor` on an open store. */
  storeFindings(store: Store): Promise<Finding[]>;
  /** The rows of a SQL query, read on demand. The database is only read, and need not be a store. */
  rows(sql: string): AsyncIterable<QueryRow>;
}

/** One line of the doctor. */
export interface Finding {
  readonly check: string;
  readonly level: "ok" | "warning" | "problem";
  readonly message: string;
  /** What to do; null where nothing is needed. */
  readonly remedy: string | null;
}

/** A row of a query, by the names of its columns. */
export type QueryRow = Readonly<Record<string, unknown>>;

/** A finding in one line. */
export function finding(
  check: string,
  level: Finding["level"],
  message: string,
  remedy: string | null = null,
): Finding {
  return { check, level, message, remedy };
}

/** Compares the version of a schema with the one that this program knows. */
export function schemaFinding({ from, known }: MigrationPlan): Finding {
  if (from === known) return finding("schema", "ok", `version ${from}`);
  if (from < known) {
    const remedy = "any command upgrades it; `migrate --plan` shows the SQL";
    return finding("schema", "warning", `version ${from} of ${known}`, remedy);
  }
  const message = `version ${from}, newer than version ${known} of this redrive, which may use it`;
  return finding("schema", "warning", message, "update redrive when the upgrade is to stay");
}

/** The error for a query that the database refused. */
export function queryRefused(cause: unknown): RedriveError {
  const message = `query: expected one valid SELECT; got an error from the database: ${textOf(cause)}; correct it`;
  return new RedriveError("invalid_argument", message, { cause });
}
