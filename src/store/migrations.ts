// How a schema changes: by numbered migrations, each applied once and never changed after its release. Each says which
// programs may still work with a store after it, so that two releases work side by side and an upgrade can be rolled back.
//
//   the store has version V, the program knows N    the program
//   V = N                                           uses it
//   V < N                                           migrates it to N, in one transaction
//   V > N, and it is readable by N                  uses it as it is
//   V > N, and it is not readable by N              refuses it
import { isRedriveError, RedriveError } from "../core/errors.ts";
import type { JobColumn } from "./columns.ts";
import type { Dialect } from "./dialect.ts";

/** One step from a version of the schema to the next; its place in the list is its number, from 1. */
export interface Migration<Sql> {
  readonly sql: Sql;
  /** The oldest version whose programs may work with a store after this step. It never falls from one step to the next. */
  readonly readableBy: number;
}

/** The columns that one version adds to the jobs. */
export interface Addition {
  /** The statements that add them to the table. */
  readonly tables: string;
  /** All added columns that the view `jobs` shows; null before the newest version, which ends with the views. */
  readonly shown: readonly string[] | null;
}

/**
 * The steps of a store: its own, each followed by the columns that its version adds to the jobs. A version that only adds
 * columns has no step of its own; every program that could use the store before it still can.
 */
export function withAdded<Sql>(
  steps: readonly Migration<Sql>[],
  columns: readonly JobColumn[],
  extend: (sql: Sql | undefined, addition: (dialect: Dialect) => Addition) => Sql,
): readonly Migration<Sql>[] {
  const newest = Math.max(steps.length, ...columns.map(({ added }) => added?.version ?? 0));
  const all: Migration<Sql>[] = [];
  for (let version = 1; version <= newest; version++) {
    const { sql, readableBy = all.at(-1)?.readableBy ?? version } = steps[version - 1] ?? {};
    const addition = (dialect: Dialect): Addition => ({
      tables: tablesIn(version, columns, dialect),
      shown: version === newest ? columns.filter(({ added }) => added?.shown).map((each) => each.sql) : null,
    });
    all.push({ sql: extend(sql, addition), readableBy });
  }
  return all;
}

function tablesIn(version: number, columns: readonly JobColumn[], { table, number }: Dialect): string {
  const now = columns.filter(({ added }) => added?.version === version);
  return now
    .map(
      ({ sql, added }) =>
        `alter table ${table("job")} add column ${sql} ${added?.kind === "text" ? "text" : number};\n`,
    )
    .join("");
}

/** What a store says about its schema. */
export interface SchemaVersion {
  /** 0 where there is none yet. */
  readonly version: number;
  /** The oldest version whose programs may work with it; null where the store does not say. */
  readonly readableBy: number | null;
}

/** What a program does with a store it opens. */
export type Opening = "use" | "migrate" | "use newer" | "refuse newer" | "refuse unreleased";

/** Decides it, by the table above. Every released schema says by whom it is readable. */
export function openingOf({ version, readableBy }: SchemaVersion, known: number): Opening {
  if (version > known) return readableBy !== null && readableBy <= known ? "use newer" : "refuse newer";
  if (version < 0 || readableBy === null) return "refuse unreleased";
  return version === known ? "use" : "migrate";
}

/** Decides it; throws `store_unusable` for a store, by its name, that the program must leave alone. */
export function checkOpening(found: SchemaVersion, known: number, store: string): Exclude<Opening, `refuse ${string}`> {
  const opening = openingOf(found, known);
  if (opening === "refuse newer") throw notReadable(found, known, store);
  if (opening !== "refuse unreleased") return opening;
  const message = `${store} has a schema from before Redrive 0.1.0, from which no migration leads. Name another store, or delete this one to begin without its jobs.`;
  throw new RedriveError("store_unusable", message);
}

/** The error about a store that only newer programs may use. */
export function notReadable({ version, readableBy }: SchemaVersion, known: number, store: string): RedriveError {
  const needed = readableBy ?? version;
  const message = `${store} has schema version ${version}, for programs that know version ${needed} or newer; this Redrive knows versions up to ${known}. Update redrive, or restore a backup from before the upgrade.`;
  return new RedriveError("store_unusable", message, { details: { schemaVersion: version, readableBy: needed } });
}

/** True for the error above. */
export function isNotReadable(error: unknown): boolean {
  return isRedriveError(error, "store_unusable") && error.details["schemaVersion"] !== undefined;
}

/** What people should know about a store that the program uses as it is; null where it has the version that the program knows. */
export function newerNotice(version: number, known: number): string | null {
  if (version <= known) return null;
  return `the store has schema version ${version}, newer than version ${known} of this redrive, which may use it; update redrive when the upgrade is to stay`;
}

/** The steps that a store lacks, each with its number. */
export function missingSteps<Sql>(
  { version }: SchemaVersion,
  migrations: readonly Migration<Sql>[],
): (Migration<Sql> & { readonly version: number })[] {
  return migrations.map((step, at) => ({ ...step, version: at + 1 })).slice(version);
}

/** What `migrate` would do to a store. */
export interface MigrationPlan {
  readonly from: number;
  /** The version afterwards: the one that this program knows, or that of a newer store. */
  readonly to: number;
  /** The newest version that this program knows. */
  readonly known: number;
  /** The oldest version whose programs may work with the store afterwards: how far an upgrade can be rolled back. */
  readonly readableBy: number;
  /** SQL for people, as one transaction; none where there is nothing to do. */
  readonly statements: readonly string[];
}

/** The plan, from what there is and the SQL of the steps that are missing. */
export function planFrom(
  found: SchemaVersion,
  migrations: readonly Migration<unknown>[],
  statements: readonly string[],
): MigrationPlan {
  const known = migrations.length;
  const to = Math.max(found.version, known);
  const newest = migrations.at(-1)?.readableBy ?? 0;
  return { from: found.version, to, known, readableBy: Math.max(found.readableBy ?? 0, newest), statements };
}
