// What the counters of a job may be, the same in every database: what does not fit is refused where it is written, by a
// hand or by a restore, not when others are claimed with it. No run makes one of them reach its end.
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
