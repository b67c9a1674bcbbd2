// Counts by cause and by type on Postgres. A verb that changes dead letters counts them with a part of its own
// statement, so that counting is no further trip. Only one process folds at a time.
import { CAUSE_COUNTS, CAUSES_MOST, FLOW_COUNTS, type Folding, foldingAt, OTHER_CAUSES } from "../../core/flow.ts";
import type { Failure } from "../../core/job.ts";
import {
  ADD_CAUSE,
  addCounts,
  CAUSE_COLUMNS,
  CAUSE_TICKS,
  causeList,
  countedLive,
  FLOW_TICKS,
  foldedRows,
  FOLDS,
  FORGET,
  idleCauses,
  sightingsText,
  summedCauses,
  tickColumns,
  type TickTable,
  trendList,
} from "../cause-queries.ts";
import { type Cause, causeCursor, namesOfCause, NO_WORKER } from "../causes.ts";
import { postgresDialect } from "./dialect.ts";
import { addRedriveSums, foldedTicks, REDRIVE_FOLD, REDRIVE_FORGET, TICK_COLUMNS } from "../redrive-queries.ts";
import { failureFromText } from "../rows.ts";
import type { Store } from "../store.ts";
import { type Ask, type Context, NOW } from "./context.ts";
import type { PostgresStatement } from "./driver.ts";

const THIS_MINUTE = `(select ${NOW} - ${NOW} % 60000)`;

/** The same for a cause: rows are written in the order of their keys, so that two writers do not wait in a circle. */
const tickText = (s: string, from: string): string =>
  `insert into ${s}.cause_tick (${tickColumns(CAUSE_TICKS).join(", ")})
    select fingerprint, type, release, ${THIS_MINUTE}, holder, ${CAUSE_COUNTS.map((count) => `sum(${count})`).join(", ")}
    from (${from}) t group by fingerprint, type, release, holder order by fingerprint, type, release
    ${addCounts(CAUSE_TICKS)}`;

/** The release of the worker that ran a job; a worker stays in its table as long as it holds a job. */
export const releaseOf = (s: string, job: string): string =>
  `(select release from ${s}.worker where id = ${job}.worker)`;

/**
 * The holder of failed runs that no worker settles. A settle locks the rows of its causes before the letters of redriven
 * jobs, the verbs about letters the other way round: in rows of their own they never wait for each other in a circle.
 */
const JUDGED = `${NO_WORKER} judged`;

/**
 * Counts failed runs from a CTE `done`, as a CTE. The settler sends retries and deaths at the same time: each has rows of
 * its own, so that neither waits for the other.
 */
export function tickFailures(s: string, kind: "retry" | "dead", worker: string): string {
  // The lane of each cause, and the release, are looked up once, not for every job.
  return `ticked as (${tickText(
    s,
    `select d.fingerprint, coalesce((select l.type from ${s}.lane l where l.base = d.base limit 1), '') as type, coalesce(${releaseOf(s, "d")}, '') as release,
      coalesce(${worker}::text, '${JUDGED}') || '${kind === "dead" ? " dead" : ""}' as holder,
      d.n as failures, ${kind === "dead" ? "d.n" : "0"} as deaths, 0 as redriven, 0 as removed
    from (select fingerprint, lane - lane % 4 as base, worker, count(*) as n from done group by 1, 2, 3) d`,
  )})`;
}

/** Counts letters from a CTE with their columns, as a CTE. */
export function tickLetters(s: string, what: keyof typeof LETTER_COUNTS, from: string, where = "true"): string {
  return `ticked as (${tickText(
    s,
    `select fingerprint, type, coalesce(release, '') as release, '${NO_WORKER}' as holder, ${LETTER_COUNTS[what]}
    from ${from} where ${where}`,
  )})`;
}

/** Counts letters from a CTE, with the fingerprint that they `had`, out of that cause and into the other, as a CTE. */
export function tickMoved(s: string, from: string, where: string): string {
  const place = `type, coalesce(release, '') as release, '${NO_WORKER}' as holder`;
  return `ticked as (${tickText(
    s,
    `select had as fingerprint, ${place}, ${LETTER_COUNTS.removed} from ${from} where ${where}
    union all select fingerprint, ${place}, 0, 1, 0, 0 from ${from} where ${where}`,
  )})`;
}

