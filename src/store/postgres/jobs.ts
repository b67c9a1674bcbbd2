// Reads, cancels and reschedules jobs on Postgres. A change of a waiting job first takes its row from `waiting`: only
// there a claim and a change meet, and only one of them finds the row.
import { RedriveError } from "../../core/errors.ts";
import { type Job, STATES, type State } from "../../core/job.ts";
import { kindOfLane, laneOfKind } from "../../core/lane.ts";
import { isJobId } from "../../core/new-job.ts";
import { pageOf } from "../dialect.ts";
import { boundFrom, jobBound, jobList, type JobSource, type JobWords } from "../list-queries.ts";
import { JOB_WIDTH, type Value } from "../columns.ts";
import { belongingAt, jobFromRow } from "../rows.ts";
import type { CancelAnswer, JobQuery, Page, Reschedule, RescheduleAnswer, Store } from "../store.ts";
import {
  allRuns,
  goesAt,
  heldRuns,
  isTaken,
  jobColumns,
  lookUp,
  NO_RUN,
  noteEnded,
  PLACE,
  runsOf,
  STATE,
  stateOf,
  toQueue,
  withEachLane,
  withLane,
  withRun,
} from "./columns.ts";
import { type Ask, type Context, NOW, placed, rounds, waitsAtMost } from "./context.ts";
import type { PostgresDatabase, PostgresStatement, PostgresValue } from "./driver.ts";
import { isLocked } from "./errors.ts";
import { postgresDialect } from "./dialect.ts";
import { listDue } from "./due-list.ts";
import { letterTeller, type SentEnd } from "./redrives.ts";
import type { Waker } from "./wake.ts";

/** The verbs about jobs. */
export type PostgresJobVerbs = Pick<Store, "get" | "list" | "count" | "cancel" | "reschedule">;

/** How long a cancel waits for jobs that another transaction holds. */
const WAIT_MS = 2_000;
/** Most lost races with a claim in a row. */
const TURNS = 5;

/** The verbs about jobs. */
export function jobVerbs(context: Context, waker: Waker): PostgresJobVerbs {
  const { db, questions, s } = context;
  const read = {
    name: "job_read",
    text: `select ${jobColumns(s)} from ${s}.job j ${withLane(s)} ${withRun(s)} where j.id = any($1::text[])`,
  };
  const [countsAll, countsFew] = [{ text: countAll(s) }, { text: countFew(s) }];
  const cancel = canceller(s, waker);
  const reschedule = rescheduler(context, waker);
  return {
    async get(ids) {
      const possible = ids.filter(isJobId);
      const rows = possible.length === 0 ? [] : await db.ask(read, possible);
      const byId = new Map(rows.map((row) => [row[0], jobFromRow(row as Value[])]));
      return ids.map((id) => byId.get(id) ?? null);
    },
    list: (query) => list(context, query),
    async count(atMost) {
      const counts = Object.fromEntries(STATES.map((state) => [state, 0])) as Record<State, number>;
      const rows = atMost === undefined ? questions.ask(countsAll) : questions.ask(countsFew, atMost);
      for (const [state, found] of await rows) counts[state as State] = found as number;
      return counts;
    },
    async cancel(ids) {
      const answers: CancelAnswer[] = [];
      const unique = [...new Set(ids.filter(isJobId))].sort();
      const found =
        unique.length === 0
          ? new Map<string, CancelAnswer>()
          : await db.together((ask) => cancel(ask, unique)).catch(heldByOthers);
      // The second mention of a job meets what the first one left.
      const seen = new Set<string>();
      for (const id of ids) {
        const first = found.get(id) ?? "missing";
        answers.push(seen.has(id) && first === "cancelled" ? "finished" : first);
        seen.add(id);
      }
      return answers;
    },
    async reschedule(changes) {
      const legal = placed(changes).filter(({ item }) => isJobId(item.id));
      const found = new Map<number, RescheduleAnswer>();
      if (legal.length > 0)
        await db.together(async (ask) => {
          found.clear();
          for (const group of rounds(legal, ({ id }) => id)) {
            const answers = await reschedule(
              ask,
              group.map(({ item }) => item),
            );
            for (const { at, item } of group) found.set(at, answers.get(item) ?? "missing");
          }
        });
      return changes.map((_, at) => found.get(at) ?? "missing");
    },
  };
}

