// Writes new jobs on Postgres: those without a key in one statement, those with a key after the keys were locked in
// their order. A job that is already there, by its id or by its key, is answered and not written again.
import type { State } from "../../core/job.ts";
import { isSameBelonging } from "../../core/lane.ts";
import { meetHolder, type NewJob } from "../../core/new-job.ts";
import type { EnqueueAnswer } from "../store.ts";
import { stateOf } from "./columns.ts";
import type { LaneOf } from "./lanes.ts";
import { type Context, NOW, placed, rounds } from "./context.ts";
import type { Ask, Cell, Statement } from "./driver.ts";
import { isRepeated } from "./errors.ts";
import { keyKeeper } from "./keys.ts";
import type { Waker } from "./wake.ts";

/** The statements that insert jobs. */
interface Inserts {
  /** Each with settings of its own. */
  readonly mixed: Statement;
  /** All with the same settings, which go once. */
  readonly alike: Statement;
}

/** Writes jobs with a way to ask: the pool's, or that of a caller's transaction. */
export type Enqueue = (ask: Ask, jobs: readonly NewJob[], laneOf: LaneOf) => Promise<EnqueueAnswer[]>;

/** Writes jobs. */
export function enqueuer({ s }: Pick<Context, "s">, waker: Waker): Enqueue {
  const statesOf = stateReader(s);
  const insert = inserter(insertsOf(s, waker, "enqueue", "on conflict (id) do nothing"), statesOf);
  const keyed = keyedEnqueuer(s, insert, statesOf);
  const unkeyed: Enqueue = (ask, jobs, laneOf) =>
    byTurns(
      jobs,
      ({ id }) => id,
      (group) => insert(ask, group, laneOf),
    );
  return async (ask, jobs, laneOf) => {
    const answers: EnqueueAnswer[] = [];
    for (const group of segments(jobs)) {
      const write = group[0]?.key === null ? unkeyed : keyed;
      answers.push(...(await write(ask, group, laneOf)));
    }
    return answers;
  };
}

/** Jobs of one key, or of one id, follow one another; all others go together. */
async function byTurns(
  jobs: readonly NewJob[],
  keyOf: (job: NewJob) => string,
  write: (group: readonly NewJob[]) => Promise<EnqueueAnswer[]>,
): Promise<EnqueueAnswer[]> {
  const answers: EnqueueAnswer[] = [];
  for (const group of rounds(placed(jobs), keyOf)) {
    const written = await write(group.map(({ item }) => item));
    for (const [at, answer] of written.entries()) answers[group[at]?.at as number] = answer;
  }
  return answers;
}

type StatesOf = (ask: Ask, ids: readonly string[]) => Promise<Map<string, State>>;

function stateReader(s: string): StatesOf {
  const states = {
    name: "enqueue_states",
    text: `select j.id, ${stateOf(s)} from ${s}.job j where j.id = any($1::text[])`,
  };
  return async (ask, ids) => (ids.length === 0 ? new Map() : new Map((await ask(states, ids)) as [string, State][]));
}

/** Writes new jobs without keys, each of another id; null, and nothing is written, where one of them is there already. */
export function freshEnqueuer({ db, s }: Pick<Context, "db" | "s">, waker: Waker) {
  // To look for each id first, and to mark each row as meant, would cost a fifth of the whole.
  const insert = inserter(insertsOf(s, waker, "enqueue_fresh", ""), stateReader(s));
  return (jobs: readonly NewJob[], laneOf: LaneOf): Promise<EnqueueAnswer[] | null> =>
    insert(db.ask, jobs, laneOf).catch((error: unknown) => {
      if (isRepeated(error)) return null;
      throw error;
    });
}

/** Inserts jobs of different ids. */
function inserter({ mixed, alike }: Inserts, statesOf: StatesOf): Enqueue {
  return async (ask, jobs, laneOf) => {
    const isAlike = areAlike(jobs);
    const columns = COLUMNS.map(([, , read], at) =>
      isAlike && at >= OWN ? read(jobs[0] as NewJob, laneOf) : jobs.map((job) => read(job, laneOf)),
    );
    const [row] = await ask(isAlike ? alike : mixed, ...columns, jobs.length);
    const [count, ids] = row as [number | string, string | null];
    if (Number(count) === jobs.length) return jobs.map(({ id }) => ({ kind: "created", id }));
    const written = new Set(ids === null ? [] : ids.slice(1, -1).split(","));
    const rest = jobs.map(({ id }) => id).filter((id) => !written.has(id));
    const known = await statesOf(ask, rest);
    return jobs.map(({ id }) => {
      if (written.has(id)) return { kind: "created", id };
      return { kind: "duplicate", id, state: known.get(id) ?? null };
    });
  };
}

