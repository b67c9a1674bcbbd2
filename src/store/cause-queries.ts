// The counts by cause and by type as SQL: the tables, the lists and the folding, the same for every SQL store.
//
// A row of `cause_tick` with a holder is not in the sums of `cause` yet; folding gives it the empty holder and adds it to
// the sums in the same transaction. So the counts of a cause are its sums and its rows with a holder, however many ticks
// there are.
import { CAUSE_COUNTS, DAY, FLOW_COUNTS, HOUR, minuteOf } from "../core/flow.ts";
import { type CauseQuery, readCauseCursor, type TrendQuery } from "./causes.ts";
import { Conditions, type Dialect, type Query } from "./dialect.ts";

const snake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** A table of counts per minute. */
export interface TickTable {
  readonly name: "cause_tick" | "flow";
  /** What a count is about, besides its minute and its holder. */
  readonly of: readonly string[];
  readonly counts: readonly string[];
}

/** The counts by cause. */
export const CAUSE_TICKS: TickTable = {
  name: "cause_tick",
  of: ["fingerprint", "type", "release"],
  counts: CAUSE_COUNTS.map(snake),
};
/** The counts by type. */
export const FLOW_TICKS: TickTable = { name: "flow", of: ["type"], counts: FLOW_COUNTS.map(snake) };

/** The columns of a table of counts, in the order in which rows are written. */
export const tickColumns = ({ of, counts }: TickTable): readonly string[] => [...of, "minute", "holder", ...counts];

/** Adds the new counts to those of a row that is there. */
export const addCounts = ({ name, of, counts }: TickTable): string =>
  `on conflict (${of.join(", ")}, minute, holder) do update set
    ${counts.map((count) => `${count} = ${name}.${count} + excluded.${count}`).join(", ")}`;

const sums = (counts: readonly string[]): string =>
  counts.map((count) => `cast(sum(${count}) as bigint) as ${count}`).join(", ");

/** The rows that a step of folding takes, by an index each, and the spans that they become; null for a row as it is. */
export const FOLDS = [
  { cut: "closedBefore", size: null, where: "holder <> ''" },
  { cut: "hoursBefore", size: HOUR, where: `holder = '' and minute % ${HOUR} <> 0` },
  { cut: "daysBefore", size: DAY, where: `holder = '' and minute % ${HOUR} = 0 and minute % ${DAY} <> 0` },
] as const;

/** Old counts. */
export const FORGET = { cut: "forgetBefore", where: `holder = '' and minute % ${DAY} = 0` } as const;

/** Rows of counts as coarser ones, from a table or CTE; sorted, so that two writers meet in the same order. */
export const foldedRows = ({ of, counts }: TickTable, size: number | null, from: string): string =>
  `select ${of.join(", ")}, ${size === null ? "minute" : `minute - minute % ${size}`} as at, '', ${sums(counts)}
    from ${from} group by ${[...of, "at"].join(", ")} order by ${[...of, "at"].join(", ")}`;

const WHEN = "case when failures > 0 then minute end";

/** The sums of causes from rows of counts. */
export const summedCauses = (from: string): string =>
  `select fingerprint, type, release, ${sums(CAUSE_TICKS.counts)}, min(${WHEN}), max(${WHEN})
    from ${from} group by fingerprint, type, release order by fingerprint, type, release`;

/** The columns of a cause's sums. */
export const CAUSE_COLUMNS = [...CAUSE_TICKS.of, ...CAUSE_TICKS.counts, "first_at", "last_at"] as const;

/** Adds to the sums of a cause that is there. Nothing is less and nothing more than null, so each is compared alone. */
export const ADD_CAUSE = `on conflict (fingerprint, type, release) do update set
    ${CAUSE_TICKS.counts.map((count) => `${count} = cause.${count} + excluded.${count}`).join(", ")},
    first_at = case when excluded.first_at < coalesce(cause.first_at, excluded.first_at + 1) then excluded.first_at else cause.first_at end,
    last_at = case when excluded.last_at > coalesce(cause.last_at, -1) then excluded.last_at else cause.last_at end`;

