// Checks each new job once. The store checks the jobs that it is given; a caller that has checked them one by one, so that
// each is refused on its own, marks the list as checked, and the store does not check it again.
import { checkNewJob, type NewJob } from "../core/new-job.ts";

const CHECKED = new WeakSet<readonly NewJob[]>();

/** Marks a list of which every job was checked, and returns it. */
export function asChecked(jobs: readonly NewJob[]): readonly NewJob[] {
  CHECKED.add(jobs);
  return jobs;
}

/** Throws unless all of these jobs may be stored unchanged. */
export function checkNewJobs(jobs: readonly NewJob[]): void {
  if (CHECKED.has(jobs)) return;
  for (const job of jobs) checkNewJob(job);
}
