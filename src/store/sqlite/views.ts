// Views for people. Their names and columns are stable, the same on SQLite and on Postgres.
import { time } from "./time.ts";

/** The jobs of one status; each has a separate query, so that a query for one status reads no job of another. */
const withStatus = (status: string, where: string): string => `
select j.id, l.type, l.queue, ${status} as status,
  j.state, l.priority, j.attempts, j.max_attempts, j.crashes, j.generation, l.service, l.tenant, j.key, j.worker,
  j.error_message as last_error, j.payload, j.progress, j.result,
  ${time("j.run_at")} as run_at, ${time("j.created_at")} as created_at, ${time("j.updated_at")} as updated_at,
  ${time("j.started_at")} as started_at, ${time("j.finished_at")} as finished_at
from job j left join lane l on l.base = j.lane - j.lane % 4 where ${where}`;

/** The position of a run: its job and generation, and its number in there, including the first. */
interface Place {
  readonly generation: string;
  /** The number of the run, as SQL. */
  readonly run: string;
}

const PRESENT: Place = { generation: "j.generation", run: "(j.attempts + 1)" };
const BAD: Place = { generation: "a.generation", run: "a.attempt" };

/** The first run has the id of its job, the others a suffix that no job id can have. */
const runOf = (
  { generation, run }: Place,
  status: string,
  times: Readonly<Record<"next" | "error" | "from" | "to", string>>,
): string => {
  const isFirst = `${generation} = 1 and ${run} = 1`;
  const most = "case when j.limited = 1 then '/' || (j.max_attempts - 1) else '' end";
  return `
select case when ${isFirst} then j.id else j.id || ':' || ${generation} || '.' || ${run} end as id, j.id as job_id, l.type,
  ${generation} as generation, ${run} - 1 as retry_count, j.max_attempts - 1 as max_retries, ${run} > 1 as is_retry,
  case when ${isFirst} then null else j.id end as original_run_id, ${status} as status, ${times.next} as next_retry_at,
  ${times.error} as error_message, ${times.from} as started_at, ${times.to} as completed_at,
  case when ${run} > 1 then '[RETRY ' || (${run} - 1) || ${most} || ']' end as label`;
};

/** The last run of a job was settled under its epoch: the start time on the job is of that run, not of one to come. */
const isSettled = "exists (select 1 from attempt a where a.job_seq = j.seq and a.epoch = j.epoch)";
/** Runs that were not charged repeat the number of the one before. */
const sameBefore = (attempt: string, epoch: string): string =>
  `exists (select 1 from attempt b where b.job_seq = j.seq and b.generation = ${attempt}.generation
    and b.attempt = ${attempt}.${attempt === "a" ? "attempt" : "attempts"} and b.epoch < ${epoch})`;

/**
 * An error is text even where there is none: SQLite pushes conditions into a union only if its parts have the same
 * types.
 */
const NONE = { next: "null", error: "cast(null as text)", from: "null", to: "null" };
const FROM = "from job j left join lane l on l.base = j.lane - j.lane % 4 where";
const ENDED = { from: time("j.started_at"), to: time("j.finished_at") };

const RUNS = `create view runs as ${[
  `${runOf(BAD, "'failed'", {
    next: time("(a.ended_at + a.delay_ms)"),
    error: "a.error_message",
    from: time("a.started_at"),
    to: time("a.ended_at"),
  })} from attempt a join job j on j.seq = a.job_seq left join lane l on l.base = j.lane - j.lane % 4
  where a.attempt > 0 and not ${sameBefore("a", "a.epoch")}`,
  `${runOf(PRESENT, "'pending_retry'", { ...NONE, next: time("j.run_at"), error: "j.error_message" })}
  ${FROM} j.state = 'queued' and j.attempts > 0`,
  `${runOf(PRESENT, "'queued'", NONE)} ${FROM} j.state = 'queued' and j.attempts <= 0`,
  `${runOf(PRESENT, "'running'", { ...NONE, from: time("j.started_at") })}
  ${FROM} j.state = 'running' and j.state <> 'queued' and j.expires_at is null`,
  `${runOf(PRESENT, "'completed'", { ...NONE, ...ENDED })} ${FROM} j.state = 'completed' and j.state <> 'queued'`,
  `${runOf(PRESENT, "'cancelled'", { ...NONE, ...ENDED, from: `case when not ${isSettled} then ${ENDED.from} end` })}
  ${FROM} j.state = 'cancelled' and j.state <> 'queued'`,
  // A job that died without being charged did not fail in a run; it is shown anyway.
  `${runOf(PRESENT, "'failed'", { ...NONE, error: "j.error_message", to: ENDED.to })}
  ${FROM} j.state = 'dead' and j.state <> 'queued' and (j.attempts = 0 or ${sameBefore("j", "j.epoch")})`,
].join("\nunion all")};
`;

/** The views. */
export const VIEWS = `
create view jobs as ${[
  withStatus("'failed'", "j.state = 'dead' and j.state <> 'queued'"),
  withStatus("'retrying'", "j.state = 'queued' and j.attempts > 0"),
  withStatus("'queued'", "j.state = 'queued' and j.attempts <= 0"),
  withStatus("j.state", "j.state <> 'queued' and j.state <> 'dead'"),
].join("\nunion all")};

create view attempts as
select j.id as job_id, a.generation, a.epoch, a.attempt, 'failed' as status, a.worker,
  ${time("a.started_at")} as started_at, ${time("a.ended_at")} as ended_at, a.delay_ms,
  a.error_class, a.error_name, a.error_message, a.error_stack
from attempt a join job j on j.seq = a.job_seq
union all
select j.id, j.generation, j.epoch, j.attempts + 1, 'completed', j.worker,
  ${time("j.started_at")}, ${time("j.finished_at")}, null, null, null, null, null
from job j where j.state = 'completed';

create view dead_letters as
select j.id as job_id, d.type as job_type, case when d.redriven_at is null then 'dead' else 'redriven' end as status,
  d.attempts, d.max_attempts, d.error_message as last_error, d.error_stack as error_stacktrace,
  j.payload as input_data, ${time("d.died_at")} as created_at, d.reason, d.error_class as failure_type,
  d.error_name, d.fingerprint, d.crashes, d.generation, ${time("d.redriven_at")} as redriven_at
from dead_letter d join job j on j.seq = d.job_seq;

create view item_errors as
select j.id as item_id, substr(l.type, 7) as run_name, j.payload as item, a.attempt, a.worker, a.error_class, a.error_name,
  a.error_message, a.error_stack, ${time("a.ended_at")} as created_at
from attempt a join job j on j.seq = a.job_seq join lane l on l.base = j.lane - j.lane % 4 where l.type like 'batch:%';

create view retry_queue as
select coalesce(j.key, j.id) as record_id, j.id as job_id, l.type as job_type, j.payload,
  j.error_message as error_msg, j.attempts as retry_count, ${time("j.run_at")} as process_after
from job j left join lane l on l.base = j.lane - j.lane % 4
where j.state = 'queued' and j.attempts > 0;

${RUNS}`;
