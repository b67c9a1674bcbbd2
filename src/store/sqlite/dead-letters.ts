// Dead letters on SQLite: lists them, counts them, sends them back to work.
import { type Failure, LATEST_INSTANT } from "../../core/job.ts";
import { LANE_KINDS } from "../../core/lane.ts";
import { readCursor } from "../cursor.ts";
import type { DeadLetterQuery, LetterFilter, Tally } from "../store.ts";
import { tallyOf } from "../tally.ts";
import type { Verbs } from "../verbs.ts";
import type { SqliteDatabase } from "./driver.ts";
import type { Value } from "../columns.ts";
import { narrow, page, type RowPage, WITH_LANE } from "./jobs.ts";
import { JOB_WIDTH } from "../columns.ts";
import { columnsFor, DEATH_COLUMNS, DEATH_WIDTH, failureFromText, groupFromRow } from "../rows.ts";
import { SELECT_JOB } from "./wire.ts";

/** The verbs about dead letters, with rows instead of objects. */
export interface SqliteDeadLetterVerbs extends Pick<Verbs, "tally" | "redrive"> {
  deadLetters(query: DeadLetterQuery): RowPage;
  history(id: string): Value[][];
}

const CONDITIONS = {
  jobId: "d.job_seq = (select seq from job where id = ?)",
  type: "d.type = ?",
  service: "l.service = ?",
  tenant: "l.tenant = ?",
  class: "d.error_class = ?",
  reason: "d.reason = ?",
  fingerprint: "d.fingerprint = ?",
  from: "d.died_at >= ?",
  until: "d.died_at < ?",
} as const;
// Plain text, not a pattern; lower() of SQLite knows A to Z.
const SAYS = "(instr(lower(d.error_name), lower(?)) > 0 or instr(lower(d.error_message), lower(?)) > 0)";
const WITH_JOB = `join job j on j.seq = d.job_seq ${WITH_LANE}`;

/** The verbs about dead letters. */
export function deadLetterVerbs(db: SqliteDatabase, clock: () => number): SqliteDeadLetterVerbs {
  const history = db.prepare(
    `select j.id, a.generation, a.epoch, a.attempt, a.worker, a.started_at, a.ended_at, a.delay_ms, a.failure,
       a.error_stack
     from attempt a join job j on j.seq = a.job_seq where j.id = ? order by a.epoch`,
  );
  return {
    deadLetters: (query) => list(db, query),
    tally: (filter) => tally(db, filter),
    history: (id) => history.all(id),
    redrive: redriver(db, clock),
  };
}

const NEWEST_FIRST = { beyond: "d.seq < ?", order: "d.seq desc" } as const;
const OLDEST_FIRST = { beyond: "d.seq > ?", order: "d.seq" } as const;

function list(db: SqliteDatabase, query: DeadLetterQuery): RowPage {
  const { beyond, order } = query.oldest ? OLDEST_FIRST : NEWEST_FIRST;
  const { where, values } = conditions(beyond, readCursor(query.cursor, query.oldest), query);
  const found = db
    .prepare(
      `select ${DEATH_COLUMNS}, ${columnsFor(SELECT_JOB, query)}, d.seq from dead_letter d ${WITH_JOB}
       where ${where} order by ${order} limit ?`,
    )
    .all(...values, query.limit + 1);
  return page(found, query.limit, DEATH_WIDTH + JOB_WIDTH);
}

function conditions(beyond: string, position: number, filter: LetterFilter): { where: string; values: Value[] } {
  const { where, values } = narrow(beyond, position, CONDITIONS, filter);
  if (!filter.redriven) where.push("d.redriven_at is null");
  if (filter.aside) where.push(`j.state = 'dead' and j.state <> 'queued' and j.expires_at = ${LATEST_INSTANT}`);
  if (filter.text !== undefined) {
    where.push(SAYS);
    values.push(filter.text, filter.text);
  }
  return { where: where.join(" and "), values };
}

/** One pass over the matching letters, without their texts; texts are read only for the listed causes. */
function tally(db: SqliteDatabase, filter: LetterFilter): Tally {
  const { where, values } = conditions(OLDEST_FIRST.beyond, readCursor(null, true), filter);
  const ofJobs = filter.service !== undefined || filter.tenant !== undefined || filter.aside;
  const groups = db.prepare(
    `select d.fingerprint, d.error_class, d.type, d.reason, count(*), min(d.died_at), max(d.died_at), max(d.seq)
     from dead_letter d ${ofJobs ? WITH_JOB : ""} where ${where} group by 1, 2, 3, 4`,
  );
  const failure = db.prepare("select failure from dead_letter where seq = ?");
  return tallyOf(
    groups.all(...values).map(groupFromRow),
    (newest) => failureFromText(failure.all(newest)[0]?.[0] as string, null) as Failure,
  );
}

function redriver(db: SqliteDatabase, clock: () => number): Verbs["redrive"] {
  const exists = db.prepare("select 1 from job where id = ?");
  const revive = db.prepare(
    `update job set state = 'queued', generation = generation + 1, attempts = 0, crashes = 0, releases = 0, last_delay_ms = 0,
       batch_most = null, cancel_requested = 0, finished_at = null, expires_at = null, run_at = ?, due_at = ?, updated_at = ?, lane = lane - lane % 4 + ${LANE_KINDS.indexOf("first")}
     where id = ? and state = 'dead' and generation = ?`,
  );
  const mark = db.prepare(
    "update dead_letter set redriven_at = ? where job_seq = (select seq from job where id = ?) and generation = ?",
  );
  return (requests) => {
    const now = clock();
    return requests.map(({ id, generation, delayMs }) => {
      if (revive.run(now + delayMs, now + delayMs, now, id, generation) === 0)
        return exists.all(id).length > 0 ? "refused" : "missing";
      mark.run(now, id, generation);
      return "redriven";
    });
  };
}
