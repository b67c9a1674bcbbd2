// The counts by cause and by type as SQL, the same for every SQL store: the sums of causes, the lists, the trends.
//
// A row of `cause_tick` with a holder is not in the sums of `cause` yet; folding gives it the empty holder and adds it to
// the sums in the same transaction. So the counts of a cause are its sums and its rows with a holder, however many ticks
// there are.
import { CAUSE_COUNTS, FLOW_COUNTS, minuteOf, OTHER_CAUSES } from "../core/flow.ts";
import {
  type Cause,
  type CauseQuery,
  namesOfCause,
  readCauseCursor,
  type TrendPoint,
  type TrendQuery,
} from "./causes.ts";
import type { Value } from "./columns.ts";
import { Conditions, type Dialect, type Query } from "./dialect.ts";
import type { StoreFigures } from "./figures.ts";
import { failureFromText } from "./rows.ts";
import { CAUSE_TICKS, FLOW_TICKS, summed } from "./tick-tables.ts";

const WHEN = "case when failures > 0 then minute end";

/** The sums of causes from rows of counts. */
export const summedCauses = (from: string): string =>
  `select fingerprint, type, release, ${summed(CAUSE_TICKS.counts)}, min(${WHEN}), max(${WHEN})
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
      select fingerprint, cast(case when ${LIVE} > 0 then ${LIVE} else 0 end as bigint) as live, ${summed(["deaths", "failures"])},
        min(first_at) as first_at, max(last_at) as last_at
      from (${sources}) c group by fingerprint) found
    where ${where.text || "true"} order by live desc, fingerprint limit ${where.of(query.limit + 1)}`;
  return { text, values: where.values };
}

/** Where causes were seen, when last and how often; `isOne` is a condition on their fingerprints that both tables can use. */
export const sightingsText = (dialect: Dialect, isOne: string): string =>
  `select fingerprint, type, release, max(last_at), ${summed(["failures"])} from ${counted(dialect, isOne)} group by fingerprint, type, release`;

/** A cause from its row in the list, the rows of where it was seen, and the text of its newest failure. */
export function causeFromRows(
  row: readonly Value[],
  seen: readonly (readonly Value[])[],
  newest: string | null,
): Cause {
  const [fingerprint, live, deaths, failures, firstAt, lastAt] = row as [
    string,
    number,
    number,
    number,
    number | null,
    number | null,
  ];
  const sightings = seen as readonly [string, string, string, number | null, number][];
  const failure = failureFromText(newest, null);
  return {
    fingerprint,
    live,
    deaths,
    failures,
    firstAt,
    lastAt,
    ...namesOfCause(
      sightings.map(([, type, release, at, count]) => ({ fingerprint, type, release, lastAt: at, failures: count })),
    ),
    sample: failure && { name: failure.name, message: failure.message },
  };
}

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
  const text = `select minute - minute % ${stepMs} as at, ${summed(counts)} from ${dialect.table(name)}
    where ${where.text} group by at order by at`;
  return { text, values: where.values };
}

/** The counts over time from its rows. */
export function trendPoints({ fingerprint }: TrendQuery, rows: readonly (readonly unknown[])[]): TrendPoint[] {
  const names: readonly string[] = fingerprint === undefined ? FLOW_COUNTS : CAUSE_COUNTS;
  return rows.map(([at, ...counts]) => ({
    at: at as number,
    counts: Object.fromEntries(names.map((name, index) => [name, counts[index] as number])),
  }));
}

/** How many causes have a count of their own. */
export const causeCount = ({ table }: Dialect): string => `select count(distinct fingerprint) from ${table("cause")}`;

/**
 * The rarest causes that need no count of their own, last seen before an instant, at most so many: they are idle, have no
 * live letters, and nothing of them is left to fold.
 */
export const rareCauses = ({ table, parameter }: Dialect): string =>
  `select fingerprint from ${table("cause")} c where fingerprint <> '${OTHER_CAUSES}' and not exists (
      select 1 from ${table("cause_tick")} t where t.fingerprint = c.fingerprint and t.holder <> '')
    group by fingerprint having ${LIVE} <= 0 and coalesce(max(last_at), 0) < ${parameter(1)}
    order by sum(failures), coalesce(max(last_at), 0), fingerprint limit ${parameter(2)}`;

/** A lane counts at least so many due jobs, where so many are asked for. */
const SHARE_LEAST = 100;

/** How many due jobs are counted in each lane, however many lanes there are. */
export function leastShare(jobs: number): number {
  return Math.min(SHARE_LEAST, jobs);
}

/** How many due jobs are counted in each of so many lanes. */
export function shareOf(jobs: number, lanes: number): number {
  return Math.max(leastShare(jobs), Math.floor(jobs / Math.max(1, lanes)));
}

/** Live letters by type. */
export const lettersByType = (dialect: Dialect): string =>
  `select type, cast(${LIVE} as bigint) from ${counted(dialect, "true")} group by type having ${LIVE} > 0 order by type`;

/** Every live cause with whether it has a note of the kind that is the one parameter. */
const liveCauses = (dialect: Dialect): string =>
  `select fingerprint, exists (select 1 from ${dialect.table("cell")} n
      where n.kind = ${dialect.parameter(1)} and n.name = c.fingerprint) as noted
    from ${counted(dialect, "true")} group by fingerprint having ${LIVE} > 0`;

/** A row without a name for those without a note, and a row for each with one; each with a count. */
export const causesByNote = (dialect: Dialect): string =>
  `select name, count(*) from (
    select case when noted then fingerprint end as name from (${liveCauses(dialect)}) l) f group by name order by name`;

/** When the oldest of the first live letters died. */
export const oldestLetter = ({ table, parameter }: Dialect): string =>
  `select min(died_at) from (
    select died_at from ${table("dead_letter")} where redriven_at is null order by job_seq limit ${parameter(1)}) d`;

/** The causes of an answer, from the rows of `causesByNote`. */
export function causesFrom(
  rows: readonly (readonly [name: string | null, count: number])[],
): Pick<StoreFigures, "causes" | "noted"> {
  return {
    causes: rows.reduce((sum, [, count]) => sum + count, 0),
    noted: rows.flatMap(([name]) => (name === null ? [] : [name])),
  };
}
