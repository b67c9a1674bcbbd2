// Counts by cause and by type on Postgres. A verb that changes dead letters counts them with a part of its own
// statement, so that counting is no further trip. Only one process folds at a time.
import { CAUSE_COUNTS, CAUSES_MOST, FLOW_COUNTS, FOLD_CUTS, foldingAt, OTHER_CAUSES } from "../../core/flow.ts";
import {
  ADD_CAUSE,
  CAUSE_COLUMNS,
  causeCount,
  causeFromRows,
  causeList,
  countedLive,
  rareCauses,
  sightingsText,
  summedCauses,
  trendList,
  trendPoints,
} from "../cause-queries.ts";
import { type Cause, causeCursor, NO_WORKER } from "../causes.ts";
import type { Value } from "../columns.ts";
import type { Store } from "../store.ts";
import {
  addCounts,
  CAUSE_TICKS,
  FLOW_TICKS,
  foldedRows,
  foldedWhere,
  TICK_TABLES,
  tickColumns,
  type TickTable,
} from "../tick-tables.ts";
import { type Ask, type Context, NOW } from "./context.ts";
import { postgresDialect } from "./dialect.ts";
import type { PostgresStatement } from "./driver.ts";

const THIS_MINUTE = `(select ${NOW} - ${NOW} % 60000)`;

/** The same for a cause: rows are written in the order of their keys, so that two writers do not wait in a circle. */
const tickText = (s: string, from: string): string =>
  `insert into ${s}.cause_tick (${tickColumns(CAUSE_TICKS)})
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
      return trendPoints(query, await questions.ask({ text }, ...values));
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
    text: `insert into ${s}.flow (${tickColumns(FLOW_TICKS)})
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
    const found = (await questions.ask({ text }, ...values)) as Value[][];
    const page = found.slice(0, query.limit);
    const names = page.map(([fingerprint]) => fingerprint as string);
    const [seen, newest] =
      page.length === 0
        ? [[], []]
        : await Promise.all([questions.ask(sightings, names), questions.ask(samples, names)]);
    const failures = new Map(newest as [string, string][]);
    const items = page.map((row) => {
      const own = (seen as Value[][]).filter(([fingerprint]) => fingerprint === row[0]);
      return causeFromRows(row, own, failures.get(row[0] as string) ?? null);
    });
    return { items, next: found.length > query.limit ? causeCursor(items.at(-1) as Cause) : null };
  };
}

/** The lock of the one transaction that folds or recounts. */
const lockOf = (s: string): string => `(pg_catalog.hashtext('redrive fold'), pg_catalog.hashtext('${s}'))`;

/** The steps of folding a table, with their statements; a row that another transaction writes stays until later. */
function foldStatements(s: string, table: TickTable) {
  const { name, time } = table;
  return table.folds.map((step) => {
    const { cut, isOpen, to } = step;
    const where = `${s}.${name} where ${foldedWhere(table, step)} and ${time}`;
    const old = `old as (delete from ${s}.${name} where ctid = any(array(
      select ctid from ${where} < $1 order by ${time} limit $2 for update skip locked)) returning *)`;
    const merged =
      to &&
      `, merged as (insert into ${s}.${name} (${tickColumns(table)}) ${foldedRows(table, to, "old")} ${addCounts(table)})`;
    const summed = `, summed as (insert into ${s}.cause (${CAUSE_COLUMNS.join(", ")}) ${summedCauses("old")} ${ADD_CAUSE})`;
    const text = `with ${old}${merged ?? ""}${isOpen && table === CAUSE_TICKS ? summed : ""} select count(*) from old`;
    return { cut, look: `exists (select from ${where} < ${cutText(cut)})`, text };
  });
}

/** The same instants as `foldingAt`, for the look. */
function cutText(cut: keyof typeof FOLD_CUTS): string {
  const [ms, size] = FOLD_CUTS[cut];
  return `(select ${NOW} - ${ms} - (${NOW} - ${ms}) % ${size})`;
}

function folder({ db, s }: Context): Store["fold"] {
  const folds = TICK_TABLES.flatMap((table) => foldStatements(s, table));
  // One look, which mostly finds nothing: an idle worker sends no more.
  const look = {
    name: "fold_look",
    text: `select ${NOW}, array[${folds.map((each) => each.look).join(", ")}]::int[], (select count(*) from ${s}.cause) > ${CAUSES_MOST}`,
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

/** Counts rare idle causes together, where there are too many; true if there are still too many. */
function rareFolder(s: string): (ask: Ask, idleBefore: number, limit: number) => Promise<boolean> {
  const dialect = postgresDialect(s);
  const count = { text: causeCount(dialect) };
  const rare = { text: rareCauses(dialect) };
  const sums = CAUSE_COUNTS.map((each) => `sum(${each})`).join(", ");
  const move = {
    text: `with gone as (delete from ${s}.cause where fingerprint = any($1::text[]) returning *),
      old as (delete from ${s}.cause_tick where fingerprint = any($1::text[]) and holder = '' returning *),
      summed as (insert into ${s}.cause (${CAUSE_COLUMNS.join(", ")})
        select '${OTHER_CAUSES}', type, '', ${sums}, min(first_at), max(last_at) from gone group by type ${ADD_CAUSE})
      insert into ${s}.cause_tick (${tickColumns(CAUSE_TICKS)})
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
