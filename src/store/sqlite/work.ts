// Lanes and claim on SQLite. One index, (lane, run_at, seq) of waiting jobs, serves both, so their cost follows what
// they return, not what waits, is parked, or is finished.
import type { Belonging } from "../../core/job.ts";
import { type ActiveLane, kindOfLane } from "../../core/lane.ts";
import type { ClaimRequest, SettleAnswer } from "../store.ts";
import type { Verbs } from "../verbs.ts";
import type { Database, Value } from "./driver.ts";
import type { Lanes } from "./lanes.ts";
import { type Quarantine, quarantine, unlessBroken } from "./quarantine.ts";
import { settler } from "./settle.ts";
import { CLAIM_COLUMNS, CLAIM_REST, type ClaimWire, PLAIN, type SettleWire } from "./wire.ts";

/** Numbers of damaged rows can be larger than JavaScript reads; they are cut to this. */
const MOST = Number.MAX_SAFE_INTEGER;
/** Less than any number a lane can have, damaged ones included. */
const BELOW_ALL_LANES = -(2 ** 63);

/** The verbs that move jobs through their runs, as they travel. */
export interface WorkVerbs extends Pick<Verbs, "lanes"> {
  claim(request: ClaimRequest): ClaimWire;
  settle(request: SettleWire): SettleAnswer;
}

/** The verbs that move jobs through their runs. */
export function workVerbs(db: Database, lanes: Lanes, clock: () => number): WorkVerbs {
  const progress = db.prepare("update worker set started_through = max(started_through, ?) where id = ?");
  const aside = quarantine(db, lanes.intern, clock);
  return {
    lanes: activeLanes(db, lanes, clock, aside),
    claim: claimer(db, lanes, clock, aside),
    settle: settler(db, clock, (worker, through) => void progress.run(through, worker)),
  };
}

function activeLanes(db: Database, lanes: Lanes, clock: () => number, aside: Quarantine): Verbs["lanes"] {
  // The head of the next lane is one step down the index, however many jobs lie between.
  const head = db.prepare(
    `select max(min(lane, ${MOST}), -${MOST}), max(min(run_at, ${MOST}), 0) from job
     where state = 'queued' and lane > ? order by lane, run_at limit 1`,
  );
  return (after, limit) => {
    const now = clock();
    const active: ActiveLane[] = [];
    let nextRunAt: number | null = null;
    let last = after ?? BELOW_ALL_LANES;
    for (let seen = 0; seen < limit; seen++) {
      const [found] = head.all(last) as [number, number][];
      if (!found) return { lanes: active, next: null, nextRunAt, now };
      const [lane, headRunAt] = found;
      last = lane;
      const belonging = lanes.belonging(lane);
      if (!belonging) aside.strays();
      else if (headRunAt <= now) active.push({ lane, kind: kindOfLane(lane), headRunAt, ...belonging });
      else nextRunAt = Math.min(headRunAt, nextRunAt ?? headRunAt);
    }
    return { lanes: active, next: head.all(last).length > 0 ? last : null, nextRunAt, now };
  };
}

/** A row that is to be taken. */
interface Found {
  readonly row: Value[];
  readonly lane: number;
}

function claimStatements(db: Database) {
  return {
    control: db.prepare("select version from control"),
    present: db.prepare("update worker set started_through = max(started_through, ?) where id = ? and given_up = 0"),
    // With a bare parameter as its limit SQLite compiles the statement anew every time, which takes four times as long.
    due: db.prepare(
      `select ${CLAIM_COLUMNS}, ${PLAIN} from job where state = 'queued' and lane = ? and run_at <= ? order by run_at, seq limit ? + 0`,
    ),
    rest: db.prepare(`select ${CLAIM_REST} from job where seq = ?`),
    take: db.prepare(
      `update job set state = 'running', epoch = epoch + 1, nonce = ?, worker = ?, ticket = ?, started_at = ?, updated_at = ?
       where seq = ?`,
    ),
    // One statement for all rows costs half of one statement for each.
    takeAll: db.prepare(
      `update job set state = 'running', epoch = epoch + 1, nonce = ?, worker = ?, ticket = ? + place.key, started_at = ?,
       updated_at = ? from json_each(?) as place where job.seq = place.value`,
    ),
  };
}

function claimer(db: Database, lanes: Lanes, clock: () => number, aside: Quarantine): WorkVerbs["claim"] {
  const { control, present, due, rest, take, takeAll } = claimStatements(db);
  return ({ worker, quotas, limit, nonce, control: version, ticket, startedThrough }) => {
    const now = clock();
    if (present.run(startedThrough, worker) === 0) return { flat: [], belongings: [], now, refused: "worker" };
    if (control.all()[0]?.[0] !== version) return { flat: [], belongings: [], now, refused: "control" };
    const flat: (Value | Value[])[] = [];
    const belongings = new Map<number, Belonging>();
    let found: Found[] = [];
    let taken = 0;
    const put = ({ row, lane }: Found): void => {
      for (let at = 1; at <= 10; at++) flat.push(row[at] as Value);
      flat.push(lane, row[11] === 1 ? null : (rest.all(row[0] as number)[0] as Value[]));
      taken += 1;
    };
    /** Takes what was found; of a set with a damaged row, which leaves nothing behind, each for itself. */
    const takeFound = (): void => {
      const all = found;
      found = [];
      const seqs = JSON.stringify(all.map(({ row }) => row[0]));
      if (all.length > 1 && unlessBroken(() => takeAll.run(nonce, worker, ticket + taken, now, now, seqs)))
        return all.forEach(put);
      for (const each of all) {
        const seq = each.row[0] as number;
        if (unlessBroken(() => take.run(nonce, worker, ticket + taken, now, now, seq))) put(each);
        else aside.row(seq);
      }
    };
    for (const { lane, limit: most } of quotas) {
      // A lane that comes again must not give what is already found.
      if (belongings.has(lane) && found.length > 0) takeFound();
      const wanted = Math.min(most, limit - taken - found.length);
      if (wanted <= 0) continue;
      const belonging = lanes.belonging(lane);
      if (!belonging) aside.strays();
      else {
        const rows = due.all(lane, now, wanted);
        if (rows.length > 0) belongings.set(lane, belonging);
        for (const row of rows) found.push({ row, lane });
      }
    }
    takeFound();
    return { flat, belongings: [...belongings], now, refused: null };
  };
}