/** Counts all jobs of each state, in one pass. */
const countAll = (s: string): string => `with running as (select count(*) as held from ${heldRuns(s)})
  select state, count(*) - case when state = 'queued' then (select held from running) else 0 end from ${s}.job group by state
  union all select 'running', held from running`;

/**
 * Counts at most `$1` jobs of each state, from tables that have few other rows: to find a few cancelled jobs among many,
 * all jobs would be read. Those that ended last are counted, which other statements have read too. A job may be in `ended` twice under one expiry, where `keep` was changed and changed back.
 */
function countFew(s: string): string {
  const ended = (state: State): string => `count(distinct few.seq) from (
      select j.seq from (select * from ${s}.ended where state = '${state}' order by at desc, n desc) e
      cross join lateral (select j.seq from ${s}.job j where j.seq = any(e.seqs) and j.state = e.state and ${goesAt("j.")} = e.at offset 0) j`;
  const counted: Readonly<Record<State, string>> = {
    queued: `count(*) from (select from ${s}.waiting`,
    running: `count(*) from (select from ${allRuns(s)}`,
    completed: ended("completed"),
    dead: `count(*) from (select from ${s}.dead_letter where redriven_at is null`,
    cancelled: ended("cancelled"),
  };
  return STATES.map((state) => `select '${state}', ${counted[state]} limit $1) few`).join("\nunion all ");
}

function heldByOthers(error: unknown): never {
  if (!isLocked(error)) throw error;
  const message =
    "Cancel: expected jobs that no transaction holds; got one that another open transaction has changed. Nothing was cancelled; try again when that transaction has ended.";
  throw new RedriveError("store_unavailable", message, { cause: error });
}

function canceller(s: string, waker: Waker): (ask: Ask, ids: readonly string[]) => Promise<Map<string, CancelAnswer>> {
  const end = {
    name: "cancel_waiting",
    text: `with held as (
      delete from ${s}.waiting w using ${s}.job j where j.id = any($1::text[]) and j.state = 'queued' and w.lane = j.lane
        and w.run_at = j.run_at and w.seq = j.seq and ${waitsAtMost(WAIT_MS)} returning w.seq),
    done as (
      update ${s}.job j set state = 'cancelled', cancel_requested = true, finished_at = ${NOW},
        expires_at = ${NOW} + j.keep_ms, updated_at = ${NOW}
      where j.seq = any(array(select seq from held)) returning j.id, j.seq, j.expires_at, j.generation),
    ended as (${noteEnded(s, "cancelled", "done")}),
    places as (delete from ${s}.place p using done where p.seq = done.seq returning p.seq),
    told as materialized (select ${waker.notify} from places limit 1)
    select id, seq, generation, (select count(*) from told) from done`,
  };
  // A run that is settled meanwhile has another epoch by the time its row can be written.
  const ask = {
    name: "cancel_running",
    text: `with taken as (select j.seq, j.epoch from ${s}.job j where j.id = any($1::text[]) and ${isTaken(s)})
      update ${s}.job j set cancel_requested = true, updated_at = ${NOW} from taken t
      where j.seq = t.seq and j.epoch = t.epoch returning j.id`,
  };
  const rest = { name: "cancel_rest", text: `select j.id, ${stateOf(s)} from ${s}.job j where j.id = any($1::text[])` };
  const tellLetters = letterTeller(s);
  return async (to, ids) => {
    const answers = new Map<string, CancelAnswer>();
    const redriven: SentEnd[] = [];
    let open = ids;
    for (let turn = 0; turn < TURNS && open.length > 0; turn++) {
      for (const [id, seq, generation] of (await to(end, open)) as [string, number, number][]) {
        answers.set(id, "cancelled");
        if (generation > 1) redriven.push({ seq, failed: null });
      }
      open = open.filter((id) => !answers.has(id));
      if (open.length === 0) break;
      for (const [id] of await to(ask, open)) answers.set(id as string, "requested");
      open = open.filter((id) => !answers.has(id));
      if (open.length === 0) break;
      const left = (await to(rest, open)) as [string, State][];
      for (const [id, state] of left) if (state !== "queued" && state !== "running") answers.set(id, "finished");
      // A job that still waits or runs changed between our queries: ask again.
      open = left.map(([id]) => id).filter((id) => !answers.has(id));
    }
    await tellLetters(to, redriven, null);
    return answers;
  };
}

