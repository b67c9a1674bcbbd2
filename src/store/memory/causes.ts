// Counts by cause and by type, in memory.
import {
  CAUSE_COUNTS,
  CAUSES_MOST,
  type CauseCounts,
  FLOW_COUNTS,
  type FlowCounts,
  type Folding,
  foldingAt,
  type FoldStep,
  MINUTE_FOLDS,
  minuteOf,
  OTHER_CAUSES,
  REDRIVE_FOLDS,
} from "../../core/flow.ts";
import {
  type Cause,
  type CauseChanges,
  causeCursor,
  type CausePlace,
  type CauseQuery,
  namesOfCause,
  placeName,
  readCauseCursor,
  type TrendPoint,
  type TrendQuery,
} from "../causes.ts";
import { shareOf } from "../cause-queries.ts";
import type { FigureQuery, StoreFigures } from "../store.ts";
import type { Verbs } from "../verbs.ts";
import { addCounts, addRunTick } from "./outcomes.ts";
import type { DeathRow, Row, Tables, Ticked, Writable } from "./tables.ts";

/** What a holder has counted of a cause in a minute. */
export type TickRow = Ticked & CausePlace & Writable<CauseCounts>;
/** What a holder has counted of a type in a minute. */
export type FlowRow = Ticked & { readonly type: string } & Writable<FlowCounts>;
/** The folded counts of a cause. */
export interface CauseRow extends CausePlace, Writable<CauseCounts> {
  firstAt: number | null;
  lastAt: number | null;
}

/** The verbs about counts. */
export function causeVerbs(
  tables: Tables,
): Pick<Verbs, "addFlow" | "causes" | "trend" | "figures" | "fold" | "recount"> {
  return {
    addFlow({ holder, counts }) {
      const at = minuteOf(tables.clock());
      for (const each of counts) addFlow(tables, { ...each, at, holder });
    },
    causes: (query) => list(tables, query),
    trend: (query) => trend(tables, query),
    figures: (query) => figures(tables, query),
    fold: ({ limit }) => ({ more: fold(tables, limit) }),
    recount({ after, limit }) {
      const names = [...new Set([...liveLetters(tables).keys(), ...[...tables.causes.values()].map(nameOf)])];
      const ahead = names.filter((name) => name > after).sort();
      const some = ahead.slice(0, limit);
      const mended = some.reduce((sum, fingerprint) => sum + mend(tables, fingerprint), 0);
      return { mended, next: ahead.length > limit ? (some.at(-1) as string) : null };
    },
  };
}

/** Adds what one write has changed. */
export function tick(tables: Tables, changes: CauseChanges, holder: string, now: number): void {
  const at = minuteOf(now);
  for (const change of changes.all()) addTick(tables, { ...change, at, holder });
}

/** Where a death is counted. */
export function placeOf(tables: Tables, { jobId, failure, release }: DeathRow): CausePlace {
  return {
    fingerprint: failure.fingerprint,
    type: (tables.jobs.get(jobId) as Row).type,
    release: release ?? "",
  };
}

/** `Map.groupBy`, which the oldest Node does not have. */
function groupBy<T, K>(rows: readonly T[], keyOf: (row: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const row of rows) {
    const group = groups.get(keyOf(row));
    if (group) group.push(row);
    else groups.set(keyOf(row), [row]);
  }
  return groups;
}

function nameOf({ fingerprint }: CausePlace): string {
  return fingerprint;
}

function addTick({ ticks }: Tables, row: TickRow): void {
  addCounts(ticks, [placeName(row), row.at, row.holder], row, CAUSE_COUNTS);
}

function addFlow({ flow }: Tables, row: FlowRow): void {
  addCounts(flow, [row.at, row.type, row.holder], row, FLOW_COUNTS);
}

function addCause({ causes }: Tables, row: CauseRow): void {
  const known = causes.get(placeName(row));
  if (!known) return void causes.set(placeName(row), { ...row });
  for (const count of CAUSE_COUNTS) known[count] += row[count];
  known.firstAt = least([known.firstAt, row.firstAt]);
  known.lastAt = most([known.lastAt, row.lastAt]);
}

function least(times: readonly (number | null)[]): number | null {
  const known = times.filter((at) => at !== null);
  return known.length === 0 ? null : Math.min(...known);
}

function most(times: readonly (number | null)[]): number | null {
  const known = times.filter((at) => at !== null);
  return known.length === 0 ? null : Math.max(...known);
}

function sumOf({ at, holder: _holder, ...row }: TickRow): CauseRow {
  const seen = row.failures > 0 ? at : null;
  return { ...row, firstAt: seen, lastAt: seen };
}

