// Counts by cause and by type on SQLite, and the figures for monitors.
import {
  CAUSE_COUNTS,
  CAUSES_MOST,
  FLOW_COUNTS,
  type Folding,
  foldingAt,
  minuteOf,
  OTHER_CAUSES,
} from "../../core/flow.ts";
import {
  ADD_CAUSE,
  CAUSE_COLUMNS,
  causeCount,
  causeFromRows,
  causeList,
  causesByNote,
  causesFrom,
  countedLive,
  lettersByType,
  oldestLetter,
  rareCauses,
  shareOf,
  sightingsText,
  summedCauses,
  trendList,
  trendPoints,
} from "../cause-queries.ts";
import {
  type Cause,
  type CauseChanges,
  causeCursor,
  type CauseQuery,
  type RecountAnswer,
  type RecountRequest,
} from "../causes.ts";
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
import type { Value } from "../columns.ts";
import type { DueCount, Page } from "../store.ts";
import type { Verbs } from "../verbs.ts";
import { SQLITE } from "./dialect.ts";
import type { SqliteDatabase } from "./driver.ts";
import type { SqliteLaneNumbers } from "./lane-numbers.ts";

const marks = (count: number): string => Array(count).fill("?").join(", ");

/** The statement that adds a row of counts. */
export const addTick = (table: TickTable): string =>
  `insert into ${table.name} (${tickColumns(table)}) values (${marks(table.of.length + 2 + table.counts.length)}) ${addCounts(table)}`;

/** Writes what one write has changed of causes. */
export type Ticker = (changes: CauseChanges, holder: string, now: number) => void;

/** The counts of causes, for the verbs that change dead letters. */
export function ticker(db: SqliteDatabase): Ticker {
  const insert = db.prepare(addTick(CAUSE_TICKS));
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
  const add = db.prepare(addTick(FLOW_TICKS));
  return {
    addFlow({ holder, counts }) {
      const minute = minuteOf(clock());
      for (const each of counts) add.run(each.type, minute, holder, ...FLOW_COUNTS.map((count) => each[count]));
    },
    causes: lister(db),
    trend(query) {
      const { text, values } = trendList(SQLITE, query);
      return trendPoints(query, db.prepare(text).all(...values));
    },
    fold: folder(db, clock),
    recount: recounter(db),
  };
}

function lister(db: SqliteDatabase): (query: CauseQuery) => Page<Cause> {
  const sightings = db.prepare(sightingsText(SQLITE, "fingerprint = ?"));
  const newest = db.prepare("select failure from dead_letter where fingerprint = ? order by seq desc limit 1");
  const whole = (row: readonly Value[]): Cause => {
    const [fingerprint = null] = row;
    const [letter] = newest.all(fingerprint);
    return causeFromRows(row, sightings.all(fingerprint, fingerprint), (letter?.[0] ?? null) as string | null);
  };
  return (query) => {
    const { text, values } = causeList(SQLITE, query);
    const found = db.prepare(text).all(...values);
    const items = found.slice(0, query.limit).map(whole);
    return { items, next: found.length > query.limit ? causeCursor(items.at(-1) as Cause) : null };
  };
}

/** Folds rows of one table, at most so many by each step; answers how many it took at most. */
function tableFolder(db: SqliteDatabase, table: TickTable): (by: Folding, limit: number) => number {
  const { name, time } = table;
  const chosen = `${name} where rowid in (select value from json_each(?))`;
  const forget = db.prepare(`delete from ${chosen}`);
  const folds = table.folds.map((step) => {
    const { cut, isOpen, to } = step;
    const into =
      to && `insert into ${name} (${tickColumns(table)}) ${foldedRows(table, to, chosen)} ${addCounts(table)}`;
    const summed = `insert into cause (${CAUSE_COLUMNS.join(", ")}) ${summedCauses(chosen)} ${ADD_CAUSE}`;
    return {
      cut,
      find: db.prepare(
        `select rowid from ${name} where ${foldedWhere(table, step)} and ${time} < ? order by ${time} limit ?`,
      ),
      writes: [...(into ? [into] : []), ...(isOpen && table === CAUSE_TICKS ? [summed] : [])].map((text) =>
        db.prepare(text),
      ),
    };
  });
  return (by, limit) => {
    let most = 0;
    for (const { cut, find, writes } of folds) {
      const found = find.all(by[cut], limit).map(([row]) => row);
      most = Math.max(most, found.length);
      if (found.length === 0) continue;
      for (const statement of [...writes, forget]) statement.run(JSON.stringify(found));
    }
    return most;
  };
}

function folder(db: SqliteDatabase, clock: () => number): Verbs["fold"] {
  const tables = TICK_TABLES.map((table) => tableFolder(db, table));
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
  const count = db.prepare(causeCount(SQLITE));
  const rare = db.prepare(rareCauses(SQLITE));
  const named = "where fingerprint in (select value from json_each(?))";
  const counts = CAUSE_TICKS.counts.join(", ");
  const sums = db.prepare(
    `insert into cause (${CAUSE_COLUMNS.join(", ")}) select '${OTHER_CAUSES}', type, '', ${counts}, first_at, last_at
     from cause ${named} ${ADD_CAUSE}`,
  );
  const ticks = db.prepare(
    `insert into cause_tick (${tickColumns(CAUSE_TICKS)}) select '${OTHER_CAUSES}', type, '', minute, holder, ${counts}
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

/** Numbers of damaged rows can be larger than JavaScript reads; they are cut to this. */
const MOST = Number.MAX_SAFE_INTEGER;

/** The verb that answers what monitors ask. */
export function figuresVerb(
  db: SqliteDatabase,
  numbers: Pick<SqliteLaneNumbers, "belonging">,
  clock: () => number,
): Pick<Verbs, "figures"> {
  // The head of the next lane is one step down the index, however many jobs lie between.
  const head = db.prepare(
    `select max(min(lane, ${MOST}), -${MOST}), max(min(run_at, ${MOST}), 0) from job
     where state = 'queued' and lane > ? order by lane, run_at limit 1`,
  );
  const count = db.prepare(
    `select count(*) from (select 1 from job where state = 'queued' and lane = ? and run_at <= ? limit ?)`,
  );
  const byType = db.prepare(lettersByType(SQLITE));
  const byNote = db.prepare(causesByNote(SQLITE));
  const oldest = db.prepare(oldestLetter(SQLITE));
  return {
    figures({ lanes, jobs, letters, notes }) {
      const now = clock();
      const heads: [lane: number, runAt: number][] = [];
      for (let [last, seen] = [-1, 0]; seen < lanes; seen += 1) {
        const [found] = head.all(last) as [number, number][];
        if (!found) break;
        [last] = found;
        if (found[1] <= now) heads.push(found);
      }
      const share = shareOf(jobs, heads.length);
      const due = heads.flatMap(([lane, headRunAt]): DueCount[] => {
        const belonging = numbers.belonging(lane);
        if (!belonging) return [];
        const { type, queue, service, tenant } = belonging;
        return [{ type, queue, service, tenant, headRunAt, jobs: count.all(lane, now, share)[0]?.[0] as number }];
      });
      return {
        due,
        letters: (byType.all() as [string, number][]).map(([type, live]) => ({ type, count: live })),
        oldestLetterAt: (oldest.all(letters)[0]?.[0] as number | null | undefined) ?? null,
        ...causesFrom(byNote.all(notes) as [string | null, number][]),
        now,
      };
    },
  };
}
