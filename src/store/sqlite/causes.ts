// Counts by cause and by type on SQLite.
import {
  CAUSE_COUNTS,
  CAUSES_MOST,
  FLOW_COUNTS,
  type Folding,
  foldingAt,
  minuteOf,
  OTHER_CAUSES,
} from "../../core/flow.ts";
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
import {
  type Cause,
  type CauseChanges,
  causeCursor,
  type CauseQuery,
  namesOfCause,
  type RecountAnswer,
  type RecountRequest,
  type TrendQuery,
} from "../causes.ts";
import type { Value } from "../columns.ts";
import { SQLITE } from "./dialect.ts";
import { addRedriveSums, foldedTicks, REDRIVE_FOLD, REDRIVE_FORGET, TICK_COLUMNS } from "../redrive-queries.ts";
import { failureFromText } from "../rows.ts";
import type { Page } from "../store.ts";
import type { Verbs } from "../verbs.ts";
import type { SqliteDatabase } from "./driver.ts";

const marks = (count: number): string => Array(count).fill("?").join(", ");

const insertText = (table: TickTable): string => {
  const columns = tickColumns(table);
  return `insert into ${table.name} (${columns.join(", ")}) values (${marks(columns.length)}) ${addCounts(table)}`;
};

/** Writes what one write has changed of causes. */
export type Ticker = (changes: CauseChanges, holder: string, now: number) => void;

/** The counts of causes, for the verbs that change dead letters. */
export function ticker(db: SqliteDatabase): Ticker {
  const insert = db.prepare(insertText(CAUSE_TICKS));
  return (changes, holder, now) => {
    for (const { fingerprint, type, release, ...counts } of changes.all())
      insert.run(fingerprint, type, release, minuteOf(now), holder, ...CAUSE_COUNTS.map((count) => counts[count]));
  };
}

/** Adds the live letters of jobs that are about to be deleted. */
export function removals(db: SqliteDatabase): (seqs: readonly number[], changes: CauseChanges) => void {
  const live = db.prepare(
    `select d.fingerprint, d.type, coalesce(d.release, '') from json_each(?) as gone
     cross join dead_letter d on d.job_seq = gone.value and d.redriven_at is null`,
  );
  return (seqs, changes) => {
    if (seqs.length === 0) return;
    const rows = live.all(JSON.stringify(seqs)) as [string, string, string][];
    for (const [fingerprint, type, release] of rows) changes.add({ fingerprint, type, release }, { removed: 1 });
  };
}

/** The verbs about counts. */
export function causeVerbs(
  db: SqliteDatabase,
  clock: () => number,
): Pick<Verbs, "addFlow" | "causes" | "trend" | "fold" | "recount"> {
  const add = db.prepare(insertText(FLOW_TICKS));
  return {
    addFlow({ holder, counts }) {
      const minute = minuteOf(clock());
      for (const each of counts) add.run(each.type, minute, holder, ...FLOW_COUNTS.map((count) => each[count]));
    },
    causes: lister(db),
    trend: (query) => trend(db, query),
    fold: folder(db, clock),
    recount: recounter(db),
  };
}

function lister(db: SqliteDatabase): (query: CauseQuery) => Page<Cause> {
  const sightings = db.prepare(sightingsText(SQLITE, "fingerprint = ?"));
  const newest = db.prepare("select failure from dead_letter where fingerprint = ? order by seq desc limit 1");
  const whole = (row: readonly Value[]): Cause => {
    const [fingerprint, live, deaths, failures, firstAt, lastAt] = row as [
      string,
      number,
      number,
      number,
      number | null,
      number | null,
    ];
    const seen = sightings.all(fingerprint, fingerprint) as [string, string, string, number | null, number][];
    const names = namesOfCause(
      seen.map(([, type, release, lastAt, failed]) => ({ fingerprint, type, release, lastAt, failures: failed })),
    );
    const [letter] = newest.all(fingerprint);
    const failure = letter ? (failureFromText(letter[0] as string, null) as Failure) : null;
    const sample = failure && { name: failure.name, message: failure.message };
    return { fingerprint, live, deaths, failures, firstAt, lastAt, ...names, sample };
  };
  return (query) => {
    const { text, values } = causeList(SQLITE, query);
    const found = db.prepare(text).all(...values);
    const items = found.slice(0, query.limit).map(whole);
    return { items, next: found.length > query.limit ? causeCursor(items.at(-1) as Cause) : null };
  };
}

