// Dead letters on Postgres: lists them, counts them, sends them back to work.
import { type Failure, LATEST_INSTANT } from "../../core/job.ts";
import { isJobId } from "../../core/new-job.ts";
import { readCursor } from "../cursor.ts";
import { JOB_WIDTH, type Value } from "../columns.ts";
import {
  columnsFor,
  attemptFromRow,
  DEATH_COLUMNS,
  DEATH_WIDTH,
  deadLetterFromRow,
  failureFromText,
  groupFromRow,
} from "../rows.ts";
import type { DeadLetterQuery, LetterFilter, RedriveAnswer, RedriveRequest, Store, Tally } from "../store.ts";
import { tallyOf } from "../tally.ts";
import { jobColumns, withLane, withRun } from "./columns.ts";
import { type Ask, type Context, NOW, placed, rounds } from "./context.ts";
import { narrow, page } from "./jobs.ts";
import type { Waker } from "./wake.ts";

/** The verbs about dead letters. */
export type PostgresDeadLetterVerbs = Pick<Store, "deadLetters" | "tally" | "history" | "redrive">;

const COLUMNS = {
  type: "d.type",
  service: "l.service",
  tenant: "l.tenant",
  class: "d.error_class",
  reason: "d.reason",
  fingerprint: "d.fingerprint",
} as const;

/** The verbs about dead letters. */
export function deadLetterVerbs(context: Context, waker: Waker): PostgresDeadLetterVerbs {
  const { db, s } = context;
  const history = {
    name: "history",
    text: `select j.id, a.generation, a.epoch, a.attempt, a.worker, a.started_at, a.ended_at, a.delay_ms, a.failure, a.error_stack
      from ${s}.attempt a join ${s}.job j on j.seq = a.job_seq where j.id = $1 order by a.epoch`,
  };
  const redrive = redriver(s, waker);
  return {
    deadLetters: (query) => list(context, query),
    tally: (filter) => tally(context, filter),
    history: async (id) =>
      isJobId(id) ? (await db.ask(history, id)).map((row) => attemptFromRow(row as Value[])) : [],
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

const withJob = (s: string): string => `join ${s}.job j on j.seq = d.job_seq ${withLane(s)}`;

async function list({ db, s }: Context, query: DeadLetterQuery): ReturnType<Store["deadLetters"]> {
  const beyond = query.oldest ? "d.seq > $1" : "d.seq < $1";
  const { where, values } = conditions(s, beyond, readCursor(query.cursor, query.oldest), query);
  const text = `select ${DEATH_COLUMNS}, ${columnsFor(jobColumns(s), query)}, d.seq from ${s}.dead_letter d ${withJob(s)} ${withRun(s)}
    where ${where} order by d.seq ${query.oldest ? "" : "desc"} limit $${values.length + 1}`;
  const { rows, next } = page(await db.ask({ text }, ...values, query.limit + 1), query.limit, DEATH_WIDTH + JOB_WIDTH);
  return { items: rows.map((row) => deadLetterFromRow(row as Value[])), next };
}

function conditions(
  s: string,
  beyond: string,
  position: number,
  filter: LetterFilter,
): { where: string; values: Value[] } {
  const { where, values } = narrow([beyond], [position], COLUMNS, filter);
  const add = (value: Value, condition: (parameter: string) => string): void => {
    values.push(value);
    where.push(condition(`$${values.length}`));
  };
  const { jobId, from, until, text } = filter;
  if (jobId !== undefined)
    add(isJobId(jobId) ? jobId : "", (id) => `d.job_seq = (select seq from ${s}.job where id = ${id})`);
  if (from !== undefined) add(from, (at) => `d.died_at >= ${at}`);
  if (until !== undefined) add(until, (at) => `d.died_at < ${at}`);
  if (!filter.redriven) where.push("d.redriven_at is null");
  if (filter.aside) where.push(`j.expires_at = ${LATEST_INSTANT}`);
  // Plain text, not a pattern; under this collation A to Z match a to z and nothing else does.
  const says = (column: string, part: string): string =>
    `position(lower(${part}::text collate "C") in lower(${column} collate "C")) > 0`;
  if (text !== undefined) add(text, (part) => `(${says("d.error_name", part)} or ${says("d.error_message", part)})`);
  return { where: where.join(" and "), values };
}

/** One pass over the matching letters, without their texts; texts are read only for the listed causes. */
async function tally({ db, s }: Context, filter: LetterFilter): Promise<Tally> {
  const { where, values } = conditions(s, "d.seq > $1", readCursor(null, true), filter);
  const ofJobs = filter.service !== undefined || filter.tenant !== undefined || filter.aside;
  const groups = {
    text: `select d.fingerprint, d.error_class, d.type, d.reason, count(*), min(d.died_at), max(d.died_at), max(d.seq)
      from ${s}.dead_letter d ${ofJobs ? withJob(s) : ""} where ${where} group by 1, 2, 3, 4`,
  };
  const failures = { text: `select seq, failure from ${s}.dead_letter where seq = any($1::bigint[])` };
  const found = (await db.ask(groups, ...values)).map((row) => groupFromRow(row as Value[]));
  const newest = await db.ask(
    failures,
    found.map((group) => group.newest),
  );
  const texts = new Map(newest as [number, string][]);
  return tallyOf(found, (seq) => failureFromText(texts.get(seq) ?? "", null) as Failure);
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
    marked as (update ${s}.dead_letter d set redriven_at = ${NOW} from done where d.job_seq = done.seq and d.generation = done.generation),
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
