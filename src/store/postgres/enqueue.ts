// Writes new jobs on Postgres: those without a key in one statement, those with a key after their keys are locked in
// order. A job that exists already, by its id or by its key, is answered and not written again.
import { RedriveError } from "../../core/errors.ts";
import type { State } from "../../core/job.ts";
import { isSameBelonging } from "../../core/lane.ts";
import { type KeyHolder, meetHolder, type NewJob } from "../../core/new-job.ts";
import { TERM_COLUMNS } from "../columns.ts";
import { hasSameTerms, TERM_NAMES, TERMS } from "../../core/job.ts";
import type { EnqueueAnswer } from "../store.ts";
import { stateOf } from "./columns.ts";
import type { LaneOf, PostgresLaneNumbers } from "./lane-numbers.ts";
import { type Context, NOW, placed, rounds } from "./context.ts";
import type { Ask, PostgresValue, PostgresStatement } from "./driver.ts";
import { isMissing, isRepeated } from "./errors.ts";
import { keyKeeper } from "./keys.ts";
import type { Waker } from "./wake.ts";

/** Most lost races for a waiting job, or for a lane, in a row. */
export const TURNS = 5;

/** The statements that insert jobs. */
interface Inserts {
  /** Each with its own settings. */
  readonly mixed: PostgresStatement;
  /** All with the same settings, which are sent once. */
  readonly alike: PostgresStatement;
}

/** Writes jobs through the pool, or inside a caller's transaction. */
export type Enqueue = (ask: Ask, jobs: readonly NewJob[], laneOf: LaneOf) => Promise<EnqueueAnswer[]>;

/**
 * Keeps a lane from being retired or deleted until the transaction ends, because a caller's transaction may be open for
 * longer than a lane stays without a job. Under repeatable read, a lane deleted since the transaction began is a
 * serialisation failure.
 */
export const KEPT = "for key share";

