// The tables, as a list of migrations that are applied in order and never changed once released. Tables are named in the
// singular and belong to Redrive. The plural views are for people, and the function `enqueue` is for programs in any
// language; the newest migration ends with the present form of both (views.ts, enqueue-function.ts).
//
// What a job says of itself and what the scheduler needs are kept apart. `waiting` holds one narrow row for every queued
// job and is the only thing a claim searches. A claim takes rows from there and notes them all in one row of `claim`; it
// writes no row of `job`. So a job that runs is `queued` by its own row, is in no row of `waiting`, and is in a claim
// under the epoch that follows its own; the epoch of its row is that of the last run that was settled. A settle writes
// the row once; it has no index that a run changes, and its page has room for a second version of it, so that Postgres
// updates it in place (HOT). Its payload comes last, because what an update leaves as it was at either end of a row is not
// written to the log again. There is one row of `ended` for all that ended together and go together. The numbers in such rows are neither
// compressed nor, as long as they fit, moved out of the row, which would cost more than all else about it. `place` has a
// row for every job that holds a place in a group; jobs without a group have nothing to do with it.
import { DEATH_REASONS } from "../../core/job.ts";
import { within } from "../counters.ts";
import { JOB_COLUMNS } from "../columns.ts";
import { type Migration, withAdded } from "../migrations.ts";
import { postgresDialect, time } from "./dialect.ts";
import { enqueueFunction } from "./enqueue-function.ts";
import { LANE_BELONGING } from "./lane-numbers.ts";
import { counts, payloads, recovery } from "./recovery-tables.ts";
import { views } from "./views.ts";

const oneOf = (column: string, values: readonly string[]): string =>
  `${column} in (${values.map((value) => `'${value}'`).join(", ")})`;

/**
 * The number of a group: a hash, so that no process has to hand out numbers; two groups with the same hash would share
 * places.
 */
export const groupNumber = (type: string, group: string): string => `hashtextextended(${type} || ' ' || ${group}, 0)`;

const laneTables = (s: string): string => `
create sequence ${s}.lane_n minvalue 0 start 0;
create table ${s}.lane (
  base bigint primary key,
  type text not null,
  queue text not null,
  service text,
  tenant text,
  group_key text,
  group_concurrency int,
  -- The same for all lanes of one type and group.
  group_n bigint generated always as (${groupNumber("type", "group_key")}) stored,
  priority int not null check (priority between 0 and 9),
  -- When it was made, or last taken into use again.
  used_at bigint not null,
  -- Since when it may go, and the number of the newest job some time after that.
  retired_at bigint,
  retired_seq bigint
);
create unique index lane_belonging on ${s}.lane (${LANE_BELONGING});
create index lane_used on ${s}.lane (used_at) where retired_at is null;
create index lane_retired on ${s}.lane (retired_at) where retired_at is not null and retired_seq is null;
create index lane_sealed on ${s}.lane (retired_seq) where retired_seq is not null;
`;

const jobTables = (s: string): string => `
create table ${s}.job (
  seq bigint generated always as identity primary key,
  lane bigint not null,
  due_at bigint not null,
  created_at bigint not null,
  max_attempts int not null check (${within("max_attempts")}),
  max_crashes int not null check (${within("max_crashes")}),
  version int not null check (${within("version")}),
  -- How long it is kept once it has ended; null as long as nobody has said so.
  keep_ms bigint,
  keep_dead_ms bigint,
  generation int not null default 1 check (${within("generation")}),
  run_at bigint not null,
  epoch bigint not null default 0 check (${within("epoch")}),
  updated_at bigint not null,
  releases bigint not null default 0 check (${within("releases")}),
  last_delay_ms bigint not null default 0,
  attempts int not null default 0 check (${within("attempts")}),
  crashes int not null default 0 check (${within("crashes")}),
  limited boolean not null default true,
  cancel_requested boolean not null default false,
  -- How many jobs a batch with this one may have; null for no limit.
  batch_most int,
  stuck_limit int,
  deadline_ms bigint,
  stuck_ms bigint,
  stuck_retry_ms bigint,
  started_at bigint,
  finished_at bigint,
  -- When it is deleted; null as long as nobody has said so.
  expires_at bigint,
  id text collate "C" not null unique,
  state text not null default 'queued',
  worker text collate "C",
  key text,
  error_message text,
  progress text,
  result text,
  failure text,
  payload text not null,
  check (${oneOf("state", ["queued", "completed", "dead", "cancelled"])}),
  check ((state = 'queued') = (finished_at is null)),
  check (expires_at is null or finished_at is not null)
) with (fillfactor = 45, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
create index job_keyed on ${s}.job (key, seq) where key is not null;
`;

