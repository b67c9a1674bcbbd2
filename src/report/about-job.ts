// The fields of every log line about one job or one batch, and a log that has them in each line.
import type { Job } from "../core/job.ts";
import { readTrace } from "../core/trace.ts";
import type { Log } from "../system/log.ts";

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

/** The fields that name a batch of jobs of one type; the trace is that of the batch. */
export function aboutBatch(
  type: string,
  jobs: number,
  run: { readonly traceId: string } | null,
): { readonly type: string; readonly jobs: number; readonly trace_id?: string } {
  return run === null ? { type, jobs } : { type, jobs, trace_id: run.traceId };
}

/** The log with these fields in each of its lines; what else the logger can do stays. */
export function logAbout(log: Log, about: object): Log {
  const at = (level: "debug" | "info" | "warn" | "error") => (fields: object, message: string) =>
    // Loggers of this shape also take only a text, and code without types relies on it.
    typeof fields === "string" ? log[level](about, fields) : log[level]({ ...about, ...fields }, message);
  const isLevelEnabled = log.isLevelEnabled && ((level: string): boolean => log.isLevelEnabled?.(level) ?? true);
  return Object.assign(Object.create(log) as Log, {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    ...(isLevelEnabled && { isLevelEnabled }),
  });
}