/** Writes jobs: each by a statement that ends soon, or in a transaction that stays open as long as its caller likes. */
export function enqueuer({ s, lanes }: Pick<Context, "s" | "lanes">, waker: Waker, isLong = false): Enqueue {
  const statesOf = stateReader(s);
  const keep = isLong ? KEPT : "";
  const insert = inserter(insertsOf(s, waker, "enqueue", "on conflict (id) do nothing", keep), statesOf, lanes);
  const keyed = keyedEnqueuer(s, insert, statesOf, lanes, keep);
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

/** Jobs of one key, or of one id, are written one after another; all others together. */
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

/** Reads the states of jobs by their ids. */
export const statesStatement = (s: string): PostgresStatement => ({
  name: "enqueue_states",
  text: `select j.id, ${stateOf(s)} from ${s}.job j where j.id = any($1::text[])`,
});

function stateReader(s: string): StatesOf {
  const states = statesStatement(s);
  return async (ask, ids) => (ids.length === 0 ? new Map() : new Map((await ask(states, ids)) as [string, State][]));
}

/** Writes new jobs without keys, each of another id; null, with nothing written, where one of them exists already. */
export function freshEnqueuer({ db, s, lanes }: Context, waker: Waker) {
  // Looking up each id first, and marking each row, would cost a fifth of the whole.
  const insert = inserter(insertsOf(s, waker, "enqueue_fresh", null), stateReader(s), lanes);
  const write = async (jobs: readonly NewJob[], laneOf: LaneOf): Promise<EnqueueAnswer[] | null> => {
    try {
      return await insert(db.ask, jobs, laneOf);
    } catch (error) {
      if (isRepeated(error)) return null;
      throw error;
    }
  };
  return async (jobs: readonly NewJob[], laneOf: LaneOf): Promise<EnqueueAnswer[] | null> => {
    for (let [turn, known] = [1, laneOf]; ; turn++) {
      try {
        return await write(jobs, known);
      } catch (error) {
        if (!isMissing(error)) throw error;
        lanes.forget(jobs);
        if (turn === TURNS) throw outOfUse();
        known = await lanes.intern(jobs);
      }
    }
  };
}

/** The error where every attempt met a lane that was being retired. */
export function outOfUse(): RedriveError {
  const message = "A prune took the lane of a new job out of use during every attempt to write the job. Try again.";
  return new RedriveError("store_unavailable", message);
}

/** Inserts jobs of different ids; those whose lane is no longer in use again, when it is. */
function inserter({ mixed, alike }: Inserts, statesOf: StatesOf, lanes: PostgresLaneNumbers): Enqueue {
  const insert = async (ask: Ask, jobs: readonly NewJob[], laneOf: LaneOf, turn = 1): Promise<EnqueueAnswer[]> => {
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
    const open = jobs.filter(({ id }) => !written.has(id) && !known.has(id));
    lanes.forget(open);
    // Neither written nor there: an answer would tell of a job that does not exist.
    if (open.length > 0 && turn === TURNS) throw outOfUse();
    const again = open.length === 0 ? [] : await insert(ask, open, await lanes.internWithin(ask, open), turn + 1);
    const late = new Map(open.map((job, at) => [job, again[at] as EnqueueAnswer]));
    return jobs.map((job) => {
      const { id } = job;
      if (written.has(id)) return { kind: "created", id };
      return late.get(job) ?? { kind: "duplicate", id, state: known.get(id) ?? null };
    });
  };
  return insert;
}

/** The error where other processes were faster each time. */
export function changedOften(id: string): RedriveError {
  const message = `Job ${id}, which has the key, was changed by other processes during every attempt to replace its payload. Try again.`;
  return new RedriveError("store_unavailable", message, { details: { key: "locked" } });
}

/** Writes jobs with keys: locks the keys first; then it is known what happens to each job. */
function keyedEnqueuer(
  s: string,
  insert: Enqueue,
  statesOf: StatesOf,
  lanes: PostgresLaneNumbers,
  keep: string,
): Enqueue {
  const keys = keyKeeper(s, keep);
  /** What happens to a job whose key is taken; null if it must be written. */
  const meet = async (
    ask: Ask,
    job: NewJob,
    first: KeyHolder | undefined,
    laneOf: LaneOf,
  ): Promise<EnqueueAnswer | null> => {
    let holder = first;
    for (let turn = 0; holder && turn < TURNS; turn++) {
      const { id, state } = holder;
      const met = meetHolder(job, holder);
      if (met === "create") return null;
      if (met === "duplicate") return { kind: "duplicate", id, state };
      if (met === "conflict") return { kind: "conflict", id };
      const lane = (turn === 0 ? laneOf : await lanes.internWithin(ask, [job]))(job);
      if (await keys.replace(ask, job, id, lane)) return { kind: "replaced", id };
      // It was claimed, or rescheduled, between our queries; or its new lane is no longer in use.
      holder = (await keys.holders(ask, [job])).get(job);
    }
    if (!holder) return null;
    throw changedOften(holder.id);
  };
  const group = async (ask: Ask, jobs: readonly NewJob[], laneOf: LaneOf): Promise<EnqueueAnswer[]> => {
    const answers = new Map<NewJob, EnqueueAnswer>();
    const ids = jobs.map(({ id }) => id);
    const known = await statesOf(ask, ids);
    const open = jobs.filter((job) => {
      const state = known.get(job.id);
      if (state) answers.set(job, { kind: "duplicate", id: job.id, state });
      return !state;
    });
    const holders = await keys.lock(ask, open);
    const fresh: NewJob[] = [];
    for (const job of open) {
      const answer = await meet(ask, job, holders.get(job), laneOf);
      if (answer) answers.set(job, answer);
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

/** Runs of adjacent jobs that all have a key, or all have none. */
function segments(jobs: readonly NewJob[]): NewJob[][] {
  const groups: NewJob[][] = [];
  for (const job of jobs) {
    const last = groups.at(-1);
    if (last && (last[0]?.key === null) === (job.key === null)) last.push(job);
    else groups.push([job]);
  }
  return groups;
}

/** The columns of each job, with their types; those after the first three are mostly alike. */
const COLUMNS: readonly (readonly [
  string,
  string,
  (job: NewJob, laneOf: LaneOf) => Exclude<PostgresValue, number[]>,
])[] = [
  ["id", "text", ({ id }) => id],
  ["payload", "text", ({ payload }) => payload],
  ["key", "text", ({ key }) => key],
  ["lane", "bigint", (job, laneOf) => laneOf(job)],
  ["run_at", "bigint", ({ runAt }) => runAt],
  ["delay_ms", "bigint", ({ delayMs }) => delayMs],
  ["version", "int", ({ version }) => version],
  ["limited", "boolean", ({ limited }) => limited],
  ["trace", "text", ({ trace }) => trace],
  ...TERM_NAMES.map((name, at) => [TERM_COLUMNS[at] as string, "bigint", TERMS[name].of] as const),
];
const OWN = 3;
/** The columns by name. */
export const INSERTED: readonly string[] = COLUMNS.map(([column]) => column);

/** The head of a statement that inserts jobs; their columns follow as a table that also has `base` and `due`. */
export function insertInto(s: string, now: string): string {
  const own = `version, key, payload, limited, trace, ${TERM_COLUMNS.join(", ")}`;
  return `insert into ${s}.job (id, lane, run_at, due_at, created_at, updated_at, ${own})
      select id, base, due, due, ${now}, ${now}, ${own}`;
}

/**
 * Makes the statements under a name, with the action for a job that exists already. A job whose lane is not in use is
 * left out; without an action, either case is refused together with all the others.
 */
export function insertsOf(s: string, waker: Waker, name: string, onConflict: string | null, keep = ""): Inserts {
  // Each lane is looked up by its number, however many there are.
  const inUse = `(select l.base from ${s}.lane l where l.base = u.lane and l.retired_at is null limit 1 ${keep}) as in_use (base)`;
  const checked = onConflict === null ? `left join lateral ${inUse} on true` : `cross join lateral ${inUse}`;
  const own = COLUMNS.slice(0, OWN);
  const arrays = (columns: typeof COLUMNS): string =>
    `unnest(${columns.map(([, type], at) => `$${at + 1}::${type}[]`).join(", ")}) as u (${columns.map(([column]) => column).join(", ")})`;
  const shared = COLUMNS.slice(OWN).map(([column, type], at) => `$${at + 1 + OWN}::${type} as ${column}`);
  const from = (jobs: string): string => `with new as (
      ${insertInto(s, NOW)}
      from (select u.*, in_use.base, coalesce(u.run_at, ${NOW}) + u.delay_ms as due from ${jobs} ${checked}) as due
      ${onConflict ?? ""} returning id, lane, run_at, seq),
    wait as (insert into ${s}.waiting (lane, run_at, seq) select lane, run_at, seq from new)
    select pg_catalog.count(*) as count, case when pg_catalog.count(*) <> $${COLUMNS.length + 1} then pg_catalog.array_agg(id)::text end as ids, ${waker.notify} as notified from new`;
  return {
    mixed: { name, text: from(arrays(COLUMNS)) },
    alike: { name: `${name}_alike`, text: from(`(select u.*, ${shared.join(", ")} from ${arrays(own)}) as u`) },
  };
}

/** True for jobs with one belonging and the same settings. */
function areAlike(jobs: readonly NewJob[]): boolean {
  const one = jobs[0] as NewJob;
  return jobs.every(
    (job) =>
      isSameBelonging(job, one) &&
      job.runAt === one.runAt &&
      job.delayMs === one.delayMs &&
      job.version === one.version &&
      job.limited === one.limited &&
      job.trace === one.trace &&
      hasSameTerms(job, one),
  );
}