/** Writes jobs with keys: first those are locked, then it is known what becomes of each job. */
function keyedEnqueuer(s: string, insert: Enqueue, statesOf: StatesOf): Enqueue {
  const keys = keyKeeper(s);
  const group = async (ask: Ask, jobs: readonly NewJob[], laneOf: LaneOf): Promise<EnqueueAnswer[]> => {
    const answers = new Map<NewJob, EnqueueAnswer>();
    const known = await statesOf(
      ask,
      jobs.map(({ id }) => id),
    );
    const open = jobs.filter((job) => {
      const state = known.get(job.id);
      if (state) answers.set(job, { kind: "duplicate", id: job.id, state });
      return !state;
    });
    const holders = await keys.lock(ask, open);
    const fresh: NewJob[] = [];
    for (const job of open) {
      const holder = holders.get(job);
      const met = holder ? meetHolder(job, holder) : "create";
      if (met === "create" || !holder) fresh.push(job);
      else if (met === "duplicate") answers.set(job, { kind: "duplicate", id: holder.id, state: holder.state });
      else if (met === "conflict") answers.set(job, { kind: "conflict", id: holder.id });
      else if (await keys.replace(ask, job, holder.id, laneOf(job)))
        answers.set(job, { kind: "replaced", id: holder.id });
      else fresh.push(job);
    }
    const written = fresh.length === 0 ? [] : await insert(ask, fresh, laneOf);
    for (const [at, answer] of written.entries()) answers.set(fresh[at] as NewJob, answer);
    await keys.take(ask, fresh);
    return jobs.map((job) => answers.get(job) as EnqueueAnswer);
  };
  return (ask, jobs, laneOf) =>
    byTurns(
      jobs,
      ({ type, key }) => `${type} ${key}`,
      (jobsOfTurn) => group(ask, jobsOfTurn, laneOf),
    );
}

/** Neighbours that all have a key, or all have none. */
function segments(jobs: readonly NewJob[]): NewJob[][] {
  const groups: NewJob[][] = [];
  for (const job of jobs) {
    const last = groups.at(-1);
    if (last && (last[0]?.key === null) === (job.key === null)) last.push(job);
    else groups.push([job]);
  }
  return groups;
}

/** What each job sends, and its type; those behind the first three are mostly alike. */
const COLUMNS: readonly (readonly [string, string, (job: NewJob, laneOf: LaneOf) => Exclude<Cell, number[]>])[] = [
  ["id", "text", ({ id }) => id],
  ["payload", "text", ({ payload }) => payload],
  ["key", "text", ({ key }) => key],
  ["lane", "bigint", (job, laneOf) => laneOf(job)],
  ["run_at", "bigint", ({ runAt }) => runAt],
  ["delay_ms", "bigint", ({ delayMs }) => delayMs],
  ["max_attempts", "int", ({ maxAttempts }) => maxAttempts],
  ["max_crashes", "int", ({ maxCrashes }) => maxCrashes],
  ["deadline_ms", "bigint", ({ deadlineMs }) => deadlineMs],
  ["stuck_ms", "bigint", ({ stuckMs }) => stuckMs],
  ["version", "int", ({ version }) => version],
  ["limited", "boolean", ({ limited }) => limited],
  ["stuck_retry_ms", "bigint", ({ stuckRetryMs }) => stuckRetryMs],
  ["stuck_limit", "int", ({ stuckLimit }) => stuckLimit],
];
const OWN = 3;

/** Makes them under a name, with what is to happen to a job that is there already. */
export function insertsOf(s: string, waker: Waker, name: string, onConflict: string): Inserts {
  const own = COLUMNS.slice(0, OWN);
  const arrays = (columns: typeof COLUMNS): string =>
    `unnest(${columns.map(([, type], at) => `$${at + 1}::${type}[]`).join(", ")}) as u (${columns.map(([column]) => column).join(", ")})`;
  const shared = COLUMNS.slice(OWN).map(([column, type], at) => `$${at + 1 + OWN}::${type} as ${column}`);
  const from = (jobs: string): string => `with new as (
      insert into ${s}.job (id, lane, run_at, due_at, created_at, updated_at, max_attempts, max_crashes, deadline_ms,
        stuck_ms, version, key, payload, limited, stuck_retry_ms, stuck_limit)
      select id, lane, due, due, ${NOW}, ${NOW}, max_attempts, max_crashes, deadline_ms, stuck_ms, version, key, payload, limited,
        stuck_retry_ms, stuck_limit
      from (select u.*, coalesce(u.run_at, ${NOW}) + u.delay_ms as due from ${jobs}) as due
      ${onConflict} returning id, lane, run_at, seq),
    wait as (insert into ${s}.waiting (lane, run_at, seq) select lane, run_at, seq from new)
    select count(*) as count, case when count(*) <> $${COLUMNS.length + 1} then array_agg(id)::text end as ids, ${waker.notify} as notified from new`;
  return {
    mixed: { name, text: from(arrays(COLUMNS)) },
    alike: { name: `${name}_alike`, text: from(`(select u.*, ${shared.join(", ")} from ${arrays(own)}) as u`) },
  };
}

/** True for jobs that belong together and have the same settings. */
function areAlike(jobs: readonly NewJob[]): boolean {
  const one = jobs[0] as NewJob;
  return jobs.every(
    (job) =>
      isSameBelonging(job, one) &&
      job.runAt === one.runAt &&
      job.delayMs === one.delayMs &&
      job.maxAttempts === one.maxAttempts &&
      job.maxCrashes === one.maxCrashes &&
      job.deadlineMs === one.deadlineMs &&
      job.stuckMs === one.stuckMs &&
      job.version === one.version &&
      job.limited === one.limited &&
      job.stuckRetryMs === one.stuckRetryMs &&
      job.stuckLimit === one.stuckLimit,
  );
}