function trend(db: SqliteDatabase, query: TrendQuery): ReturnType<Verbs["trend"]> {
  const { text, values } = trendList(SQLITE, query);
  const names: readonly string[] = query.fingerprint === undefined ? FLOW_COUNTS : CAUSE_COUNTS;
  return db
    .prepare(text)
    .all(...values)
    .map(([at, ...counts]) => ({
      at: at as number,
      counts: Object.fromEntries(names.map((name, index) => [name, counts[index] as number])),
    }));
}

const CHOSEN = "rowid in (select value from json_each(?))";

/** Folds rows of one table, at most so many of each kind; answers how many it took at most. */
function tableFolder(db: SqliteDatabase, table: TickTable): (by: Folding, limit: number) => number {
  const { name } = table;
  const into = `insert into ${name} (${tickColumns(table).join(", ")})`;
  const chosen = `${name} where ${CHOSEN}`;
  const forget = db.prepare(`delete from ${chosen}`);
  const summed = `insert into cause (${CAUSE_COLUMNS.join(", ")}) ${summedCauses(chosen)} ${ADD_CAUSE}`;
  const sum = table === CAUSE_TICKS ? db.prepare(summed) : null;
  const find = (where: string): string =>
    `select rowid from ${name} where ${where} and minute < ? order by minute limit ?`;
  const folds = FOLDS.map(({ cut, size, where }) => ({
    cut,
    find: db.prepare(find(where)),
    merge: db.prepare(`${into} ${foldedRows(table, size, chosen)} ${addCounts(table)}`),
    isFirst: size === null,
  }));
  const old = db.prepare(find(FORGET.where));
  return (by, limit) => {
    let most = 0;
    for (const { cut, find: rows, merge, isFirst } of folds) {
      const found = rows.all(by[cut], limit).map(([row]) => row);
      most = Math.max(most, found.length);
      if (found.length === 0) continue;
      const list = JSON.stringify(found);
      merge.run(list);
      if (isFirst) sum?.run(list);
      forget.run(list);
    }
    const found = old.all(by[FORGET.cut], limit).map(([row]) => row);
    if (found.length > 0) forget.run(JSON.stringify(found));
    return Math.max(most, found.length);
  };
}

/** Folds the ticks of redrive runs; answers how many it took at most. */
function runFolder(db: SqliteDatabase): (by: Folding, limit: number) => number {
  const find = (where: string): string =>
    `select rowid from redrive_tick where ${where} and at < ? order by at limit ?`;
  const [young, old] = [REDRIVE_FOLD, REDRIVE_FORGET].map(({ where }) => db.prepare(find(where)));
  const chosen = `redrive_tick where ${CHOSEN}`;
  const merge = db.prepare(
    `insert into redrive_tick (${TICK_COLUMNS.join(", ")}) ${foldedTicks(chosen)} ${addRedriveSums()}`,
  );
  const forget = db.prepare(`delete from ${chosen}`);
  return (by, limit) => {
    const folded = young?.all(by[REDRIVE_FOLD.cut], limit).map(([row]) => row) ?? [];
    if (folded.length > 0) merge.run(JSON.stringify(folded));
    const gone = [...folded, ...(old?.all(by[REDRIVE_FORGET.cut], limit).map(([row]) => row) ?? [])];
    if (gone.length > 0) forget.run(JSON.stringify(gone));
    return folded.length;
  };
}

function folder(db: SqliteDatabase, clock: () => number): Verbs["fold"] {
  const tables = [tableFolder(db, CAUSE_TICKS), tableFolder(db, FLOW_TICKS), runFolder(db)];
  const foldRare = rareFolder(db);
  return ({ limit }) => {
    const by = foldingAt(clock());
    const taken = Math.max(...tables.map((fold) => fold(by, limit)));
    return { more: foldRare(by.idleBefore, limit) || taken === limit };
  };
}

