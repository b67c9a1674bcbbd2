// The fields of every log line about one job.
import type { Job } from "../core/job.ts";

/** The job by its id, its type and, where it has one, the key that its producer gave it. */
export interface AboutJob {
  readonly job: string;
  readonly type: string;
  readonly key?: string;
}

/** The fields that name a job in a log line. */
export function aboutJob({ id, type, key }: Pick<Job, "id" | "type" | "key">): AboutJob {
  return key === null ? { job: id, type } : { job: id, type, key };
}