/** The sums of causes and what is not in them yet. */
function counted({ causes, ticks }: Tables): CauseRow[] {
  const open = [...ticks.values()].filter(({ holder }) => holder !== "");
  return [...causes.values(), ...open.map(sumOf)];
}

function liveOf(rows: readonly CauseCounts[]): number {
  return rows.reduce((sum, { deaths, redriven, removed }) => sum + deaths - redriven - removed, 0);
}

function list(tables: Tables, { limit, cursor, fingerprint, idle = false, since }: CauseQuery) {
  const after = readCauseCursor(cursor);
  const causes = groupBy(counted(tables), nameOf);
  const found = [...causes]
    .map(([name, rows]) => causeOf(tables, name, rows))
    .filter((cause) => (fingerprint ?? cause.fingerprint) === cause.fingerprint && (idle || cause.live > 0))
    .filter(({ lastAt }) => since === undefined || (lastAt !== null && lastAt >= minuteOf(since)))
    .sort(mostFirst)
    .filter((cause) => after === null || mostFirst(after, cause) < 0);
  const items = found.slice(0, limit);
  return { items, next: found.length > limit ? causeCursor(items.at(-1) as Cause) : null };
}

function mostFirst(a: Pick<Cause, "live" | "fingerprint">, b: Pick<Cause, "live" | "fingerprint">): number {
  return b.live - a.live || (a.fingerprint === b.fingerprint ? 0 : a.fingerprint < b.fingerprint ? -1 : 1);
}

function causeOf({ deaths }: Tables, fingerprint: string, rows: readonly CauseRow[]): Cause {
  const newest = deaths.findLast(({ failure }) => failure.fingerprint === fingerprint)?.failure;
  const sum = (count: keyof CauseCounts): number => rows.reduce((total, row) => total + row[count], 0);
  return {
    fingerprint,
    live: Math.max(0, liveOf(rows)),
    deaths: sum("deaths"),
    failures: sum("failures"),
    firstAt: least(rows.map(({ firstAt }) => firstAt)),
    lastAt: most(rows.map(({ lastAt }) => lastAt)),
    ...namesOfCause(rows),
    sample: newest ? { name: newest.name, message: newest.message } : null,
  };
}

function trend({ ticks, flow }: Tables, query: TrendQuery): TrendPoint[] {
  const { fingerprint, type, from, until, stepMs } = query;
  const names: readonly string[] = fingerprint === undefined ? FLOW_COUNTS : CAUSE_COUNTS;
  const rows: readonly (TickRow | FlowRow)[] = fingerprint === undefined ? [...flow.values()] : [...ticks.values()];
  const isAsked = (row: TickRow | FlowRow): boolean =>
    (fingerprint === undefined || ("fingerprint" in row && row.fingerprint === fingerprint)) &&
    (type ?? row.type) === row.type &&
    row.at >= from - (from % stepMs) &&
    row.at < until;
  const steps = groupBy(rows.filter(isAsked), ({ at }) => at - (at % stepMs));
  return [...steps]
    .sort(([a], [b]) => a - b)
    .map(([at, some]) => {
      const sum = (name: string): number =>
        some.reduce((total, row) => total + ((row as unknown as Record<string, number>)[name] ?? 0), 0);
      return { at, counts: Object.fromEntries(names.map((name) => [name, sum(name)])) };
    });
}

function figures(tables: Tables, { lanes, jobs, letters, notes }: FigureQuery): StoreFigures {
  const now = tables.clock();
  const some = [...tables.waiting].sort(([a], [b]) => a - b).slice(0, lanes);
  const dueOf = (rows: readonly Row[]): readonly Row[] => rows.filter(({ runAt }) => runAt <= now);
  const due = some.filter(([, rows]) => dueOf(rows).length > 0);
  const share = shareOf(jobs, due.length);
  const live = [...groupBy(counted(tables), nameOf)].filter(([, rows]) => liveOf(rows) > 0).map(([name]) => name);
  const seqOf = ({ jobId }: DeathRow): number => (tables.jobs.get(jobId) as Row).seq;
  const died = tables.deaths.filter(({ redrivenAt }) => redrivenAt === null).sort((a, b) => seqOf(a) - seqOf(b));
  const noted = new Set([...tables.cells.values()].filter(({ kind }) => kind === notes).map(({ name }) => name));
  return {
    due: due.map(([, rows]) => {
      const { type, queue, service, tenant, runAt } = rows[0] as Row;
      return { type, queue, service, tenant, headRunAt: runAt, jobs: Math.min(share, dueOf(rows).length) };
    }),
    letters: [...groupBy(counted(tables), ({ type }) => type)]
      .map(([type, rows]) => ({ type, count: liveOf(rows) }))
      .filter(({ count }) => count > 0)
      .sort((a, b) => (a.type < b.type ? -1 : 1)),
    oldestLetterAt: least(died.slice(0, letters).map(({ diedAt }) => diedAt)),
    causes: live.length,
    noted: live.filter((name) => noted.has(name)).sort(),
    now,
  };
}

