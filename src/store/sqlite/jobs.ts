// Reads, cancels and reschedules jobs on SQLite.
import { STATES, type State } from "../../core/job.ts";
import { kindOfLane, laneOfKind } from "../../core/lane.ts";
import type { EnqueueAnswer, JobQuery } from "../store.ts";
import { pageOf } from "../dialect.ts";
import { boundFrom, jobBound, jobList, type JobSource, type JobWords } from "../list-queries.ts";
import type { Verbs } from "../verbs.ts";
import type { SqliteDatabase } from "./driver.ts";
import type { Value } from "../columns.ts";
import { enqueuer } from "./enqueue.ts";
import type { SqliteLaneNumbers } from "./lane-numbers.ts";
import { JOB_WIDTH } from "../columns.ts";
import { NO_WORKER } from "../causes.ts";
import { RedriveChanges } from "../dead-letters.ts";
import { SQLITE } from "./dialect.ts";
import { listDue } from "./due-list.ts";
import { letterTeller, runCounter } from "./redrives.ts";
import { type NewJobsWire, type RowPage, SELECT_JOB, WITH_LANE } from "./wire.ts";

/** Running jobs, worded so that the index of everything not waiting answers, in the order of arrival. */
export const RUNNING = "j.state = 'running' and j.state <> 'queued' and j.expires_at is null";

/** The verbs about jobs; jobs come back as rows and go in as they stand on the wire. */
export interface SqliteJobVerbs extends Pick<Verbs, "count" | "cancel" | "reschedule"> {
  /** Null where all of them were created. */
  enqueue(jobs: NewJobsWire): EnqueueAnswer[] | null;
  get(ids: readonly string[]): (Value[] | null)[];
  list(query: JobQuery): RowPage;
}

/** The verbs about jobs. */
export function jobVerbs(db: SqliteDatabase, lanes: SqliteLaneNumbers, clock: () => number): SqliteJobVerbs {
  const read = db.prepare(`select ${SELECT_JOB} from job j ${WITH_LANE} where j.id = ?`);
  return {
    enqueue: enqueuer(db, lanes, clock),
    get: (ids) => ids.map((id) => read.all(id)[0] ?? null),
    list: (query) => list(db, query, clock()),
    count(atMost = -1) {
      // Each is answered from an index alone; a plain group over the table would read every payload.
      const countOf = (state: State): number => {
        const where = state === "queued" ? "where" : "indexed by job_ended where state <> 'queued' and";
        const few = db.prepare(`select count(*) from (select 1 from job ${where} state = '${state}' limit ?)`);
        return few.all(atMost)[0]?.[0] as number;
      };
      return Object.fromEntries(STATES.map((state) => [state, countOf(state)])) as Record<State, number>;
    },
    cancel: canceller(db, clock),
    reschedule: rescheduler(db, lanes, clock),
  };
}

function canceller(db: SqliteDatabase, clock: () => number): Verbs["cancel"] {
  const state = db.prepare("select state, generation from job where id = ?");
  const end = db.prepare(
    `update job set state = 'cancelled', cancel_requested = 1, placed = null, finished_at = ?, expires_at = ? + keep_ms,
     updated_at = ? where id = ?`,
  );
  const ask = db.prepare("update job set cancel_requested = 1, updated_at = ? where id = ?");
  const { letterOf, tell } = letterTeller(db);
  const count = runCounter(db);
  return (ids) => {
    const now = clock();
    const runs = new RedriveChanges();
    const answers = ids.map((id) => {
      const [was, generation = 1] = (state.all(id)[0] ?? []) as [State?, number?];
      if (was === undefined) return "missing";
      if (was === "running") ask.run(now, id);
      if (was === "running") return "requested";
      if (was !== "queued") return "finished";
      end.run(now, now, now, id);
      const letter = generation > 1 ? letterOf(id) : null;
      if (letter) tell(letter, null, now, runs);
      return "cancelled";
    });
    count(runs, NO_WORKER, now);
    return answers;
  };
}

function rescheduler(db: SqliteDatabase, lanes: SqliteLaneNumbers, clock: () => number): Verbs["reschedule"] {
  const read = db.prepare("select state, lane, run_at, due_at, attempts + crashes from job where id = ?");
  const write = db.prepare("update job set lane = ?, run_at = ?, due_at = ?, updated_at = ? where id = ?");
  return (changes) => {
    const now = clock();
    lanes.refresh();
    return changes.map(({ id, delayMs, priority }) => {
      const [row] = read.all(id) as [State, number, number, number, number][];
      if (!row) return "missing";
      const [state, lane, runAt, dueAt, tried] = row;
      const belonging = lanes.belonging(lane);
      if (state !== "queued" || !belonging) return "refused";
      const moved =
        priority === undefined ? lane : laneOfKind(lanes.intern({ ...belonging, priority }), kindOfLane(lane));
      const due = delayMs === undefined ? runAt : now + delayMs;
      write.run(moved, due, delayMs !== undefined && tried === 0 ? due : dueAt, now, id);
      return "changed";
    });
  };
}

const ofJobs = (from: string, where: string): JobSource => ({
  from,
  where,
  seq: "j.seq",
  walk: from,
});
const ANY = ofJobs("job j", "1");
const OF_KEY = ofJobs("job j indexed by job_keyed", "j.key is not null");
/** These are found without reading completed jobs, however many there are. */
const OF_STATE: ReadonlyMap<State | undefined, JobSource> = new Map([
  ["running", ofJobs("job j indexed by job_ended", RUNNING)],
  // A dead job has one letter that was not redriven, and letters cost nothing where jobs are claimed and completed.
  [
    "dead",
    {
      from: "dead_letter d indexed by dead_letter_live cross join job j on j.seq = d.job_seq",
      where: "d.redriven_at is null",
      seq: "d.job_seq",
      walk: "dead_letter d indexed by dead_letter_live",
    },
  ],
  ["cancelled", ofJobs("job j indexed by job_ended", "j.state = 'cancelled' and j.state <> 'queued'")],
]);

const WORDS: JobWords = {
  dialect: SQLITE,
  columns: SELECT_JOB,
  withLane: WITH_LANE,
  state: "j.state",
  isQueued: "j.state = 'queued'",
  sourceOf: ({ key, state }) => (key === undefined ? (OF_STATE.get(state) ?? ANY) : OF_KEY),
};

function list(db: SqliteDatabase, query: JobQuery, now: number): RowPage {
  if (query.sort === "due") return listDue(db, query, now);
  const bounded = jobBound(WORDS, query);
  const bound = bounded && boundFrom(db.prepare(bounded.text).all(...bounded.values));
  const { text, values } = jobList(WORDS, query, now, bound);
  return pageOf(db.prepare(text).all(...values), query.limit, JOB_WIDTH, bound);
}