const scheduleTables = (s: string): string => `
create table ${s}.waiting (
  lane bigint not null,
  run_at bigint not null,
  seq bigint not null,
  -- That of the job.
  epoch bigint not null default 0 check (${within("epoch")}),
  job_id text collate "C", -- Of a retry only, so that retries alone are in the indexes for people.
  primary key (lane, run_at, seq)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
create index waiting_retries on ${s}.waiting ((${time("run_at")})) where job_id is not null;
create index waiting_retry on ${s}.waiting (job_id) where job_id is not null;

-- The places that jobs hold in their groups. Whoever wants one that is taken meets this key, however old its picture is.
create table ${s}.place (
  group_n bigint not null,
  slot int not null,
  seq bigint not null unique,
  primary key (group_n, slot)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

create table ${s}.claim (
  n bigint generated always as identity primary key,
  worker text collate "C" not null,
  nonce text collate "C" not null,
  -- Number of the first of them; the others follow in the order of the array.
  ticket bigint not null,
  -- How far the runs of the worker had started by then.
  started bigint not null,
  at bigint not null,
  seqs bigint[] not null,
  -- Those of the leases.
  epochs bigint[] not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
  toast_tuple_target = 8160);
alter table ${s}.claim alter column seqs set storage external, alter column epochs set storage external;
create index claim_worker on ${s}.claim (worker);
create index claim_nonce on ${s}.claim (nonce);

create table ${s}.ended (
  state text not null,
  -- When they go, -1 as long as nobody has said so. What is said here of a job whose row says otherwise is void.
  at bigint not null,
  n bigint generated always as identity,
  seqs bigint[] not null,
  primary key (state, at, n)
) with (toast_tuple_target = 8160);
alter table ${s}.ended alter column seqs set storage external;
`;

const keyTables = (s: string): string => `
create table ${s}.job_key (
  type text collate "C" not null,
  key text collate "C" not null,
  job_id text collate "C" not null,
  digest text not null,
  created_at bigint not null,
  gone boolean not null default false,
  primary key (type, key)
);
create index job_key_job on ${s}.job_key (job_id);
create index job_key_gone on ${s}.job_key (created_at) where gone;
`;

/**
 * Rows that belong to a job name it by its number, without a foreign key: that would run a query for every row written
 * and every job deleted, which cost more than the deletion itself. A statement that deletes jobs deletes these rows
 * too; a prune finds rows of jobs that were deleted by hand.
 */
const historyTables = (s: string): string => `
create table ${s}.attempt (
  job_seq bigint not null,
  generation int not null,
  epoch bigint not null,
  attempt int not null,
  worker text,
  started_at bigint,
  ended_at bigint not null,
  delay_ms bigint,
  error_class text not null,
  error_name text not null,
  error_message text not null,
  error_stack text,
  failure text not null,
  primary key (job_seq, epoch)
);
create index attempt_recent on ${s}.attempt ((${time("ended_at")}));

create table ${s}.dead_letter (
  seq bigint generated always as identity primary key,
  job_seq bigint not null,
  generation int not null,
  type text collate "C" not null,
  reason text not null check (${oneOf("reason", DEATH_REASONS)}),
  error_class text not null,
  fingerprint text collate "C" not null,
  attempts int not null,
  crashes int not null,
  max_attempts int not null,
  died_at bigint not null,
  redriven_at bigint,
  error_name text not null,
  error_message text not null,
  error_stack text,
  failure text not null,
  unique (job_seq, generation)
);
create index dead_letter_live on ${s}.dead_letter (job_seq) where redriven_at is null;
create index dead_letter_time on ${s}.dead_letter ((${time("died_at")}));
create index dead_letter_type on ${s}.dead_letter (type, seq);
create index dead_letter_cause on ${s}.dead_letter (fingerprint, seq);
`;

