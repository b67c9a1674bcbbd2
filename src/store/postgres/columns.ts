// The columns of a job, and the ways to its neighbours, as queries here use them.
import { UNREADABLE } from "../rows.ts";

/** The stack of a job's last failure, which stands in the record of that run and is not written twice. */
export const lastStack = (s: string): string =>
  `(select a.error_stack from ${s}.attempt a where a.job_seq = j.seq order by a.epoch desc limit 1)`;

/** The columns of a job in the order of `jobFromRow`, with those of its lane. */
export const jobColumns = (
  s: string,
): string => `j.id, coalesce(l.type, '${UNREADABLE.type}'), coalesce(l.queue, '${UNREADABLE.queue}'),
  l.service, l.tenant, coalesce(l.priority, 0), j.key, j.state, j.payload, j.run_at, j.due_at, j.created_at, j.updated_at,
  j.started_at, j.finished_at, j.attempts, j.max_attempts, j.crashes, j.max_crashes, j.releases, j.generation, j.epoch,
  j.worker, j.cancel_requested::int, j.last_delay_ms, j.deadline_ms, j.stuck_ms, j.progress, j.result, j.failure,
  j.version, ${lastStack(s)}, j.limited::int`;

/** Joins jobs with what they belong to. */
export const withLane = (s: string): string => `left join ${s}.lane l on l.base = j.lane - j.lane % 4`;

/** Runs with the claim that took them, by the jobs that each claim names and whose lease is still that claim's. */
export const heldRuns = (s: string): string =>
  `${s}.claim c cross join unnest(c.seqs) with ordinality as e (seq, place) join ${s}.job j on j.seq = e.seq and j.nonce = c.nonce and j.worker = c.worker`;
