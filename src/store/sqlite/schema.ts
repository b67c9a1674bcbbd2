// The tables, as a list of migrations that are applied in order and never changed once released. Tables are named in the
// singular and belong to Redrive. The plural views are for people; the newest migration ends with them (views.ts).
import { DEATH_REASONS } from "../../core/job.ts";
import { REDRIVE_SUMS } from "../../core/recovery/outcome.ts";
import { within } from "../counters.ts";
import { JOB_COLUMNS } from "../columns.ts";
import { type Migration, withAdded } from "../migrations.ts";
import { SQLITE, time } from "./dialect.ts";
import { views } from "./views.ts";

const oneOf = (column: string, values: readonly string[]): string =>
  `${column} in (${values.map((value) => `'${value}'`).join(", ")})`;

/** One comparison after the other: `state in (…)` builds a table at every write and costs a fifth of it. */
const LIFE = `check (case state
    when 'queued' then nonce is null and finished_at is null and expires_at is null
    when 'running' then nonce is not null and finished_at is null and expires_at is null
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
  priority integer not null check (priority between 0 and 9),
  -- When it was made, or last taken into use again.
  used_at integer not null,
  -- Since when it may go, and the number of the newest job then.
  retired_at integer,
  retired_seq integer
) strict;
create index lane_used on lane (used_at) where retired_at is null;
create index lane_retired on lane (retired_seq) where retired_at is not null;
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
  -- When it is deleted; null as long as nobody has said so.
  expires_at integer,
  attempts integer not null default 0 check (${within("attempts")}),
  max_attempts integer not null check (${within("max_attempts")}),
  crashes integer not null default 0 check (${within("crashes")}),
  max_crashes integer not null check (${within("max_crashes")}),
  version integer not null check (${within("version")}),
  releases integer not null default 0 check (${within("releases")}),
  generation integer not null default 1 check (${within("generation")}),
  epoch integer not null default 0 check (${within("epoch")}),
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
  -- How long it is kept once it has ended; null as long as nobody has said so.
  keep_ms integer,
  keep_dead_ms integer,
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
create index job_ended on job (state, expires_at, seq) where state <> 'queued';
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

-- Cells that tell of changes to others of their kind.
create index cell_changes on cell (version) where name = '' and holder = '';

create table control (
  one integer primary key check (one = 1),
  version integer not null,
  -- Counts the times that lanes were retired or deleted: what is remembered of them from before may be wrong.
  lanes integer not null,
  -- The least number for a new lane.
  lane_n integer not null
) strict;
insert into control values (1, 1, 0, 0);
`;

/**
 * Failures know the release that ran; the open letters of a cause are found in the order of enqueue; letters know what
 * became of them, and jobs which payloads they had.
 */
const RECOVERY = `
alter table attempt add column release text;
alter table dead_letter add column release text;
-- The redrive run that has sent it back to work, and what became of its job since.
alter table dead_letter add column redrive text;
alter table dead_letter add column outcome text;
alter table dead_letter add column outcome_at integer;
create index dead_letter_open on dead_letter (fingerprint, job_seq) where redriven_at is null;
create index dead_letter_redrive on dead_letter (redrive, job_seq) where redrive is not null;

create table redrive_tick (
  redrive text not null,
  -- The start of its ten seconds.
  at integer not null,
  -- The worker that counts; - for no worker.
  holder text not null,
${REDRIVE_SUMS.map((count) => `  ${count} integer not null,`).join("\n")}
  primary key (redrive, at, holder)
) strict;

-- The payloads of jobs that got another one; number 0 is the first.
create table payload_version (
  job_seq integer not null references job (seq) on delete cascade,
  n integer not null,
  payload text not null,
  at integer not null,
  actor text,
  redrive text,
  why text,
  primary key (job_seq, n)
) strict;
`;

