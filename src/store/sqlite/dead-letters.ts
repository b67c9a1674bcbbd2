// Dead letters on SQLite: lists them, counts them, sends them back to work.
import { type Failure, LATEST_INSTANT } from "../../core/job.ts";
import { LANE_KINDS } from "../../core/lane.ts";
import { CauseChanges, NO_WORKER } from "../causes.ts";
import { pageOf } from "../dialect.ts";
import {
  type Bound,
  boundFrom,
  historyText,
  LETTER_CURSOR,
  letterBound,
  letterGroups,
  letterList,
  type LetterWords,
} from "../list-queries.ts";
import type { DeadLetterQuery, LetterFilter, Reach, Tally } from "../store.ts";
import { SQLITE } from "./dialect.ts";
import { tallyOf } from "../tally.ts";
import type { Verbs } from "../verbs.ts";
import { ticker } from "./causes.ts";
import type { SqliteDatabase } from "./driver.ts";
import type { Value } from "../columns.ts";
import { failureFromText, groupFromRow } from "../rows.ts";
import { type RowPage, SELECT_JOB, WITH_LANE } from "./wire.ts";

/** The verbs about dead letters, with rows instead of objects. */
export interface SqliteDeadLetterVerbs extends Pick<Verbs, "tally" | "redrive"> {
  deadLetters(query: DeadLetterQuery): RowPage;
  history(id: string): Value[][];
}

const WORDS: LetterWords = {
  dialect: SQLITE,
  jobColumns: SELECT_JOB,
  withJob: `join job j on j.seq = d.job_seq ${WITH_LANE}`,
  isAside: `j.state = 'dead' and j.state <> 'queued' and j.expires_at = ${LATEST_INSTANT}`,
};

/** The verbs about dead letters. */
export function deadLetterVerbs(db: SqliteDatabase, clock: () => number): SqliteDeadLetterVerbs {
  const history = db.prepare(historyText(SQLITE));
  return {
    deadLetters: (query) => list(db, query),
    tally: (filter) => tally(db, filter),
    history: (id) => history.all(id),
    redrive: redriver(db, clock),
  };
}

function list(db: SqliteDatabase, query: DeadLetterQuery): RowPage {
  const bound = boundOf(db, query);
  const { text, values } = letterList(WORDS, query, bound);
  return pageOf(db.prepare(text).all(...values), query.limit, LETTER_CURSOR, bound);
}

function boundOf(db: SqliteDatabase, query: DeadLetterQuery | (LetterFilter & Reach)): Bound | null {
  const bounded = letterBound(WORDS, query);
  return bounded && boundFrom(db.prepare(bounded.text).all(...bounded.values));
}

/** Reads the groups first, then texts, only for the listed causes. */
function tally(db: SqliteDatabase, filter: LetterFilter & Reach): Tally {
  const bound = boundOf(db, filter);
  const { text, values } = letterGroups(WORDS, filter, bound);
  const failure = db.prepare("select failure from dead_letter where seq = ?");
  return tallyOf(
    db
      .prepare(text)
      .all(...values)
      .map(groupFromRow),
    (newest) => failureFromText(failure.all(newest)[0]?.[0] as string, null) as Failure,
    bound,
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
    `update dead_letter set redriven_at = ? where job_seq = (select seq from job where id = ?) and generation = ?
       and redriven_at is null returning fingerprint, type, coalesce(release, '')`,
  );
  const tick = ticker(db);
  return (requests) => {
    const now = clock();
    const changes = new CauseChanges();
    const answers = requests.map(({ id, generation, delayMs }) => {
      if (revive.run(now + delayMs, now + delayMs, now, id, generation) === 0)
        return exists.all(id).length > 0 ? "refused" : "missing";
      for (const [fingerprint, type, release] of mark.all(now, id, generation) as [string, string, string][])
        changes.add({ fingerprint, type, release }, { redriven: 1 });
      return "redriven";
    });
    tick(changes, NO_WORKER, now);
    return answers;
  };
}
