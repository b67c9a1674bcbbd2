// Counts by cause and by type, in memory.
import {
  CAUSE_COUNTS,
  CAUSES_MOST,
  type CauseCounts,
  DAY,
  FLOW_COUNTS,
  type FlowCounts,
  type Folding,
  foldingAt,
  HOUR,
  minuteOf,
  OTHER_CAUSES,
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
import type { Verbs } from "../verbs.ts";
import { addRunTick } from "./outcomes.ts";
import type { DeathRow, Row, Tables } from "./tables.ts";

/** Counts of a minute, or of the span that it became. */
interface Ticked {
  readonly minute: number;
  /** Empty once it is folded. */
  readonly holder: string;
}
/** What a holder has counted of a cause in a minute. */
export type TickRow = Ticked & CausePlace & Writable<CauseCounts>;
/** What a holder has counted of a type in a minute. */
export type FlowRow = Ticked & { readonly type: string } & Writable<FlowCounts>;
/** The folded counts of a cause. */
export interface CauseRow extends CausePlace, Writable<CauseCounts> {
  firstAt: number | null;
  lastAt: number | null;
}
type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** The verbs about counts. */
export function causeVerbs(tables: Tables): Pick<Verbs, "addFlow" | "causes" | "trend" | "fold" | "recount"> {
  return {
    addFlow({ holder, counts }) {
      const minute = minuteOf(tables.clock());
      for (const each of counts) addFlow(tables, { ...each, minute, holder });
    },
    causes: (query) => list(tables, query),
    trend: (query) => trend(tables, query),
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
  const minute = minuteOf(now);
  for (const change of changes.all()) addTick(tables, { ...change, minute, holder });
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
  const name = JSON.stringify([placeName(row), row.minute, row.holder]);
  const known = ticks.get(name);
  if (known) for (const count of CAUSE_COUNTS) known[count] += row[count];
  else ticks.set(name, { ...row });
}

function addFlow({ flow }: Tables, row: FlowRow): void {
  const name = JSON.stringify([row.minute, row.type, row.holder]);
  const known = flow.get(name);
  if (known) for (const count of FLOW_COUNTS) known[count] += row[count];
  else flow.set(name, { ...row });
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

function sumOf({ minute, holder: _holder, ...row }: TickRow): CauseRow {
  const at = row.failures > 0 ? minute : null;
  return { ...row, firstAt: at, lastAt: at };
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
    row.minute >= from - (from % stepMs) &&
    row.minute < until;
  const steps = groupBy(rows.filter(isAsked), ({ minute }) => minute - (minute % stepMs));
  return [...steps]
    .sort(([a], [b]) => a - b)
    .map(([at, some]) => {
      const sum = (name: string): number =>
        some.reduce((total, row) => total + ((row as unknown as Record<string, number>)[name] ?? 0), 0);
      return { at, counts: Object.fromEntries(names.map((name) => [name, sum(name)])) };
    });
}

/** One step of folding; true if there may be more. */
function fold(tables: Tables, limit: number): boolean {
  const by = foldingAt(tables.clock());
  const take = <T extends Ticked>(rows: Map<string, T>, is: (row: T) => boolean): T[] => {
    const found = [...rows].filter(([, row]) => is(row)).sort(([, a], [, b]) => a.minute - b.minute);
    for (const [name] of found.slice(0, limit)) rows.delete(name);
    return found.slice(0, limit).map(([, row]) => row);
  };
  const spans = [
    [null, (row: Ticked) => row.holder !== "" && row.minute < by.closedBefore],
    [HOUR, (row: Ticked) => row.holder === "" && row.minute % HOUR !== 0 && row.minute < by.hoursBefore],
    [DAY, (row: Ticked) => row.holder === "" && row.minute % DAY !== 0 && row.minute < by.daysBefore],
  ] as const;
  let taken = 0;
  for (const [size, is] of spans) {
    const to = ({ minute }: Ticked): number => minute - (size === null ? 0 : minute % size);
    const ticks = take(tables.ticks, (row) => is(row) && (size !== DAY || row.minute % HOUR === 0));
    for (const row of ticks) addTick(tables, { ...row, minute: to(row), holder: "" });
    if (size === null) for (const row of ticks) addCause(tables, sumOf(row));
    const flow = take(tables.flow, (row) => is(row) && (size !== DAY || row.minute % HOUR === 0));
    for (const row of flow) addFlow(tables, { ...row, minute: to(row), holder: "" });
    taken = Math.max(taken, ticks.length, flow.length);
  }
  const isOld = ({ minute, holder }: Ticked): boolean =>
    holder === "" && minute % DAY === 0 && minute < by.forgetBefore;
  taken = Math.max(taken, take(tables.ticks, isOld).length, take(tables.flow, isOld).length);
  foldRuns(tables, by);
  return foldRare(tables, by.idleBefore, limit) || taken === limit;
}

/** Folds the ticks of redrive runs into one for each hour, once they are six hours old. */
function foldRuns({ redriveTicks }: Tables, { hoursBefore, forgetBefore }: Folding): void {
  for (const [name, row] of redriveTicks) {
    const isFolded = row.holder === "";
    if (row.at >= (isFolded ? forgetBefore : hoursBefore)) continue;
    redriveTicks.delete(name);
    if (!isFolded) addRunTick(redriveTicks, { ...row, at: row.at - (row.at % HOUR), holder: "" });
  }
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
