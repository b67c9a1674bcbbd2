// The schema, as a list of migrations that are applied in order and never changed once released. Tables are named in
// the singular and belong to Redrive; the plural views are for people and stay as they are.
import { DEATH_REASONS } from "../../core/job.ts";
import { JOB_BOUNDS } from "../../core/new-job.ts";

const oneOf = (column: string, values: readonly string[]): string =>
  `${column} in (${values.map((value) => `'${value}'`).join(", ")})`;

/** A time as people write it in SQLite; comparable with `datetime('now', '-1 hour')`. */
const time = (column: string): string => `strftime('%Y-%m-%d %H:%M:%f', ${column} / 1000.0, 'unixepoch')`;

/** One comparison after the other: `state in (…)` builds a table at every write and costs a fifth of it. */
const LIFE = `check (case state
    when 'queued' then nonce is null and finished_at is null
    when 'running' then nonce is not null and finished_at is null
    when 'completed' then nonce is null and finished_at is not null
    when 'dead' then nonce is null and finished_at is not null
    when 'cancelled' then nonce is null and finished_at is not null
    else 0 end)`;

const TABLES = `
create table lane (
  base integer primary key,
  n integer not null unique,
  type text not null,
  queue text not null,
  service text,
  tenant text,
  group_key text,
  group_concurrency integer,
  -- The same for all lanes of one type and group: the n of the first of them.
  group_n integer,
  priority integer not null check (priority between 0 and 9)
) strict;
create unique index lane_belonging on lane (type, queue, coalesce(service, ''), coalesce(tenant, ''),
  coalesce(group_key, ''), coalesce(group_concurrency, 0), priority);
create index lane_group on lane (type, group_key) where group_key is not null;

create table job (
  seq integer primary key,
  id text not null unique,
  lane integer not null,
  state text not null,
  run_at integer not null,
  due_at integer not null,
  created_at integer not null,
  updated_at integer not null,
  started_at integer,
  finished_at integer,
  attempts integer not null default 0 check (attempts between 0 and 1000000),
  max_attempts integer not null check (max_attempts >= 1),
  crashes integer not null default 0 check (crashes between 0 and 1000000),
  max_crashes integer not null check (max_crashes >= 1),
  version integer not null check (version between 1 and ${JOB_BOUNDS.version}),
  releases integer not null default 0 check (releases between 0 and 1000000000000),
  generation integer not null default 1 check (generation between 1 and 1000000000),
  epoch integer not null default 0 check (epoch between 0 and 1000000000000),
  nonce text,
  worker text,
  ticket integer not null default 0,
  cancel_requested integer not null default 0 check (cancel_requested in (0, 1)),
  last_delay_ms integer not null default 0,
  -- How many jobs a batch with this one may have; null for no limit.
  batch_most integer,
  deadline_ms integer,
  stuck_ms integer,
  stuck_retry_ms integer,
  stuck_limit integer,
  limited integer not null default 1 check (limited in (0, 1)),
  key text,
  -- The group_n of the group in which the job holds a place.
  placed integer,
  error_message text,
  payload text not null,
  progress text,
  result text,
  failure text,
  ${LIFE}
) strict;
create index job_waiting on job (lane, run_at, seq) where state = 'queued';
create index job_ended on job (state, finished_at, seq) where state <> 'queued';
create index job_keyed on job (key, seq) where key is not null;
create index job_retrying on job (${time("run_at")}) where state = 'queued' and attempts > 0;
create index job_placed on job (placed) where placed is not null;
create index job_overdue on job (started_at + stuck_ms) where state = 'running' and stuck_ms is not null;
create index job_cancelling on job (worker) where state = 'running' and cancel_requested = 1;

create table job_key (
  type text not null,
  key text not null,
  job_id text not null,
  digest text not null,
  created_at integer not null,
  gone integer not null default 0 check (gone in (0, 1)),
  primary key (type, key)
) strict, without rowid;
create index job_key_job on job_key (job_id);
create index job_key_gone on job_key (created_at) where gone = 1;
create trigger job_gone after delete on job when old.key is not null begin
  update job_key set gone = 1 where job_id = old.id;
end;

create table attempt (
  job_seq integer not null references job (seq) on delete cascade,
  generation integer not null,
  epoch integer not null,
  attempt integer not null,
  worker text,
  started_at integer,
  ended_at integer not null,
  delay_ms integer,
  error_class text not null,
  error_name text not null,
  error_message text not null,
  error_stack text,
  failure text not null,
  primary key (job_seq, epoch)
) strict;
create index attempt_recent on attempt (${time("ended_at")});

create table dead_letter (
  -- No number is used twice, so that a cursor goes on correctly however many letters were deleted.
  seq integer primary key autoincrement,
  job_seq integer not null references job (seq) on delete cascade,
  generation integer not null,
  type text not null,
  reason text not null check (${oneOf("reason", DEATH_REASONS)}),
  error_class text not null,
  fingerprint text not null,
  attempts integer not null,
  crashes integer not null,
  max_attempts integer not null,
  died_at integer not null,
  redriven_at integer,
  error_name text not null,
  error_message text not null,
  error_stack text,
  failure text not null,
  unique (job_seq, generation)
) strict;
create index dead_letter_live on dead_letter (job_seq) where redriven_at is null;
create index dead_letter_time on dead_letter (${time("died_at")});
create index dead_letter_type on dead_letter (type, seq);
create index dead_letter_cause on dead_letter (fingerprint, seq);

create table worker (
  id text primary key,
  pid integer not null,
  host text not null,
  release text,
  lease_end integer not null,
  started_at integer not null,
  beat_at integer not null,
  given_up integer not null default 0 check (given_up in (0, 1)),
  started_through integer not null default 0
) strict;

create table pause (
  seq integer primary key,
  kind text not null check (${oneOf("kind", ["queue", "type", "service", "tenant"])}),
  name text not null,
  from_at integer not null,
  until_at integer,
  reason text not null
) strict;

create table service (
  name text primary key,
  version integer not null,
  value text not null
) strict;

create table cell (
  kind text not null,
  name text not null,
  holder text not null,
  version integer not null,
  value text not null,
  at integer not null,
  primary key (kind, name, holder)
) strict, without rowid;

create table control (
  one integer primary key check (one = 1),
  version integer not null
) strict;
insert into control values (1, 1);
`;

/** The jobs of one status; each has words of its own, so that a question for one status reads no job of another. */
const withStatus = (status: string, where: string): string => `
select j.id, l.type, l.queue, ${status} as status,
  j.state, l.priority, j.attempts, j.max_attempts, j.crashes, j.generation, l.service, l.tenant, j.key, j.worker,
  j.error_message as last_error, j.payload, j.progress, j.result,
  ${time("j.run_at")} as run_at, ${time("j.created_at")} as created_at, ${time("j.updated_at")} as updated_at,
  ${time("j.started_at")} as started_at, ${time("j.finished_at")} as finished_at
from job j left join lane l on l.base = j.lane - j.lane % 4 where ${where}`;

const VIEWS = `
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

create view retry_queue as
select coalesce(j.key, j.id) as record_id, j.id as job_id, l.type as job_type, j.payload,
  j.error_message as error_msg, j.attempts as retry_count, ${time("j.run_at")} as process_after
from job j left join lane l on l.base = j.lane - j.lane % 4
where j.state = 'queued' and j.attempts > 0;
`;

/** SQL that leads from one version of the schema to the next. */
export const MIGRATIONS: readonly string[] = [TABLES + VIEWS];
