// The parts that the views of all SQL stores share. The names and columns of the views are stable, the same on every store;
// each store says which tables the rows come from. A new column comes last: Postgres replaces a view, with the rights that
// people have given on it, only where the columns before are the same.
import type { Dialect } from "./dialect.ts";

/** The SQL of one store for its views. */
export interface ViewWords extends Pick<Dialect, "table" | "time"> {
  /** A text as the value of a column. */
  readonly word: (text: string) => string;
  /** True for a job that has its own limit. */
  readonly isLimited: string;
  /** A column of text without a value. */
  readonly noText: string;
  /** The statement that makes or replaces a view, without `as` and its query. */
  readonly create: (view: string) => string;
  /** The start of a query inside `exists`. */
  readonly some: string;
}

/** Where the columns of the view `jobs` come from that a claim knows better than the row of a running job. */
export const OF_ROW = {
  state: "j.state",
  error: "j.error_message",
  worker: "j.worker",
  startedAt: "j.started_at",
  updatedAt: "j.updated_at",
};

/** The columns of the view `jobs`; `added` are those that versions after the first have added. */
export function jobsColumns({ time }: ViewWords, status: string, added: readonly string[], of = OF_ROW): string {
  const as = (sql: string, name: string): string => (sql.endsWith(`.${name}`) ? sql : `${sql} as ${name}`);
  return `
select j.id, l.type, l.queue, ${status} as status,
  ${as(of.state, "state")}, l.priority, j.attempts, j.max_attempts, j.crashes, j.generation, l.service, l.tenant, j.key, ${as(of.worker, "worker")},
  ${of.error} as last_error, j.payload, j.progress, j.result,
  ${time("j.run_at")} as run_at, ${time("j.created_at")} as created_at, ${time(of.updatedAt)} as updated_at,
  ${time(of.startedAt)} as started_at, ${time("j.finished_at")} as finished_at${added.map((sql) => `, j.${sql}`).join("")}`;
}

/** The position of a run: its job and generation, and its number in there, including the first. */
export interface RunPlace {
  /** Of the job. */
  readonly id: string;
  /** The column `type`. */
  readonly type: string;
  readonly generation: string;
  /** The number of the run, as SQL. */
  readonly run: string;
}

/** The columns of a run. The first run has the id of its job, the others a suffix that no job id can have. */
export function runOf(
  { word, isLimited }: ViewWords,
  { id, type, generation, run }: RunPlace,
  status: string,
  times: Readonly<Record<"next" | "error" | "from" | "to", string>>,
): string {
  const isFirst = `${generation} = 1 and ${run} = 1`;
  const most = `case when ${isLimited} then '/' || (j.max_attempts - 1) else '' end`;
  return `
select case when ${isFirst} then ${id} else ${id} || ':' || ${generation} || '.' || ${run} end as id, ${id} as job_id, ${type},
  ${generation} as generation, ${run} - 1 as retry_count, j.max_attempts - 1 as max_retries, ${run} > 1 as is_retry,
  case when ${isFirst} then null else ${id} end as original_run_id, ${word(status)} as status, ${times.next} as next_retry_at,
  ${times.error} as error_message, ${times.from} as started_at, ${times.to} as completed_at,
  case when ${run} > 1 then '[RETRY ' || (${run} - 1) || ${most} || ']' end as label, j.key, j.payload`;
}

/** The last run of a job was settled under its epoch: the start time on the job is of that run, not of one to come. */
export const isSettled = ({ table, some }: ViewWords): string =>
  `exists (${some} from ${table("attempt")} a where a.job_seq = j.seq and a.epoch = j.epoch)`;

/** Runs that were not charged repeat the number of the one before. */
export const sameBefore = ({ table, some }: ViewWords, attempt: "a" | "j"): string =>
  `exists (${some} from ${table("attempt")} b where b.job_seq = j.seq and b.generation = ${attempt}.generation
    and b.attempt = ${attempt}.${attempt === "a" ? "attempt" : "attempts"} and b.epoch < ${attempt}.epoch)`;

/** The views of ended runs and of dead letters; `lastRun` is the number of the run that completed a job. */
export const endedViews = ({ table, time, create, noText }: ViewWords, lastRun: string): string => `
${create("attempts")} as
select j.id as job_id, a.generation, a.epoch, a.attempt, 'failed' as status, a.worker,
  ${time("a.started_at")} as started_at, ${time("a.ended_at")} as ended_at, a.delay_ms,
  a.error_class, a.error_name, a.error_message, a.error_stack, j.key, a.release
from ${table("attempt")} a join ${table("job")} j on j.seq = a.job_seq
union all
select j.id, j.generation, j.epoch, ${lastRun}, 'completed', j.worker,
  ${time("j.started_at")}, ${time("j.finished_at")}, null, null, null, null, null, j.key, ${noText}
from ${table("job")} j where j.state = 'completed';

${create("dead_letters")} as
select j.id as job_id, d.type as job_type, case when d.redriven_at is null then 'dead' else 'redriven' end as status,
  d.attempts, d.max_attempts, d.error_message as last_error, d.error_stack as error_stacktrace,
  j.payload as input_data, ${time("d.died_at")} as created_at, d.reason, d.error_class as failure_type,
  d.error_name, d.fingerprint, d.crashes, d.generation, ${time("d.redriven_at")} as redriven_at, j.key, d.release,
  d.redrive, d.outcome, ${time("d.outcome_at")} as outcome_at
from ${table("dead_letter")} d join ${table("job")} j on j.seq = d.job_seq;
`;
