// The one check of new jobs. It is due at the door of the store; where jobs were checked one by one on their way, so that
// each is refused for itself, the set they are written as says so, and the door does not check them again.
import { checkNewJob, type NewJob } from "../core/new-job.ts";

const CHECKED = new WeakSet<readonly NewJob[]>();

/** The set, of which every job was checked. */
export function asChecked(jobs: readonly NewJob[]): readonly NewJob[] {
  CHECKED.add(jobs);
  return jobs;
}

/** Throws unless all of these may be stored as they are. */
export function checkNewJobs(jobs: readonly NewJob[]): void {
  if (CHECKED.has(jobs)) return;
  for (const job of jobs) checkNewJob(job);
}
