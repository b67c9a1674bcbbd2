// The columns of a job, and the joins to its lane and run, as queries use them.
import { ofGeneration, selectJob } from "../columns.ts";
import { UNREADABLE } from "../rows.ts";

/** The stack of a job's last failure, which is stored in the record of that run and not twice. */
export const lastStack = (s: string): string =>
  `(select a.error_stack from ${s}.attempt a where a.job_seq = j.seq order by a.epoch desc limit 1)`;

/** The state of a job joined with its run. */
export const STATE = "case when h.seq is null then j.state else 'running' end";

/** The columns of a job in the order of `jobFromRow`, with those of its lane and of its run `h`, if any. */
export const jobColumns = (s: string): string =>
  selectJob({
    type: `coalesce(l.type, '${UNREADABLE.type}')`,
    queue: `coalesce(l.queue, '${UNREADABLE.queue}')`,
    priority: "coalesce(l.priority, 0)",
    state: STATE,
    updatedAt: "greatest(j.updated_at, h.at)",
    startedAt: "coalesce(h.at, j.started_at)",
    epoch: "coalesce(h.epoch, j.epoch)",
    worker: "coalesce(h.worker, j.worker)",
    cancelRequested: "j.cancel_requested::int",
    limited: "j.limited::int",
    failure: ofGeneration("j", `${s}.attempt`, "failure"),
    stack: `case when j.failure is not null then ${lastStack(s)} end`,
  });

/** When a job expires, as `ended` stores it; of an alias, or of a CTE without one. */
export const goesAt = (of = ""): string => `coalesce(${of}expires_at, -1)`;

/** Adds jobs of a CTE, which has their `seq` and `expires_at`, to the ended ones. */
export const noteEnded = (s: string, state: string, from: string, where = "true"): string =>
  `insert into ${s}.ended (state, at, seqs) select '${state}', ${goesAt()}, array_agg(seq order by seq) from ${from} where ${where} group by 2`;

/** The columns that `toQueue` needs. */
export const PLACE = "j.id, j.lane, j.run_at, j.seq, j.epoch, j.attempts";

/** Gives jobs of a CTE with the columns of `PLACE` their places in the queue; retries name their job. */
export const toQueue = (s: string, from: string): string =>
  `insert into ${s}.waiting (lane, run_at, seq, epoch, job_id)
    select lane, run_at, seq, epoch, case when attempts > 0 then id end from ${from}`;

/** Joins jobs with their belonging. */
export const withLane = (s: string): string => `left join ${s}.lane l on l.base = j.lane - j.lane % 4`;

/** The same, looked up for each job, whatever the planner takes the lanes for. */
export const withEachLane = (s: string): string =>
  `left join lateral (select * from ${s}.lane where base = j.lane - j.lane % 4 limit 1) l on true`;

/**
 * All claims, by their index: claims come and go with every few jobs, and to read the table from its first page to the
 * last is to read what they left.
 */
const claims = (s: string): string => `(select * from ${s}.claim where n > 0) c`;

/** Runs `h` by what claims say; those that have ended since are among them. */
export const runsOf = (
  s: string,
  rest = "",
  from = claims(s),
): string => `(select c.worker, c.nonce, c.at, c.ticket + e.place - 1 as ticket, e.seq, e.epoch
    from ${from} cross join unnest(c.seqs, c.epochs) with ordinality as e (seq, epoch, place) ${rest}) h`;

/** Running jobs with their run `h`: those that a claim names under the epoch after theirs. */
export const heldRuns = (s: string): string =>
  `${runsOf(s, "", `${s}.claim c`)} join ${s}.job j on j.seq = h.seq and j.epoch = h.epoch - 1`;

/**
 * The same for statements that read every run of all workers: the jobs of a claim are looked up as sets, each of one
 * epoch, which takes a fraction of what a search for each of them takes. Only claims for which `where` is true. The
 * offset keeps the planner from reading all jobs first and looking for their claims.
 */
export const allRuns = (
  s: string,
  where = "true",
): string => `${claims(s)} cross join lateral (select u.epoch, array_agg(u.seq) as seqs
    from unnest(c.seqs, c.epochs) as u (seq, epoch) group by u.epoch) e
  join lateral (select * from ${s}.job where seq = any(e.seqs) and epoch = e.epoch - 1 offset 0) j on ${where}
  cross join lateral (
    select c.worker, c.nonce, c.at, c.ticket + array_position(c.seqs, j.seq) - 1 as ticket, j.seq, e.epoch) h`;

/**
 * Looks up the row that has this, for each row before it, by its index: a plain join reads a table that the planner takes
 * for empty from its first row to the last, for each row again. Before the first ANALYZE it takes any table for empty.
 */
export const lookUp = (table: string, where: string, as: string): string =>
  `cross join lateral (select * from ${table} where ${where} limit 1) ${as}`;

/** True for a job that is queued by its row but claimed. */
export const isTaken = (s: string, j = "j"): string =>
  `${j}.state = 'queued' and not exists (select from ${s}.waiting w where w.lane = ${j}.lane and w.run_at = ${j}.run_at and w.seq = ${j}.seq)`;

/**
 * Joins jobs with their run, if any. Whether a job is claimed is asked inside, so that no claim is read for other jobs:
 * busy workers may hold many thousands.
 */
export const withRun = (s: string): string => `left join lateral (
    select c.worker, c.at, j.seq, j.epoch + 1 as epoch from ${claims(s)}
    where ${isTaken(s)} and c.epochs[array_position(c.seqs, j.seq)] = j.epoch + 1 limit 1) h on true`;

/** For jobs that are known to have no run. */
export const NO_RUN =
  "cross join (select null::bigint as seq, null::bigint as epoch, null::bigint as at, null::text as worker) h";

/** The state of a job, where nothing else is needed. */
export const stateOf = (s: string, j = "j"): string => `case when ${isTaken(s, j)} then 'running' else ${j}.state end`;
