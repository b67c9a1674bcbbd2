-- The questions people ask with SQL. The views are the same on SQLite and Postgres (there in the schema redrive); only
-- the way to say "an hour ago" differs. :job stands for the id of a job.

-- Attempts per job
select type, status, attempts, max_attempts, id from jobs order by attempts desc, id limit 5;

-- Dead letters, newest first
select attempts, last_error, job_id from dead_letters order by created_at desc, job_id limit 5;

-- The stack trace and the input of one
select error_stacktrace, input_data from dead_letters where job_id = :job;

-- Dead letters by type
select job_type, count(*) as letters from dead_letters group by job_type order by letters desc, job_type;

-- Dead letters by class and reason
select failure_type, reason, count(*) as letters, min(last_error) as example from dead_letters
where status = 'dead' group by failure_type, reason order by letters desc, failure_type;

-- Failures of the last hour (sqlite)
select job_type, last_error, job_id from dead_letters
where created_at > datetime('now', '-1 hour') order by created_at desc, job_id limit 5;

-- Failures of the last hour (postgres)
select job_type, last_error, job_id from dead_letters
where created_at > now() - interval '1 hour' order by created_at desc, job_id limit 5;