const LIVE = "sum(deaths - redriven - removed)";

/** The sums of causes and what is not in them yet. */
function counted({ table }: Dialect, where: string): string {
  const columns = CAUSE_TICKS.counts.join(", ");
  return `(select fingerprint, type, release, ${columns}, first_at, last_at from ${table("cause")} where ${where}
    union all select fingerprint, type, release, ${columns}, ${WHEN}, ${WHEN} from ${table("cause_tick")}
      where holder <> '' and ${where}) c`;
}

/** A page of causes by live letters, and one cause more than wanted. */
export function causeList(dialect: Dialect, query: CauseQuery): Query {
  const after = readCauseCursor(query.cursor);
  const where = new Conditions(dialect);
  const ofOne = (): string =>
    query.fingerprint === undefined ? "true" : `fingerprint = ${where.of(query.fingerprint)}`;
  // Each parameter stands once in the text, in the order of the values.
  const { table } = dialect;
  const columns = CAUSE_TICKS.counts.join(", ");
  const sources = `select fingerprint, ${columns}, first_at, last_at from ${table("cause")} where ${ofOne()}
    union all select fingerprint, ${columns}, ${WHEN}, ${WHEN} from ${table("cause_tick")} where holder <> '' and ${ofOne()}`;
  if (!query.idle) where.add("live > 0");
  if (query.since !== undefined) where.add(`last_at >= ${where.of(minuteOf(query.since))}`);
  if (after !== null) {
    const [most, same] = [where.of(after.live), where.of(after.live)];
    where.add(`(live < ${most} or (live = ${same} and fingerprint > ${where.of(after.fingerprint)}))`);
  }
  const text = `select fingerprint, live, deaths, failures, first_at, last_at from (
      select fingerprint, cast(case when ${LIVE} > 0 then ${LIVE} else 0 end as bigint) as live, ${sums(["deaths", "failures"])},
        min(first_at) as first_at, max(last_at) as last_at
      from (${sources}) c group by fingerprint) found
    where ${where.text || "true"} order by live desc, fingerprint limit ${where.of(query.limit + 1)}`;
  return { text, values: where.values };
}

/** Where causes were seen, when last and how often; `isOne` is a condition on their fingerprints that both tables can use. */
export const sightingsText = (dialect: Dialect, isOne: string): string =>
  `select fingerprint, type, release, max(last_at), ${sums(["failures"])} from ${counted(dialect, isOne)} group by fingerprint, type, release`;

/** The live letters of a cause by its counts. */
export const countedLive = (dialect: Dialect, isOne: string): string =>
  `(select cast(coalesce(${LIVE}, 0) as bigint) from ${counted(dialect, isOne)})`;

/** Counts over time, one row per step that has any. */
export function trendList(dialect: Dialect, { fingerprint, type, from, until, stepMs }: TrendQuery): Query {
  const { name, counts } = fingerprint === undefined ? FLOW_TICKS : CAUSE_TICKS;
  const where = new Conditions(dialect);
  if (fingerprint !== undefined) where.add(`fingerprint = ${where.of(fingerprint)}`);
  if (type !== undefined) where.add(`type = ${where.of(type)}`);
  where.add(`minute >= ${where.of(from - (from % stepMs))}`);
  where.add(`minute < ${where.of(until)}`);
  const text = `select minute - minute % ${stepMs} as at, ${sums(counts)} from ${dialect.table(name)}
    where ${where.text} group by at order by at`;
  return { text, values: where.values };
}

/** A cause whose live letters need no count of their own: it is idle, has none, and nothing of it is left to fold. */
export const idleCauses = ({ table }: Dialect): string =>
  `select fingerprint from ${table("cause")} c where not exists (
      select 1 from ${table("cause_tick")} t where t.fingerprint = c.fingerprint and t.holder <> '')
    group by fingerprint having ${LIVE} <= 0`;
