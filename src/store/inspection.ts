// What can be asked about a store beside its verbs: where it is, before it is opened, and what only its kind can say.
// Commands and config files know a store by this alone, so that a new one needs no change there.
import { textOf } from "../core/failure.ts";
import { RedriveError } from "../core/errors.ts";
import type { Store, StoreDescription } from "./store.ts";

/** Where a store is: what it will say of itself once it is open, and the way to open it. */
export interface StoreAddress extends StoreDescription {
  /** The URL, with its password; that of a file with an absolute path. */
  readonly url: string;
  /** Loads what can be asked about it; nothing is opened. */
  inspect(): Promise<StoreInspection>;
}

/** What can be asked about a store at an address. Nothing is made and nothing is brought up to date. */
export interface StoreInspection {
  /** Throws where the place for a new store is missing, because its name is more often mistyped than meant. */
  checkPlace(): void;
  /** False where no store was made yet. The one given is open, and nothing was asked of it so far. */
  isMade(store: Store): Promise<boolean>;
  /** An error of the store with what is seen to be its cause; any other as it is. */
  explained(error: unknown): Promise<unknown>;
  /** The version of its schema, and what `migrate` would do. */
  schema(): Promise<SchemaLook>;
  /** What the doctor finds about what the store needs of this machine. */
  machineFindings(): Promise<Finding[]>;
  /** What the doctor finds before the store is opened; a problem of the check `store` means that there is none. */
  placeFindings(): Promise<Finding[]>;
  /** What the doctor finds about an open store. */
  storeFindings(store: Store): Promise<Finding[]>;
  /** The rows of a query in SQL, read as they are needed. The database is only read, and need not be a store. */
  rows(sql: string): AsyncIterable<QueryRow>;
}

/** The version of a schema (0 for none), the one this program knows, and the SQL that leads from one to the other. */
export interface SchemaLook {
  readonly from: number;
  readonly to: number;
  readonly statements: readonly string[];
}

/** One line of the doctor. */
export interface Finding {
  readonly check: string;
  readonly level: "ok" | "warning" | "problem";
  readonly message: string;
  /** What to do; null where nothing is. */
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

/** The error for a query that the database refused. */
export function queryRefused(cause: unknown): RedriveError {
  const message = `query: expected one SELECT that the database understands; it says: ${textOf(cause)}; correct it`;
  return new RedriveError("invalid_argument", message, { cause });
}