/** A job and its belonging. */
type WaitingRow = readonly [
  id: string,
  state: State,
  lane: number,
  runAt: number,
  seq: number,
  ...belonging: PostgresValue[],
];

/** Changes jobs of different ids inside a transaction; jobs that changed meanwhile are read again. */
function rescheduler(
  { s, lanes }: Context,
  waker: Waker,
): (ask: Ask, changes: readonly Reschedule[]) => Promise<Map<Reschedule, RescheduleAnswer>> {
  const { read, write } = rescheduleStatements(s, waker);
  const laneFor = async (ask: Ask, row: WaitingRow, priority: number | undefined): Promise<number> => {
    const [, , lane, , , ...belonging] = row;
    if (priority === undefined) return lane;
    // On this connection, because it may be the only one of the pool.
    const moved = { ...belongingAt(belonging), priority };
    const laneOf = await lanes.internWithin(ask, [moved]);
    return laneOfKind(laneOf(moved), kindOfLane(lane));
  };
  return async (ask, changes) => {
    const answers = new Map<Reschedule, RescheduleAnswer>();
    let open = changes;
    for (let turn = 0; turn < TURNS && open.length > 0; turn++) {
      const ids = open.map(({ id }) => id);
      const rows = (await ask(read, ids)) as unknown as WaitingRow[];
      const byId = new Map(rows.map((row) => [row[0], row]));
      const moves: { readonly change: Reschedule; readonly row: WaitingRow; readonly lane: number }[] = [];
      for (const change of open) {
        const row = byId.get(change.id);
        if (!row) answers.set(change, "missing");
        else if (row[1] !== "queued" || row[5] === null) answers.set(change, "refused");
        else moves.push({ change, row, lane: await laneFor(ask, row, change.priority) });
      }
      if (moves.length === 0) break;
      const [written] = await ask(
        write,
        moves.map(({ row }) => row[4]),
        moves.map(({ row }) => row[2]),
        moves.map(({ row }) => row[3]),
        moves.map(({ lane }) => lane),
        moves.map(({ change }) => change.delayMs ?? null),
      );
      const done = new Set((written?.[0] ?? []) as number[]);
      for (const { change, row } of moves) if (done.has(row[4])) answers.set(change, "changed");
      open = moves.filter(({ row }) => !done.has(row[4])).map(({ change }) => change);
    }
    return answers;
  };
}