/** One step of folding; true if there may be more. */
function fold(tables: Tables, limit: number): boolean {
  const by = foldingAt(tables.clock());
  const taken = Math.max(
    foldTable(tables.ticks, MINUTE_FOLDS, by, limit, (row, isOpen) => {
      addTick(tables, row);
      if (isOpen) addCause(tables, sumOf(row));
    }),
    foldTable(tables.flow, MINUTE_FOLDS, by, limit, (row) => addFlow(tables, row)),
    foldTable(tables.redriveTicks, REDRIVE_FOLDS, by, limit, (row) => addRunTick(tables, row)),
  );
  return foldRare(tables, by.idleBefore, limit) || taken === limit;
}

/** Folds rows of one table, at most so many by each step; answers how many it took at most. */
function foldTable<T extends Ticked>(
  rows: Map<string, T>,
  steps: readonly FoldStep[],
  by: Folding,
  limit: number,
  add: (row: T, isOpen: boolean) => void,
): number {
  let most = 0;
  for (const { cut, isOpen, from = 1, to } of steps) {
    const isTaken = ({ at, holder }: Ticked): boolean =>
      at < by[cut] && (isOpen ? holder !== "" : holder === "" && at % from === 0 && (to === null || at % to !== 0));
    const found = [...rows].filter(([, row]) => isTaken(row)).sort(([, a], [, b]) => a.at - b.at);
    for (const [name, row] of found.slice(0, limit)) {
      rows.delete(name);
      if (to !== null) add({ ...row, at: row.at - (row.at % to), holder: "" }, isOpen);
    }
    most = Math.max(most, Math.min(found.length, limit));
  }
  return most;
}

/** Counts rare idle causes together, where there are too many; true if there are still too many. */
function foldRare(tables: Tables, idleBefore: number, limit: number): boolean {
  const all = groupBy([...tables.causes.values()], nameOf);
  const surplus = all.size - CAUSES_MOST;
  if (surplus <= 0) return false;
  const open = new Set([...tables.ticks.values()].filter(({ holder }) => holder !== "").map(nameOf));
  const failures = (rows: readonly CauseRow[]): number => rows.reduce((sum, row) => sum + row.failures, 0);
  const seen = (rows: readonly CauseRow[]): number => most(rows.map(({ lastAt }) => lastAt)) ?? 0;
  const rare = [...all]
    .filter(([name, rows]) => name !== OTHER_CAUSES && !open.has(name) && liveOf(rows) <= 0 && seen(rows) < idleBefore)
    .sort(([a, m], [b, n]) => failures(m) - failures(n) || seen(m) - seen(n) || (a < b ? -1 : 1))
    .slice(0, Math.min(surplus, limit));
  const names = new Set(rare.map(([name]) => name));
  const other = { fingerprint: OTHER_CAUSES, release: "" } as const;
  for (const [name, row] of [...tables.causes].filter(([, row]) => names.has(row.fingerprint))) {
    tables.causes.delete(name);
    addCause(tables, { ...row, ...other });
  }
  for (const [name, row] of [...tables.ticks].filter(([, row]) => names.has(row.fingerprint))) {
    tables.ticks.delete(name);
    addTick(tables, { ...row, ...other });
  }
  return rare.length === limit && surplus > limit;
}

function liveLetters(tables: Tables): Map<string, DeathRow[]> {
  return groupBy(
    tables.deaths.filter(({ redrivenAt }) => redrivenAt === null),
    ({ failure }) => failure.fingerprint,
  );
}

/** Makes the counts of a cause agree with its letters; answers by how many they differed. */
function mend(tables: Tables, fingerprint: string): number {
  const letters = liveLetters(tables).get(fingerprint) ?? [];
  const rows = counted(tables).filter((row) => row.fingerprint === fingerprint);
  const missing = letters.length - liveOf(rows);
  if (missing === 0) return 0;
  const [newest, first] = [letters.at(-1), rows[0]];
  const place = newest
    ? placeOf(tables, newest)
    : { fingerprint, type: first?.type ?? "", release: first?.release ?? "" };
  const at = newest ? minuteOf(newest.diedAt) : null;
  const none = { failures: 0, deaths: 0, redriven: 0, removed: 0, firstAt: null, lastAt: null };
  if (missing > 0) addCause(tables, { ...place, ...none, deaths: missing, firstAt: at, lastAt: at });
  else addCause(tables, { ...place, ...none, removed: -missing });
  return Math.abs(missing);
}
