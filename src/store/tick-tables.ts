// Tables of counts as SQL, the same for every SQL store. A row is what one holder has counted of one thing in one span of
// time, so that two writers never wait for each other; folding makes one row of the rows of all holders, and of finer spans.
import { CAUSE_COUNTS, FLOW_COUNTS, type FoldStep, MINUTE_FOLDS, REDRIVE_FOLDS } from "../core/flow.ts";
import { REDRIVE_SUMS } from "../core/recovery/outcome.ts";

const snake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** A table of counts. */
export interface TickTable {
  readonly name: "cause_tick" | "flow" | "redrive_tick";
  /** What a count is about, besides its time and its holder. */
  readonly of: readonly string[];
  /** The column with the start of its span. */
  readonly time: "minute" | "at";
  readonly counts: readonly string[];
  readonly folds: readonly FoldStep[];
}

/** The counts by cause. */
export const CAUSE_TICKS: TickTable = {
  name: "cause_tick",
  of: ["fingerprint", "type", "release"],
  time: "minute",
  counts: CAUSE_COUNTS.map(snake),
  folds: MINUTE_FOLDS,
};
/** The counts by type. */
export const FLOW_TICKS: TickTable = {
  name: "flow",
  of: ["type"],
  time: "minute",
  counts: FLOW_COUNTS.map(snake),
  folds: MINUTE_FOLDS,
};
/** The counts of redrive runs. */
export const REDRIVE_TICKS: TickTable = {
  name: "redrive_tick",
  of: ["redrive"],
  time: "at",
  counts: REDRIVE_SUMS,
  folds: REDRIVE_FOLDS,
};
/** All of them. */
export const TICK_TABLES = [CAUSE_TICKS, FLOW_TICKS, REDRIVE_TICKS] as const;

/** The columns of a table of counts, in the order in which rows are written. */
export const tickColumns = ({ of, time, counts }: TickTable): string => [...of, time, "holder", ...counts].join(", ");

/** Adds the new counts to those of a row that is there. */
export const addCounts = ({ name, of, time, counts }: TickTable): string =>
  `on conflict (${of.join(", ")}, ${time}, holder) do update set
    ${counts.map((count) => `${count} = ${name}.${count} + excluded.${count}`).join(", ")}`;

/** The sums of counts, as columns of the same names. */
export const summed = (counts: readonly string[]): string =>
  counts.map((count) => `cast(sum(${count}) as bigint) as ${count}`).join(", ");

/** The rows that a step of folding takes, besides that they are old enough; the tables have an index for each. */
export function foldedWhere({ time }: TickTable, { isOpen, from, to }: FoldStep): string {
  if (isOpen) return "holder <> ''";
  return ["holder = ''", from && `${time} % ${from} = 0`, to && `${time} % ${to} <> 0`].filter(Boolean).join(" and ");
}

/** Rows of counts as rows of a span, from a table or CTE; sorted, so that two writers meet in the same order. */
export const foldedRows = ({ of, time, counts }: TickTable, span: number, from: string): string =>
  `select ${of.join(", ")}, ${time} - ${time} % ${span} as span, '', ${summed(counts)}
    from ${from} group by ${of.join(", ")}, span order by ${of.join(", ")}, span`;