/** Counts rare idle causes together, where there are too many; true if there are still too many. */
function rareFolder(db: SqliteDatabase): (idleBefore: number, limit: number) => boolean {
  const rows = db.prepare("select count(*) from cause");
  const count = db.prepare("select count(distinct fingerprint) from cause");
  const rare = db.prepare(
    `select fingerprint from cause where fingerprint in (${idleCauses(SQLITE)}) and fingerprint <> '${OTHER_CAUSES}'
     group by fingerprint having coalesce(max(last_at), 0) < ? order by sum(failures), coalesce(max(last_at), 0), fingerprint limit ?`,
  );
  const named = "where fingerprint in (select value from json_each(?))";
  const counts = CAUSE_TICKS.counts.join(", ");
  const sums = db.prepare(
    `insert into cause (${CAUSE_COLUMNS.join(", ")}) select '${OTHER_CAUSES}', type, '', ${counts}, first_at, last_at
     from cause ${named} ${ADD_CAUSE}`,
  );
  const ticks = db.prepare(
    `insert into cause_tick (${tickColumns(CAUSE_TICKS).join(", ")}) select '${OTHER_CAUSES}', type, '', minute, holder, ${counts}
     from cause_tick ${named} ${addCounts(CAUSE_TICKS)}`,
  );
  const forget = ["cause", "cause_tick"].map((table) => db.prepare(`delete from ${table} ${named}`));
  return (idleBefore, limit) => {
    if ((rows.all()[0]?.[0] as number) <= CAUSES_MOST) return false;
    const surplus = (count.all()[0]?.[0] as number) - CAUSES_MOST;
    if (surplus <= 0) return false;
    const names = JSON.stringify(rare.all(idleBefore, Math.min(surplus, limit)).map(([name]) => name));
    for (const statement of [sums, ticks, ...forget]) statement.run(names);
    return surplus > limit && names.length > 2;
  };
}

function recounter(db: SqliteDatabase): (request: RecountRequest) => RecountAnswer {
  const next = db.prepare(
    `select min(fingerprint) from (
       select min(fingerprint) as fingerprint from dead_letter where redriven_at is null and fingerprint > ?
       union all select min(fingerprint) from cause where fingerprint > ?)`,
  );
  const compare = db.prepare(
    `select (select count(*) from dead_letter where redriven_at is null and fingerprint = ?) - ${countedLive(SQLITE, "fingerprint = ?")}`,
  );
  // The newest letter, whether live or not; where there is none, a row of the sums.
  const place = db.prepare(
    `select * from (select type, coalesce(release, '') as release, died_at - died_at % 60000 as at from dead_letter
       where fingerprint = ? order by seq desc limit 1)
     union all select * from (select type, release, null from cause where fingerprint = ? order by type, release limit 1) limit 1`,
  );
  const add = db.prepare(
    `insert into cause (${CAUSE_COLUMNS.join(", ")}) values (${marks(CAUSE_COLUMNS.length)}) ${ADD_CAUSE}`,
  );
  const mend = (fingerprint: string): number => {
    const missing = compare.all(fingerprint, fingerprint, fingerprint)[0]?.[0] as number;
    if (missing === 0) return 0;
    const [type = "", release = "", at = null] = place.all(fingerprint, fingerprint)[0] ?? [];
    const seen = missing > 0 ? at : null;
    add.run(fingerprint, type, release, 0, Math.max(0, missing), 0, Math.max(0, -missing), seen, seen);
    return Math.abs(missing);
  };
  return ({ after, limit }) => {
    let [last, mended] = [after, 0];
    for (let seen = 0; seen < limit; seen++) {
      const name = next.all(last, last)[0]?.[0] as string | null;
      if (name === null) return { mended, next: null };
      last = name;
      mended += mend(name);
    }
    return { mended, next: next.all(last, last)[0]?.[0] === null ? null : last };
  };
}
