// The columns of a job, once for every SQL store: the field, its table, its value in a job that never ran and sets
// nothing, and the version of the schema that adds it. Column lists, rows, inserts, what a claim reads, and the migration
// that adds a column follow from here; hot statements stay written by hand around them. A new field of a job is a row here.
import { type Job, TERM_NAMES, TERM_READERS, type Terms } from "../core/job.ts";

/** A value of a row. */
export type Value = string | number | null;

/** One field of a job. */
export interface JobColumn {
  readonly field: keyof Job;
  /** Its name in the job table, or in the lane table: that of the field with underscores, but for a few old ones. */
  readonly sql: string;
  /** `j` for the job table, `l` for the lane table. */
  readonly in: "j" | "l";
  readonly isBoolean?: true;
  /**
   * Its value in a job that never ran and sets nothing. A claim reads such columns only of jobs in which one of them
   * differs, so that most jobs are short.
   */
  readonly plain?: number | null;
  /** It cannot differ unless another one does, so it need not be compared. */
  readonly follows?: true;
  /** A claim reads it of every job: it differs in jobs that are plain otherwise. */
  readonly claimed?: true;
  /** What a version after the first adds to the job table; the stores make the migration from it. */
  readonly added?: AddedColumn;
}

/**
 * A column that a version adds. It may be null, and `plain` must say so, because programs of the version before do not
 * write it. Once its version is released it stays as it is, like every migration.
 */
export interface AddedColumn {
  readonly version: number;
  readonly kind: "number" | "text";
  /** The view `jobs` shows it, after all other columns. */
  readonly shown?: true;
}

const named = (field: keyof Job): string => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const own = (field: keyof Job, more: Partial<JobColumn> = {}): JobColumn => ({
  field,
  sql: named(field),
  in: "j",
  ...more,
});
const ofLane = (field: keyof Job, sql = named(field)): JobColumn => ({ field, sql, in: "l" });

/** Every field of a job in the order of the row; the stack of its failure comes last. */
export const JOB_COLUMNS: readonly JobColumn[] = [
  own("id"),
  ofLane("type"),
  ofLane("queue"),
  ofLane("service"),
  ofLane("tenant"),
  ofLane("group", "group_key"),
  ofLane("groupConcurrency"),
  ofLane("priority"),
  own("key", { plain: null }),
  own("state"),
  own("payload"),
  own("version"),
  own("runAt"),
  own("dueAt"),
  own("createdAt"),
  own("updatedAt"),
  own("startedAt"),
  own("finishedAt"),
  own("expiresAt"),
  own("attempts", { plain: 0 }),
  own("crashes", { plain: 0 }),
  own("releases", { plain: 0 }),
  own("generation", { plain: 1 }),
  own("epoch"),
  own("worker"),
  own("cancelRequested", { isBoolean: true }),
  own("lastDelayMs", { plain: 0 }),
  own("limited", { isBoolean: true }),
  own("maxAttempts"),
  own("maxCrashes"),
  own("deadlineMs", { plain: null }),
  own("stuckMs", { plain: null }),
  own("stuckRetryMs", { plain: null, follows: true }),
  own("stuckLimit", { plain: null, follows: true }),
  own("keepFinishedMs", { sql: "keep_ms" }),
  own("keepDeadMs"),
  own("batchMost", { plain: null, follows: true }),
  own("progress", { plain: null }),
  own("result"),
  own("failure", { plain: null }),
  own("trace", { plain: null, claimed: true, added: { version: 3, kind: "text" } }),
];

/** How many values the row of a job has. */
export const JOB_WIDTH = JOB_COLUMNS.length + 1;

/** The index of the due time. */
export const RUN_AT = JOB_COLUMNS.findIndex(({ field }) => field === "runAt");

/** The columns of a job for a select, with the expressions that a store uses instead of some of them. */
export function selectJob(special: { readonly [F in keyof Job]?: string } & { readonly stack: string }): string {
  const columns = JOB_COLUMNS.map(({ field, sql, in: table }) => special[field] ?? `${table}.${sql}`);
  return [...columns, special.stack].join(", ");
}

/**
 * A column about the last failure of a job, null where that is of an earlier generation: a redrive leaves the column as it
 * was. Of the alias `job`, with the name of the table of attempts.
 */
export function ofGeneration(job: string, attempt: string, column: string): string {
  return `case when ${job}.generation = 1 or ${job}.state = 'dead' or ${job}.generation =
    (select a.generation from ${attempt} a where a.job_seq = ${job}.seq order by a.epoch desc limit 1) then ${job}.${column} end`;
}

/** The columns of the terms, in their order. */
export const TERM_COLUMNS: readonly string[] = TERM_NAMES.map(
  (name) => JOB_COLUMNS.find(({ field }) => field === name)?.sql as string,
);

/** The same as an assignment from parameters. */
export const SET_TERMS = TERM_COLUMNS.map((column) => `${column} = ?`).join(", ");

/** The terms of a job as values, in the order of `TERM_COLUMNS`. */
export function termValues(terms: Terms): (number | null)[] {
  return TERM_READERS.map((of) => of(terms));
}

/** The terms among values, from this index on. */
export function termsAt(values: readonly Value[], at: number): Terms {
  return Object.fromEntries(TERM_NAMES.map((name, place) => [name, values[at + place]])) as unknown as Terms;
}

/** The columns that a claim reads only of jobs that are not plain. */
export const REST_COLUMNS: readonly JobColumn[] = JOB_COLUMNS.filter(
  ({ plain, claimed }) => plain !== undefined && !claimed,
);

/** Those columns as SQL: of the alias `job`, with the name of the table of attempts. */
export function restColumns(job: string, attempt: string): string {
  const columns = REST_COLUMNS.map(({ field, sql }) =>
    field === "failure" ? ofGeneration(job, attempt, sql) : `${job}.${sql}`,
  );
  return columns.join(", ");
}

/** The condition for a job with default values in all `REST_COLUMNS`; with or without an alias. */
export function isPlainJob(alias = ""): string {
  const compared = REST_COLUMNS.filter(({ follows }) => !follows);
  return compared.map(({ sql, plain }) => `${alias}${sql} ${plain === null ? "is null" : `= ${plain}`}`).join(" and ");
}
