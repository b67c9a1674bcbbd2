// The fields of every log line about one job.
import type { Job } from "../core/job.ts";
import { readTrace } from "../core/trace.ts";

/** The job by its id, its type and, where it has them, the key that its producer gave it and the id of its trace. */
export interface AboutJob {
  readonly job: string;
  readonly type: string;
  readonly key?: string;
  readonly trace_id?: string;
}

/** The fields that name a job in a log line; the trace is that of the run where it is known, else that of the enqueue. */
export function aboutJob(
  { id, type, key, trace }: Pick<Job, "id" | "type" | "key" | "trace">,
  run: { readonly traceId: string } | null = null,
): AboutJob {
  const about = key === null ? { job: id, type } : { job: id, type, key };
  const traceId = run?.traceId ?? readTrace(trace)?.traceId;
  return traceId === undefined ? about : { ...about, trace_id: traceId };
}
