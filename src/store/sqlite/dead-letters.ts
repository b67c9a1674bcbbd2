// Dead letters on SQLite: lists them and counts them.
import { type Failure, LATEST_INSTANT } from "../../core/job.ts";
import { pageOf } from "../dialect.ts";
import {
  type Bound,
  boundFrom,
  historyText,
  knownThrough,
  LETTER_CURSOR,
  letterBound,
  letterGroups,
  letterList,
  type LetterWords,
} from "../list-queries.ts";
import type { DeadLetterQuery, LetterFilter, LetterRange, Reach, Tally } from "../store.ts";
import { SQLITE } from "./dialect.ts";
import { tallyOf } from "../tally.ts";
import type { Verbs } from "../verbs.ts";
import type { SqliteDatabase } from "./driver.ts";
import type { Value } from "../columns.ts";
import { failureFromText, groupFromRow } from "../rows.ts";
import { type RowPage, SELECT_JOB, WITH_LANE } from "./wire.ts";

/** The verbs about dead letters, with rows instead of objects. */
export interface SqliteDeadLetterVerbs extends Pick<Verbs, "tally"> {
  deadLetters(query: DeadLetterQuery): RowPage;
  history(id: string): Value[][];
}

const WORDS: LetterWords = {
  dialect: SQLITE,
  jobColumns: SELECT_JOB,
  withJob: `join job j on j.seq = d.job_seq ${WITH_LANE}`,
  isAside: `j.state = 'dead' and j.state <> 'queued' and j.expires_at = ${LATEST_INSTANT}`,
  withHolder: `left join job_key k on k.type = d.type and k.key = j.key and k.job_id <> j.id left join job o on o.id = k.job_id`,
  holder: "k.job_id, o.state",
  unindexed: (column) => `+${column}`,
};

/** The verbs about dead letters. */
export function deadLetterVerbs(db: SqliteDatabase): SqliteDeadLetterVerbs {
  const history = db.prepare(historyText(SQLITE));
  return {
    deadLetters: (query) => list(db, query),
    tally: (filter) => tally(db, filter),
    history: (id) => history.all(id),
  };
}

function list(db: SqliteDatabase, query: DeadLetterQuery): RowPage {
  const bound = boundOf(db, query);
  const isEnqueued = query.sort === "enqueued";
  const through = isEnqueued ? (knownThrough(query) ?? newestLetter(db)) : 0;
  const { text, values } = letterList(WORDS, query, bound, through);
  const page = pageOf(db.prepare(text).all(...values), query.limit, LETTER_CURSOR, bound);
  return isEnqueued ? { ...page, through } : page;
}

function newestLetter(db: SqliteDatabase): number {
  return db.prepare("select coalesce(max(seq), 0) from dead_letter").all()[0]?.[0] as number;
}

function boundOf(db: SqliteDatabase, query: DeadLetterQuery | (LetterFilter & Reach)): Bound | null {
  const bounded = letterBound(WORDS, query);
  return bounded && boundFrom(db.prepare(bounded.text).all(...bounded.values));
}

/** Reads the groups first, then texts, only for the listed causes. */
function tally(db: SqliteDatabase, filter: LetterFilter & Reach & LetterRange): Tally {
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
