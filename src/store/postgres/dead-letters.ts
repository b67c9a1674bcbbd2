// Dead letters on Postgres: lists them and counts them.
import { type Failure, LATEST_INSTANT } from "../../core/job.ts";
import { isJobId } from "../../core/new-job.ts";
import type { Value } from "../columns.ts";
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
import { postgresDialect } from "./dialect.ts";
import { attemptFromRow, deadLetterFromRow, failureFromText, groupFromRow } from "../rows.ts";
import type { DeadLetterQuery, LetterFilter, LetterRange, Reach, Store, Tally } from "../store.ts";
import { tallyOf } from "../tally.ts";
import { jobColumns, lookUp, stateOf, withEachLane, withRun } from "./columns.ts";
import type { Context } from "./context.ts";

/** The verbs about dead letters. */
export type PostgresDeadLetterVerbs = Pick<Store, "deadLetters" | "tally" | "history">;

const wordsOf = (s: string): LetterWords => ({
  dialect: postgresDialect(s),
  jobColumns: jobColumns(s),
  withJob: `${lookUp(`${s}.job`, "seq = d.job_seq", "j")} ${withEachLane(s)}`,
  inPairs: true,
  withRun: withRun(s),
  isAside: `j.expires_at = ${LATEST_INSTANT} and d.job_seq = any(array(select q.seq from ${s}.ended e
    cross join unnest(e.seqs) as q (seq) where e.state = 'dead' and e.at = ${LATEST_INSTANT}))`,
  withHolder: `left join lateral (select k.job_id as id, (select ${stateOf(s, "o")} from ${s}.job o where o.id = k.job_id) as state
    from ${s}.job_key k where j.key is not null and k.type = d.type and k.key = j.key and k.job_id <> j.id limit 1) k on true`,
  holder: "k.id, k.state",
});

/** The verbs about dead letters. */
export function deadLetterVerbs(context: Context): PostgresDeadLetterVerbs {
  const { questions, s } = context;
  const words = wordsOf(s);
  const history = { name: "history", text: historyText(words.dialect) };
  return {
    deadLetters: (query) => list(context, words, query),
    tally: (filter) => tally(context, words, filter),
    history: async (id) =>
      isJobId(id) ? (await questions.ask(history, id)).map((row) => attemptFromRow(row as Value[])) : [],
  };
}

type LetterLook = DeadLetterQuery | (LetterFilter & Reach);

async function boundOf({ questions }: Context, words: LetterWords, query: LetterLook): Promise<Bound | null> {
  const bounded = letterBound(words, query);
  return bounded && boundFrom(await questions.ask({ text: bounded.text }, ...bounded.values));
}

async function list(context: Context, words: LetterWords, query: DeadLetterQuery): ReturnType<Store["deadLetters"]> {
  const bound = await boundOf(context, words, query);
  const isEnqueued = query.sort === "enqueued";
  const through = isEnqueued ? (knownThrough(query) ?? (await newestLetter(context))) : 0;
  const { text, values } = letterList(words, query, bound, through);
  const found = await context.questions.ask({ text }, ...values);
  const { rows, ...page } = pageOf(found, query.limit, LETTER_CURSOR, bound);
  return { items: rows.map((row) => deadLetterFromRow(row as Value[])), ...page, ...(isEnqueued && { through }) };
}

async function newestLetter({ questions, s }: Context): Promise<number> {
  return (await questions.ask({ text: `select coalesce(max(seq), 0) from ${s}.dead_letter` }))[0]?.[0] as number;
}

/** Reads the groups first, then texts, only for the listed causes. */
async function tally(context: Context, words: LetterWords, filter: LetterFilter & Reach & LetterRange): Promise<Tally> {
  const { questions, s } = context;
  const bound = await boundOf(context, words, filter);
  const { text, values } = letterGroups(words, filter, bound);
  const failures = { text: `select seq, failure from ${s}.dead_letter where seq = any($1::bigint[])` };
  const found = (await questions.ask({ text }, ...values)).map((row) => groupFromRow(row as Value[]));
  const newest = await questions.ask(
    failures,
    found.map((group) => group.newest),
  );
  const texts = new Map(newest as [number, string][]);
  return tallyOf(found, (seq) => failureFromText(texts.get(seq) ?? "", null) as Failure, bound);
}