const fleetTables = (s: string): string => `
create table ${s}.worker (
  seq bigint generated always as identity,
  id text collate "C" primary key,
  pid bigint not null,
  host text not null,
  release text,
  lease_end bigint not null,
  started_at bigint not null,
  beat_at bigint not null,
  given_up boolean not null default false,
  started_through bigint not null default 0
) with (fillfactor = 50);

create table ${s}.pause (
  seq bigint generated always as identity primary key,
  kind text not null check (${oneOf("kind", ["queue", "type", "service", "tenant"])}),
  name text not null,
  from_at bigint not null,
  until_at bigint,
  reason text not null
);

create table ${s}.service (
  name text collate "C" primary key,
  version bigint not null,
  value text not null
);

create table ${s}.cell (
  kind text collate "C" not null,
  name text collate "C" not null,
  holder text collate "C" not null,
  version bigint not null,
  value text not null,
  at bigint not null,
  primary key (kind, name, holder)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- Cells that tell of changes to others of their kind.
create index cell_changes on ${s}.cell (version) where name = '' and holder = '';

create table ${s}.control (
  one int primary key check (one = 1),
  version bigint not null
);
insert into ${s}.control values (1, 1);
`;

/**
 * What happened, and who did it: rows are added and, when they are old, deleted, and never changed. A sequence gives its
 * numbers in the order of calls, not of commits: a reader could see number 8 while number 7 is not committed, go on after
 * 8 and miss 7. So the last number is a row, which a writer holds until it commits.
 */
const eventTables = (s: string): string => `
create table ${s}.event (
  seq bigint primary key,
  at bigint not null,
  kind text collate "C" not null,
  actor text collate "C",
  why text,
  subject text collate "C",
  -- The number of the intent whose outcome it is.
  intent bigint,
  value text not null,
  -- The only one of its kind about its subject.
  once boolean not null default false
);
create unique index event_once on ${s}.event (kind, subject) where once;
create index event_time on ${s}.event (at);
create index event_kind on ${s}.event (kind, seq);
create index event_actor on ${s}.event (actor, seq);
create index event_subject on ${s}.event (subject, seq);
create index event_intent on ${s}.event (intent) where intent is not null;

create table ${s}.event_head (
  one int primary key check (one = 1),
  seq bigint not null,
  -- The time of the last event.
  at bigint not null
) with (fillfactor = 50);
`;

/** SQL for a schema of this name that leads from one version to the next. Version 1 is frozen: a change is a further entry. */
const STEPS: readonly Migration<(schema: string) => string>[] = [
  {
    sql: (s) =>
      [laneTables, jobTables, scheduleTables, keyTables, historyTables, fleetTables].map((part) => part(s)).join(""),
    readableBy: 1,
  },
  { sql: (s) => [recovery, eventTables, counts].map((part) => part(s)).join(""), readableBy: 1 },
  { sql: payloads, readableBy: 1 },
];

/** The same with the columns that versions add to the jobs. */
export const migrationsWith = (columns: typeof JOB_COLUMNS): typeof STEPS =>
  withAdded(STEPS, columns, (sql, addition) => (s) => {
    const { tables, shown } = addition(postgresDialect(s));
    return `${sql?.(s) ?? ""}${tables}${shown ? `${views(s, shown)}${enqueueFunction(s)}` : ""}`;
  });

/** The migrations of this release. */
export const MIGRATIONS = migrationsWith(JOB_COLUMNS);

/** The tables that the migrations create. */
export const TABLES: readonly string[] =
  "lane job waiting place claim ended job_key attempt dead_letter worker pause service cell control event event_head cause cause_tick flow redrive_tick payload_version".split(
    " ",
  );
