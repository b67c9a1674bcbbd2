// The tables and columns of recovery, which version 2 of the schema adds: what became of dead letters, and counts by cause
// and by type.
import { LATEST_INSTANT } from "../../core/job.ts";
import { REDRIVE_SUMS } from "../../core/recovery/outcome.ts";

const COUNTED = `(fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0)`;

/**
 * Failures know the release that ran; the open letters of a cause are found in the order of enqueue; letters know what
 * became of them, and jobs which payloads they had. Dead jobs that wait for their archive are among the ended ones, as
 * those set aside since are.
 */
export const recovery = (s: string): string => `
alter table ${s}.attempt add column release text;
alter table ${s}.dead_letter add column release text;
-- The redrive run that has sent it back to work, and what became of its job since.
alter table ${s}.dead_letter add column redrive text collate "C";
alter table ${s}.dead_letter add column outcome text;
alter table ${s}.dead_letter add column outcome_at bigint;
create index dead_letter_open on ${s}.dead_letter (fingerprint, job_seq) where redriven_at is null;
insert into ${s}.ended (state, at, seqs) select state, expires_at, array_agg(seq order by seq) from ${s}.job
  where state = 'dead' and expires_at = ${LATEST_INSTANT} group by state, expires_at, seq / 1000;
create index dead_letter_redrive on ${s}.dead_letter (redrive, job_seq) where redrive is not null;

create table ${s}.redrive_tick (
  redrive text collate "C" not null,
  -- The start of its ten seconds.
  at bigint not null,
  -- The worker that counts; - for no worker.
  holder text collate "C" not null,
${REDRIVE_SUMS.map((count) => `  ${count} bigint not null,`).join("\n")}
  primary key (redrive, at, holder)
) with ${COUNTED};

-- The payloads of jobs that got another one; number 0 is the first.
create table ${s}.payload_version (
  job_seq bigint not null,
  n int not null,
  payload text not null,
  at bigint not null,
  actor text,
  redrive text,
  why text,
  primary key (job_seq, n)
);
`;

/** Which runs get a payload: null where a program of version 2 wrote it; what a redrive run waits for is found at once. */
export const payloads = (s: string): string => `
-- The first generation of the job whose runs get it.
alter table ${s}.payload_version add column generation int;
create index dead_letter_pending on ${s}.dead_letter (redrive, job_seq) where redrive is not null and outcome is null;
`;

/** Counts per minute, by cause and by type, begun with the letters that are there (cause-queries.ts says how they fold). */
export const counts = (s: string): string => `
create table ${s}.cause (
  fingerprint text collate "C" not null,
  type text collate "C" not null,
  release text collate "C" not null,
  failures bigint not null,
  deaths bigint not null,
  redriven bigint not null,
  removed bigint not null,
  first_at bigint,
  last_at bigint,
  primary key (fingerprint, type, release)
) with ${COUNTED};

create table ${s}.cause_tick (
  fingerprint text collate "C" not null,
  type text collate "C" not null,
  release text collate "C" not null,
  -- Its start; after some hours that of its hour, later that of its day.
  minute bigint not null,
  -- The worker that counts; empty once the row is in the sums of its cause.
  holder text collate "C" not null,
  failures bigint not null,
  deaths bigint not null,
  redriven bigint not null,
  removed bigint not null,
  primary key (fingerprint, type, release, minute, holder)
) with ${COUNTED};
create index cause_tick_open on ${s}.cause_tick (minute) where holder <> '';
create index cause_tick_minutes on ${s}.cause_tick (minute) where holder = '' and minute % 3600000 <> 0;
create index cause_tick_hours on ${s}.cause_tick (minute) where holder = '' and minute % 3600000 = 0 and minute % 86400000 <> 0;
create index cause_tick_days on ${s}.cause_tick (minute) where holder = '' and minute % 86400000 = 0;
create table ${s}.flow (
  minute bigint not null,
  type text collate "C" not null,
  holder text collate "C" not null,
  enqueued bigint not null,
  completed bigint not null,
  retried bigint not null,
  dead bigint not null,
  released bigint not null,
  run_ms bigint not null,
  wait_ms bigint not null,
  primary key (minute, type, holder)
) with ${COUNTED};
create index flow_open on ${s}.flow (minute) where holder <> '';
create index flow_minutes on ${s}.flow (minute) where holder = '' and minute % 3600000 <> 0;
create index flow_hours on ${s}.flow (minute) where holder = '' and minute % 3600000 = 0 and minute % 86400000 <> 0;
create index flow_days on ${s}.flow (minute) where holder = '' and minute % 86400000 = 0;
insert into ${s}.cause select fingerprint, type, '', count(*), count(*), count(redriven_at), 0,
    min(died_at) - min(died_at) % 60000, max(died_at) - max(died_at) % 60000
  from ${s}.dead_letter group by fingerprint, type;
`;
