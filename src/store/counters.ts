// The range of a job's counters, the same in every database: a value outside is refused when it is written, by hand or
// by a restore, not when other jobs are claimed with it. No run reaches the end of a range.
import { JOB_BOUNDS } from "../core/new-job.ts";

const MANY = 1_000_000;
const MOST = 1_000_000_000_000;

const COUNTERS = {
  attempts: [0, MANY],
  max_attempts: [1, MANY],
  crashes: [0, MANY],
  max_crashes: [1, MANY],
  version: [1, JOB_BOUNDS.version],
  releases: [0, MOST],
  generation: [1, 1_000_000_000],
  epoch: [0, MOST],
} as const;

/** The condition on a counter, as SQL. */
export function within(column: keyof typeof COUNTERS): string {
  const [least, most] = COUNTERS[column];
  return `${column} between ${least} and ${most}`;
}
