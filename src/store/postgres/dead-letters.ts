// Dead letters on Postgres: lists them, counts them, sends them back to work.
import { type Failure, LATEST_INSTANT } from "../../core/job.ts";
import { isJobId } from "../../core/new-job.ts";
import type { Value } from "../columns.ts";
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
import { postgresDialect } from "./dialect.ts";
import { attemptFromRow, deadLetterFromRow, failureFromText, groupFromRow } from "../rows.ts";
import type { DeadLetterQuery, LetterFilter, Reach, RedriveAnswer, RedriveRequest, Store, Tally } from "../store.ts";
import { tallyOf } from "../tally.ts";
import { tickLetters } from "./causes.ts";
import { jobColumns, lookUp, withEachLane, withRun } from "./columns.ts";
import { type Ask, type Context, NOW, placed, rounds } from "./context.ts";
import type { Waker } from "./wake.ts";

/** The verbs about dead letters. */
export type PostgresDeadLetterVerbs = Pick<Store, "deadLetters" | "tally" | "history" | "redrive">;

const wordsOf = (s: string): LetterWords => ({
  dialect: postgresDialect(s),
  jobColumns: jobColumns(s),
  withJob: `${lookUp(`${s}.job`, "seq = d.job_seq", "j")} ${withEachLane(s)}`,
  inPairs: true,
  withRun: withRun(s),
  isAside: `j.expires_at = ${LATEST_INSTANT} and d.job_seq = any(array(select q.seq from ${s}.ended e
    cross join unnest(e.seqs) as q (seq) where e.state = 'dead' and e.at = ${LATEST_INSTANT}))`,
});

/** The verbs about dead letters. */
export function deadLetterVerbs(context: Context, waker: Waker): PostgresDeadLetterVerbs {
  const { db, questions, s } = context;
  const words = wordsOf(s);
  const history = { name: "history", text: historyText(words.dialect) };
  const redrive = redriver(s, waker);
  return {
    deadLetters: (query) => list(context, words, query),
    tally: (filter) => tally(context, words, filter),
    history: async (id) =>
      isJobId(id) ? (await questions.ask(history, id)).map((row) => attemptFromRow(row as Value[])) : [],
    async redrive(requests) {
      const legal = placed(requests).filter(({ item }) => isJobId(item.id) && Number.isSafeInteger(item.generation));
      const groups = rounds(legal, ({ id }) => id);
      const answers: RedriveAnswer[] = requests.map(() => "missing");
      const all = async (ask: Ask): Promise<void> => {
        for (const group of groups) {
          const found = await redrive(
            ask,
            group.map(({ item }) => item),
          );
          for (const { at, item } of group) answers[at] = found.get(item) ?? "missing";
        }
      };
      if (groups.length > 0) await db.together(all);
      return answers;
    },
  };
}

type LetterLook = DeadLetterQuery | (LetterFilter & Reach);

async function boundOf({ questions }: Context, words: LetterWords, query: LetterLook): Promise<Bound | null> {
  const bounded = letterBound(words, query);
  return bounded && boundFrom(await questions.ask({ text: bounded.text }, ...bounded.values));
}

async function list(context: Context, words: LetterWords, query: DeadLetterQuery): ReturnType<Store["deadLetters"]> {
  const bound = await boundOf(context, words, query);
  const { text, values } = letterList(words, query, bound);
  const found = await context.questions.ask({ text }, ...values);
  const { rows, ...page } = pageOf(found, query.limit, LETTER_CURSOR, bound);
  return { items: rows.map((row) => deadLetterFromRow(row as Value[])), ...page };
}

/** Reads the groups first, then texts, only for the listed causes. */
async function tally(context: Context, words: LetterWords, filter: LetterFilter & Reach): Promise<Tally> {
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

type Redrive = (ask: Ask, group: readonly RedriveRequest[]) => Promise<Map<RedriveRequest, RedriveAnswer>>;

function redriver(s: string, waker: Waker): Redrive {
  const revive = {
    name: "redrive",
    text: `with u as (select * from unnest($1::text[], $2::int[], $3::bigint[]) with ordinality as u (id, generation, delay, n)),
    done as (
      update ${s}.job j set state = 'queued', generation = j.generation + 1, attempts = 0, crashes = 0, releases = 0,
        last_delay_ms = 0, batch_most = null, cancel_requested = false, finished_at = null, expires_at = null, run_at = ${NOW} + u.delay, due_at = ${NOW} + u.delay,
        updated_at = ${NOW}, lane = j.lane - j.lane % 4
      from u where j.id = u.id and j.state = 'dead' and j.generation = u.generation
      returning j.seq, j.lane, j.run_at, j.epoch, u.generation, u.n),
    marked as (update ${s}.dead_letter d set redriven_at = ${NOW} from done
      where d.job_seq = done.seq and d.generation = done.generation and d.redriven_at is null
      returning d.fingerprint, d.type, d.release),
    ${tickLetters(s, "redriven", "marked")},
    wait as (insert into ${s}.waiting (lane, run_at, seq, epoch) select lane, run_at, seq, epoch from done)
    select array_agg(n), ${waker.notify} from done`,
  };
  const exists = { name: "redrive_exists", text: `select id from ${s}.job where id = any($1::text[])` };
  return async (ask, requests) => {
    const group = [...requests].sort((a, b) => (a.id < b.id ? -1 : 1));
    const ids = group.map(({ id }) => id);
    const [row] = await ask(
      revive,
      ids,
      group.map(({ generation }) => generation),
      group.map(({ delayMs }) => delayMs),
    );
    const done = new Set((row?.[0] ?? []) as number[]);
    const answers = new Map<RedriveRequest, RedriveAnswer>();
    if (done.size < group.length) {
      const there = new Set((await ask(exists, ids)).map(([id]) => id));
      for (const request of group) if (there.has(request.id)) answers.set(request, "refused");
    }
    group.forEach((request, at) => done.has(at + 1) && answers.set(request, "redriven"));
    return answers;
  };
}
