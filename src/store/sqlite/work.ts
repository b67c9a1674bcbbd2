// Lanes and claim on SQLite. One index, (lane, run_at, seq) of waiting jobs, serves both, so their cost follows what
// they return, not how many jobs wait, are parked, or are finished.
import type { Belonging } from "../../core/job.ts";
import { type ActiveLane, kindOfLane } from "../../core/lane.ts";
import type { ClaimRequest, SettleAnswer, Signs } from "../store.ts";
import type { Verbs } from "../verbs.ts";
import type { SqliteDatabase } from "./driver.ts";
import type { Value } from "../columns.ts";
import { roomOf } from "./groups.ts";
import type { SqliteLaneNumbers } from "./lane-numbers.ts";
import { type Quarantine, quarantine, unlessBroken } from "./quarantine.ts";
import { settler } from "./settle.ts";
import { CLAIM_COLUMNS, CLAIM_COUNT, CLAIM_REST, type ClaimWire, PLAIN, type SettleWire } from "./wire.ts";

/** Numbers of damaged rows can be larger than JavaScript reads; they are cut to this. */
const MOST = Number.MAX_SAFE_INTEGER;
/** Less than any number a lane can have, damaged ones included. */
const BELOW_ALL_LANES = -(2 ** 63);

/** The verbs that move jobs through their runs, in the form sent between threads. */
export interface WorkVerbs extends Pick<Verbs, "lanes"> {
  claim(request: ClaimRequest): ClaimWire;
  settle(request: SettleWire): SettleAnswer;
}

/** The verbs that move jobs through their runs. */
export function workVerbs(db: SqliteDatabase, lanes: SqliteLaneNumbers, clock: () => number): WorkVerbs {
  const progress = db.prepare("update worker set started_through = max(started_through, ?) where id = ?");
  const aside = quarantine(db, lanes, clock);
  return {
    lanes: activeLanes(db, lanes, clock, aside),
    claim: claimer(db, lanes, clock, aside),
    settle: settler(db, lanes, clock, (worker, through) => void progress.run(through, worker)),
  };
}

function activeLanes(
  db: SqliteDatabase,
  lanes: SqliteLaneNumbers,
  clock: () => number,
  aside: Quarantine,
): Verbs["lanes"] {
  // The head of the next lane is one step down the index, however many jobs lie between.
  const head = db.prepare(
    `select max(min(lane, ${MOST}), -${MOST}), max(min(run_at, ${MOST}), 0) from job
     where state = 'queued' and lane > ? order by lane, run_at limit 1`,
  );
  const room = roomOf(db, lanes);
  const signsNow = signsReader(db);
  return (after, limit) => {
    const now = clock();
    const signs = signsNow();
    const active: ActiveLane[] = [];
    let nextRunAt: number | null = null;
    let last = after ?? BELOW_ALL_LANES;
    for (let seen = 0; seen < limit; seen++) {
      const [found] = head.all(last) as [number, number][];
      if (!found) return { lanes: active, next: null, nextRunAt, now, signs };
      const [lane, headRunAt] = found;
      last = lane;
      const belonging = lanes.belonging(lane);
      if (!belonging) aside.strays();
      else {
        const left = room(lane);
        // The job that holds the place of its group goes before the head of its lane; a lane of a full group gives
        // nothing.
        if (left === 0) continue;
        const [runAt, may] = left === null || typeof left === "number" ? [headRunAt, left] : [left.runAt, 1];
        if (runAt > now) nextRunAt = Math.min(runAt, nextRunAt ?? runAt);
        else active.push({ lane, kind: kindOfLane(lane), headRunAt: runAt, ...belonging, room: may });
      }
    }
    return { lanes: active, next: head.all(last).length > 0 ? last : null, nextRunAt, now, signs };
  };
}

function signsReader(db: SqliteDatabase): () => Signs {
  // A row number may be reused, but the times at which workers started are practically never the same.
  const read = db.prepare(
    `select (select version from control), count(*), coalesce(sum(started_at), 0),
       min(case given_up when 1 then 0 else lease_end end),
       (select coalesce(sum(version), 0) from cell where name = '' and holder = '') from worker`,
  );
  return () => {
    const [control, workers, newest, lapseAt, cells] = read.all()[0] as [number, number, number, number | null, number];
    return { control, workers, newest, lapseAt, cells, isHeard: false };
  };
}

/** A row to be taken. */
interface Found {
  readonly row: Value[];
  readonly lane: number;
  /** The group in which it takes a place. */
  readonly group: number | null;
}

type Clock = () => number;