const LETTER_COUNTS = {
  died: "1 as failures, 1 as deaths, 0 as redriven, 0 as removed",
  redriven: "0 as failures, 0 as deaths, 1 as redriven, 0 as removed",
  recalled: "0 as failures, 0 as deaths, -1 as redriven, 0 as removed",
  removed: "0 as failures, 0 as deaths, 0 as redriven, 1 as removed",
} as const;

/** The verbs about counts. */
export function causeVerbs(context: Context): Pick<Store, "addFlow" | "causes" | "trend" | "fold" | "recount"> {
  const { db, questions, s } = context;
  const dialect = postgresDialect(s);
  const add = addFlowStatement(s);
  return {
    async addFlow({ holder, counts }) {
      if (counts.length === 0) return;
      const columns = FLOW_COUNTS.map((count) => counts.map((each) => each[count]));
      const types = counts.map(({ type }) => type);
      await db.ask(add, holder, types, ...columns);
    },
    causes: lister(context),
    async trend(query) {
      const { text, values } = trendList(dialect, query);
      const names: readonly string[] = query.fingerprint === undefined ? FLOW_COUNTS : CAUSE_COUNTS;
      return (await questions.ask({ text }, ...values)).map(([at, ...counts]) => ({
        at: at as number,
        counts: Object.fromEntries(names.map((name, index) => [name, counts[index] as number])),
      }));
    },
    fold: folder(context),
    recount: recounter(context),
  };
}

/** A crash that loses it loses a second of counts, so its commit waits for no disk. */
function addFlowStatement(s: string): PostgresStatement {
  const { counts } = FLOW_TICKS;
  const arrays = counts.map((_, at) => `$${at + 3}::bigint[]`).join(", ");
  return {
    name: "add_flow",
    text: `insert into ${s}.flow (${tickColumns(FLOW_TICKS).join(", ")})
      select type, ${THIS_MINUTE}, $1, ${counts.join(", ")} from unnest($2::text[], ${arrays}) as f (type, ${counts.join(", ")})
      where pg_catalog.set_config('synchronous_commit', 'off', true) is not null order by type
      ${addCounts(FLOW_TICKS)}`,
  };
}

function lister({ questions, s }: Context): Store["causes"] {
  const dialect = postgresDialect(s);
  const sightings = { name: "cause_sightings", text: sightingsText(dialect, "fingerprint = any($1::text[])") };
  const samples = {
    name: "cause_samples",
    text: `select f.fingerprint, d.failure from unnest($1::text[]) as f (fingerprint) cross join lateral (
      select failure from ${s}.dead_letter d where d.fingerprint = f.fingerprint order by d.seq desc limit 1) d`,
  };
  return async (query) => {
    const { text, values } = causeList(dialect, query);
    const found = (await questions.ask({ text }, ...values)) as CauseColumns[];
    const page = found.slice(0, query.limit);
    const names = page.map(([fingerprint]) => fingerprint);
    const [seen, newest] =
      page.length === 0
        ? [[], []]
        : await Promise.all([questions.ask(sightings, names), questions.ask(samples, names)]);
    const failures = new Map(newest as [string, string][]);
    const items = page.map(([fingerprint, live, deaths, failed, firstAt, lastAt]): Cause => {
      const own = (seen as Sighting[]).filter(([name]) => name === fingerprint);
      const failure = failureFromText(failures.get(fingerprint) ?? null, null) as Failure | null;
      return {
        fingerprint,
        live,
        deaths,
        failures: failed,
        firstAt,
        lastAt,
        ...namesOfCause(
          own.map(([, type, release, at, count]) => ({ fingerprint, type, release, lastAt: at, failures: count })),
        ),
        sample: failure && { name: failure.name, message: failure.message },
      };
    });
    return { items, next: found.length > query.limit ? causeCursor(items.at(-1) as Cause) : null };
  };
}

type CauseColumns = [string, number, number, number, number | null, number | null];
type Sighting = [fingerprint: string, type: string, release: string, at: number | null, failures: number];

/** The lock of the one transaction that folds or recounts. */
const lockOf = (s: string): string => `(pg_catalog.hashtext('redrive fold'), pg_catalog.hashtext('${s}'))`;