function rescheduleStatements(
  s: string,
  waker: Waker,
): { readonly read: PostgresStatement; readonly write: PostgresStatement } {
  return {
    read: {
      name: "reschedule_read",
      text: `select j.id, ${stateOf(s)}, j.lane, j.run_at, j.seq, l.type, l.queue, l.service, l.tenant,
        l.group_key, l.group_concurrency, l.priority from ${s}.job j ${withLane(s)}
        where j.id = any($1::text[])`,
    },
    write: {
      name: "reschedule",
      text: `with u as (select * from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
        as u (seq, old_lane, old_run_at, lane, delay_ms)),
    held as (
      delete from ${s}.waiting w using u where w.lane = u.old_lane and w.run_at = u.old_run_at and w.seq = u.seq
      returning u.seq, u.lane, u.delay_ms),
    changed as (
      update ${s}.job j set lane = held.lane, run_at = coalesce(${NOW} + held.delay_ms, j.run_at), updated_at = ${NOW},
        due_at = case when j.attempts + j.crashes = 0 then coalesce(${NOW} + held.delay_ms, j.due_at) else j.due_at end
      from held where j.seq = held.seq returning ${PLACE}),
    wait as (${toQueue(s, "changed")})
    select array_agg(seq), ${waker.notify} from changed`,
    },
  };
}

/** The source of a list, chosen so that few jobs are read in vain. */
function sourceOf(s: string, { key, state, due }: JobQuery, fewWait: boolean): JobSource {
  const of = (from: string, run = NO_RUN, where = "true"): JobSource => ({
    from: `${from} ${run}`,
    where,
    seq: "j.seq",
    walk: from,
  });
  if (key !== undefined) return of(`${s}.job j`, withRun(s), "j.key is not null");
  if (state === "running") {
    const runs = runsOf(s, "order by e.seq desc");
    const jobs = lookUp(`${s}.job`, "seq = h.seq", "j");
    return { from: `${runs} ${jobs}`, where: "j.epoch = h.epoch - 1", seq: "h.seq", walk: runs, walked: "true" };
  }
  if (state === "dead") {
    const letters = `${s}.dead_letter d`;
    const jobs = `${letters} ${lookUp(`${s}.job`, "seq = d.job_seq", "j")} ${NO_RUN}`;
    return { from: jobs, where: "d.redriven_at is null", seq: "d.job_seq", walk: letters };
  }
  if (state === "queued" || due !== undefined) {
    // Few are sorted, and looked up in that order; of many, most of the newest jobs wait.
    if (fewWait)
      return {
        ...of(`(select * from ${s}.waiting order by seq desc) w ${lookUp(`${s}.job`, "seq = w.seq", "j")}`),
        walk: null,
      };
    const place = lookUp(`${s}.waiting`, "lane = j.lane and run_at = j.run_at and seq = j.seq", "w");
    return { ...of(`${s}.job j ${place}`), walk: `${s}.job j` };
  }
  return state === undefined ? { ...of(`${s}.job j`, ""), run: withRun(s) } : of(`${s}.job j`);
}

const wordsOf = (s: string, fewWait: boolean): JobWords => ({
  dialect: postgresDialect(s),
  columns: jobColumns(s),
  withLane: withEachLane(s),
  state: STATE,
  isQueued: "h.seq is null and j.state = 'queued'",
  sourceOf: (query) => sourceOf(s, query, fewWait),
});

async function list(context: Context, query: JobQuery): Promise<Page<Job>> {
  if (query.sort === "due") return listDue(context, query);
  const { questions, s } = context;
  const words = wordsOf(s, await doFewWait(questions, s, query));
  const bounded = jobBound(words, query);
  const bound = bounded && boundFrom(await questions.ask({ text: bounded.text }, ...bounded.values));
  const { text, values } = jobList(words, query, NOW, bound);
  const { rows, ...page } = pageOf(await questions.ask({ text }, ...values), query.limit, JOB_WIDTH, bound);
  return { items: rows.map((row) => jobFromRow(row as Value[])), ...page };
}

/** True if so few jobs wait that a list may look at all of them; else it looks at the newest jobs. */
async function doFewWait(
  { ask }: PostgresDatabase,
  s: string,
  { state, due, key, lookAt }: JobQuery,
): Promise<boolean> {
  if ((state !== "queued" && due === undefined) || key !== undefined || lookAt === undefined) return true;
  const [row] = await ask({ text: `select count(*) from (select from ${s}.waiting limit $1) w` }, lookAt + 1);
  return (row?.[0] as number) <= lookAt;
}