function claimer(db: SqliteDatabase, lanes: SqliteLaneNumbers, clock: Clock, aside: Quarantine): WorkVerbs["claim"] {
  const control = db.prepare("select version from control");
  const before = db.prepare("select 1 from job where state = 'queued' and lane < ? limit 1");
  const present = db.prepare(
    "update worker set started_through = max(started_through, ?) where id = ? and given_up = 0",
  );
  const due = dueJobs(db, lanes);
  const rest = db.prepare(`select ${CLAIM_REST} from job where seq = ?`);
  const taker = openTaker(db);
  return ({ worker, quotas, limit, nonce, control: version, ticket, startedThrough, unlessBefore }) => {
    const now = clock();
    if (present.run(startedThrough, worker) === 0) return { flat: [], belongings: [], now, refused: "worker" };
    if (control.all()[0]?.[0] !== version) return { flat: [], belongings: [], now, refused: "control" };
    if (unlessBefore !== undefined && before.all(unlessBefore).length > 0)
      return { flat: [], belongings: [], now, refused: null };
    const flat: (Value | Value[])[] = [];
    const belongings = new Map<number, Belonging>();
    const groups = new Set<number>();
    let found: Found[] = [];
    let taken = 0;
    const put = ({ row, lane }: Found): void => {
      for (let at = 1; at <= CLAIM_COUNT; at++) flat.push(row[at] as Value);
      flat.push(lane, row[CLAIM_COUNT + 1] === 1 ? null : (rest.all(row[0] as number)[0] as Value[]));
      taken += 1;
    };
    /** Takes what was found; if one row is damaged, which undoes the whole write, each separately. */
    const takeFound = (): void => {
      const all = found;
      found = [];
      groups.clear();
      const run = { nonce, worker, now };
      if (all.length > 1 && taker.all(all, run, ticket + taken)) return all.forEach(put);
      for (const each of all) {
        if (taker.one(each, run, ticket + taken)) put(each);
        else aside.row(each.row[0] as number);
      }
    };
    for (const { lane, limit: most } of quotas) {
      const belonging = lanes.belonging(lane);
      const group = lanes.groupOf(lane);
      // A lane that occurs again must not give jobs already found, nor a group its places twice.
      if (found.length > 0 && (belongings.has(lane) || (group !== null && groups.has(group)))) takeFound();
      const left = limit - taken - found.length;
      if (left <= 0) break;
      if (!belonging) {
        aside.strays();
        continue;
      }
      const rows = due(lane, now, Math.min(most, left));
      if (rows.length > 0) belongings.set(lane, belonging);
      if (rows.length > 0 && group !== null) groups.add(group);
      for (const row of rows) found.push({ row, lane, group });
    }
    takeFound();
    return { flat, belongings: [...belongings], now, refused: null };
  };
}

/** Reads the due jobs of a lane that may be taken, in order, at most so many. */
function dueJobs(db: SqliteDatabase, lanes: SqliteLaneNumbers): (lane: number, now: number, most: number) => Value[][] {
  // With a plain parameter as its limit SQLite compiles the statement again every time, which takes four times as long.
  const heads = db.prepare(
    `select ${CLAIM_COLUMNS}, ${PLAIN} from job where state = 'queued' and lane = ? and run_at <= ? order by run_at, seq limit ? + 0`,
  );
  const one = db.prepare(`select ${CLAIM_COLUMNS}, ${PLAIN} from job where seq = ? and run_at <= ? limit ? + 0`);
  const room = roomOf(db, lanes);
  return (lane, now, most) => {
    const left = room(lane) ?? most;
    return typeof left === "number" ? heads.all(lane, now, Math.min(most, left)) : one.all(left.seq, now, most);
  };
}

/** The values that a claim writes to every job it takes. */
interface Taking {
  readonly nonce: string;
  readonly worker: string;
  readonly now: number;
}

interface Taker {
  /** Takes several at once; false, with nothing written, where one of them is damaged. */
  all(found: readonly Found[], run: Taking, ticket: number): boolean;
  /** Takes one; false if it is damaged. */
  one(found: Found, run: Taking, ticket: number): boolean;
}

function openTaker(db: SqliteDatabase): Taker {
  const set = "state = 'running', epoch = epoch + 1, nonce = ?, worker = ?, started_at = ?, updated_at = ?";
  const one = db.prepare(`update job set ${set}, ticket = ? where seq = ?`);
  const onePlaced = db.prepare(`update job set ${set}, ticket = ?, placed = ? where seq = ?`);
  // One statement for all rows costs half of one statement for each.
  const all = db.prepare(
    `update job set ${set}, ticket = ? + place.key from json_each(?) as place where job.seq = place.value`,
  );
  const allPlaced = db.prepare(
    `update job set ${set}, ticket = ? + place.key, placed = place.value ->> 1 from json_each(?) as place
     where job.seq = place.value ->> 0`,
  );
  return {
    all(found, { nonce, worker, now }, ticket) {
      const plain = found.every(({ group }) => group === null);
      const rows = found.map(({ row, group }) => (plain ? row[0] : [row[0], group]));
      const statement = plain ? all : allPlaced;
      return unlessBroken(() => statement.run(nonce, worker, now, now, ticket, JSON.stringify(rows)));
    },
    one({ row, group }, { nonce, worker, now }, ticket) {
      const seq = row[0] as number;
      if (group === null) return unlessBroken(() => one.run(nonce, worker, now, now, ticket, seq));
      return unlessBroken(() => onePlaced.run(nonce, worker, now, now, ticket, group, seq));
    },
  };
}