/** The rows that a fold takes; one that another transaction writes stays until later. */
const taken = (s: string, { name }: TickTable, where: string): string =>
  `old as (delete from ${s}.${name} where ctid = any(array(
    select ctid from ${s}.${name} where ${where} and minute < $1 order by minute limit $2 for update skip locked)) returning *)`;

function foldStatements(s: string, table: TickTable) {
  const { name } = table;
  const merged = (size: number | null): string =>
    `merged as (insert into ${s}.${name} (${tickColumns(table).join(", ")}) ${foldedRows(table, size, "old")} ${addCounts(table)})`;
  const summed = `, summed as (insert into ${s}.cause (${CAUSE_COLUMNS.join(", ")}) ${summedCauses("old")} ${ADD_CAUSE})`;
  return [
    ...FOLDS.map(({ cut, size, where }) => ({
      cut,
      where,
      name,
      time: "minute",
      text: `with ${taken(s, table, where)}, ${merged(size)}${size === null && table === CAUSE_TICKS ? summed : ""}
        select count(*) from old`,
    })),
    { ...FORGET, name, time: "minute", text: `with ${taken(s, table, FORGET.where)} select count(*) from old` },
  ];
}

/** The same for the ticks of redrive runs. */
function runFolds(s: string) {
  const taken = (where: string): string =>
    `old as (delete from ${s}.redrive_tick where ctid = any(array(
      select ctid from ${s}.redrive_tick where ${where} and at < $1 order by at limit $2 for update skip locked)) returning *)`;
  const merged = `merged as (insert into ${s}.redrive_tick (${TICK_COLUMNS.join(", ")}) ${foldedTicks("old")} ${addRedriveSums()})`;
  const table = { name: "redrive_tick", time: "at" };
  return [
    { ...table, ...REDRIVE_FOLD, text: `with ${taken(REDRIVE_FOLD.where)}, ${merged} select count(*) from old` },
    { ...table, ...REDRIVE_FORGET, text: `with ${taken(REDRIVE_FORGET.where)} select count(*) from old` },
  ];
}

function folder({ db, s }: Context): Store["fold"] {
  const folds = [...[CAUSE_TICKS, FLOW_TICKS].flatMap((table) => foldStatements(s, table)), ...runFolds(s)];
  // One look, which mostly finds nothing: an idle worker sends no more.
  const look = {
    name: "fold_look",
    text: `select ${NOW}, array[${folds
      .map(
        ({ name, time, where, cut }) =>
          `exists (select from ${s}.${name} where ${where} and ${time} < ${cutText(cut)})`,
      )
      .join(", ")}]::int[], (select count(*) from ${s}.cause) > ${CAUSES_MOST}`,
  };
  // Does not wait for another that folds: that one does the same.
  const alone = { name: "fold_alone", text: `select pg_catalog.pg_try_advisory_xact_lock${lockOf(s)}` };
  const foldRare = rareFolder(s);
  return async ({ limit }) => {
    const [row] = await db.ask(look);
    const [now, due, many] = row as [number, number[], boolean];
    if (!due.includes(1) && !many) return { more: false };
    return db.together(async (ask) => {
      if ((await ask(alone))[0]?.[0] !== true) return { more: false };
      const by = foldingAt(now);
      let most = 0;
      for (const [at, { cut, text }] of folds.entries())
        if (due[at] === 1) most = Math.max(most, (await ask({ text }, by[cut], limit))[0]?.[0] as number);
      // Those just folded may have made new sums.
      const isLeft = await foldRare(ask, by.idleBefore, limit);
      return { more: isLeft || most === limit };
    });
  };
}

/** The same instants as `foldingAt`, for the look. */
const CUTS: Readonly<Record<Exclude<keyof Folding, "idleBefore">, readonly [ms: number, size: number]>> = {
  closedBefore: [60_000, 60_000],
  hoursBefore: [6 * 3_600_000, 3_600_000],
  daysBefore: [14 * 86_400_000, 86_400_000],
  forgetBefore: [400 * 86_400_000, 86_400_000],
};

function cutText(cut: keyof typeof CUTS): string {
  const [ms, size] = CUTS[cut];
  return `(select ${NOW} - ${ms} - (${NOW} - ${ms}) % ${size})`;
}