/** Which runs get a payload: null where a program of version 2 wrote it; what a redrive run waits for is found at once. */
const PAYLOADS = `
-- The first generation of the job whose runs get it.
alter table payload_version add column generation integer;
create index dead_letter_pending on dead_letter (redrive, job_seq) where redrive is not null and outcome is null;
`;

/** What happened, and who did it: rows are added and, when they are old, deleted, and never changed. */
const EVENTS = `
create table event (
  -- No number is used twice, so that a reader that pages by it misses none.
  seq integer primary key autoincrement,
  at integer not null,
  kind text not null,
  actor text,
  why text,
  subject text,
  -- The number of the intent whose outcome it is.
  intent integer,
  value text not null,
  -- The only one of its kind about its subject.
  once integer not null default 0 check (once in (0, 1))
) strict;
create unique index event_once on event (kind, subject) where once = 1;
create index event_time on event (at);
create index event_kind on event (kind, seq);
create index event_actor on event (actor, seq);
create index event_subject on event (subject, seq);
create index event_intent on event (intent) where intent is not null;
`;

/** Counts per minute, by cause and by type, begun with the letters that are there (cause-queries.ts says how they fold). */
const COUNTS = `
create table cause (
  fingerprint text not null,
  type text not null,
  release text not null,
  failures integer not null,
  deaths integer not null,
  redriven integer not null,
  removed integer not null,
  first_at integer,
  last_at integer,
  primary key (fingerprint, type, release)
) strict, without rowid;

create table cause_tick (
  fingerprint text not null,
  type text not null,
  release text not null,
  -- Its start; after some hours that of its hour, later that of its day.
  minute integer not null,
  -- The worker that counts; empty once the row is in the sums of its cause.
  holder text not null,
  failures integer not null,
  deaths integer not null,
  redriven integer not null,
  removed integer not null,
  primary key (fingerprint, type, release, minute, holder)
) strict;
create index cause_tick_open on cause_tick (minute) where holder <> '';
create index cause_tick_minutes on cause_tick (minute) where holder = '' and minute % 3600000 <> 0;
create index cause_tick_hours on cause_tick (minute) where holder = '' and minute % 3600000 = 0 and minute % 86400000 <> 0;
create index cause_tick_days on cause_tick (minute) where holder = '' and minute % 86400000 = 0;
create table flow (
  minute integer not null,
  type text not null,
  holder text not null,
  enqueued integer not null,
  completed integer not null,
  retried integer not null,
  dead integer not null,
  released integer not null,
  run_ms integer not null,
  wait_ms integer not null,
  primary key (minute, type, holder)
) strict;
create index flow_open on flow (minute) where holder <> '';
create index flow_minutes on flow (minute) where holder = '' and minute % 3600000 <> 0;
create index flow_hours on flow (minute) where holder = '' and minute % 3600000 = 0 and minute % 86400000 <> 0;
create index flow_days on flow (minute) where holder = '' and minute % 86400000 = 0;
insert into cause select fingerprint, type, '', count(*), count(*), count(redriven_at), 0,
    min(died_at) - min(died_at) % 60000, max(died_at) - max(died_at) % 60000
  from dead_letter group by fingerprint, type;
`;

/** SQL that leads from one version of the schema to the next. Version 1 is frozen: a change is a further entry. */
const STEPS: readonly Migration<string>[] = [
  { sql: TABLES, readableBy: 1 },
  { sql: [RECOVERY, EVENTS, COUNTS].join(""), readableBy: 1 },
  { sql: PAYLOADS, readableBy: 1 },
];

/** The same with the columns that versions add to the jobs. */
export const migrationsWith = (columns: typeof JOB_COLUMNS): readonly Migration<string>[] =>
  withAdded(STEPS, columns, (sql = "", addition) => {
    const { tables, shown } = addition(SQLITE);
    return `${sql}${tables}${shown ? views(shown) : ""}`;
  });

/** The migrations of this release. */
export const MIGRATIONS = migrationsWith(JOB_COLUMNS);