/** Counts rare idle causes together, where there are too many; true if there are still too many. */
function rareFolder(s: string): (ask: Ask, idleBefore: number, limit: number) => Promise<boolean> {
  const dialect = postgresDialect(s);
  const count = { text: `select count(distinct fingerprint) from ${s}.cause` };
  const rare = {
    text: `select fingerprint from ${s}.cause where fingerprint in (${idleCauses(dialect)}) and fingerprint <> '${OTHER_CAUSES}'
      group by fingerprint having coalesce(max(last_at), 0) < $1
      order by sum(failures), coalesce(max(last_at), 0), fingerprint limit $2`,
  };
  const sums = CAUSE_COUNTS.map((each) => `sum(${each})`).join(", ");
  const move = {
    text: `with gone as (delete from ${s}.cause where fingerprint = any($1::text[]) returning *),
      old as (delete from ${s}.cause_tick where fingerprint = any($1::text[]) and holder = '' returning *),
      summed as (insert into ${s}.cause (${CAUSE_COLUMNS.join(", ")})
        select '${OTHER_CAUSES}', type, '', ${sums}, min(first_at), max(last_at) from gone group by type ${ADD_CAUSE})
      insert into ${s}.cause_tick (${tickColumns(CAUSE_TICKS).join(", ")})
        select '${OTHER_CAUSES}', type, '', minute, '', ${sums} from old group by type, minute ${addCounts(CAUSE_TICKS)}`,
  };
  return async (ask, idleBefore, limit) => {
    const surplus = ((await ask(count))[0]?.[0] as number) - CAUSES_MOST;
    if (surplus <= 0) return false;
    const names = (await ask(rare, idleBefore, Math.min(surplus, limit))).map(([name]) => name as string);
    if (names.length === 0) return false;
    await ask(move, names);
    return surplus > limit;
  };
}

function recounter({ db, s }: Context): Store["recount"] {
  const dialect = postgresDialect(s);
  const after = (name: string): string =>
    `least((select min(fingerprint) from ${s}.dead_letter where redriven_at is null and fingerprint > ${name}),
      (select min(fingerprint) from ${s}.cause where fingerprint > ${name}))`;
  // One statement sees letters and counts of the same moment, because each verb changes both together.
  const recount = {
    name: "recount",
    text: `with recursive name as (
      select ${after("$1::text")} as fingerprint, 1 as n
      union all select ${after("name.fingerprint")}, n + 1 from name where name.fingerprint is not null and n <= $2),
    wrong as materialized (
      select n.fingerprint, (select count(*) from ${s}.dead_letter d where d.redriven_at is null and d.fingerprint = n.fingerprint)
          - ${countedLive(dialect, "fingerprint = n.fingerprint")} as missing
      from name n where n.fingerprint is not null and n.n <= $2),
    mended as (
      insert into ${s}.cause (${CAUSE_COLUMNS.join(", ")})
      select w.fingerprint, coalesce(d.type, c.type, ''), coalesce(d.release, c.release, ''), 0, greatest(w.missing, 0), 0,
        greatest(-w.missing, 0), case when w.missing > 0 then d.at end, case when w.missing > 0 then d.at end
      from wrong w
      left join lateral (select type, coalesce(release, '') as release, died_at - died_at % 60000 as at
        from ${s}.dead_letter d where d.fingerprint = w.fingerprint order by d.seq desc limit 1) d on true
      left join lateral (select type, release from ${s}.cause c where c.fingerprint = w.fingerprint order by type, release limit 1) c on true
      where w.missing <> 0 ${ADD_CAUSE})
    select (select coalesce(sum(abs(missing)), 0)::bigint from wrong), (select max(fingerprint) from wrong),
      (select count(fingerprint) > $2 from name)`,
  };
  // Waits for another that folds, which takes one step: otherwise the rest of the causes would wait for a day.
  const alone = { name: "recount_alone", text: `select pg_catalog.pg_advisory_xact_lock${lockOf(s)}` };
  return ({ after: from, limit }) =>
    db.together(async (ask) => {
      await ask(alone);
      const [row] = await ask(recount, from, limit);
      const [mended, last, more] = row as [number, string | null, boolean];
      return { mended, next: more ? last : null };
    });
}
