// The job as it is once a verdict about its run is written, so that listeners and hooks get it without a read of the
// store.
import type { Job } from "./job.ts";
import type { Verdict } from "./verdict.ts";

/**
 * How the settling of a verdict ended. `counted`: it was written. `stale`: the lease was lost. `unwritten`: it could
 * not be written. `unanswered`: only the answer was lost, and the verdict would have left nothing of the job to check.
 */
export type Settled = "counted" | "stale" | "unwritten" | "unanswered";

/** The job after the verdict, settled about now. */
export function settledJob(job: Job, verdict: Verdict, now: number): Job {
  const { keepFinishedMs } = job;
  const ended = { finishedAt: now, updatedAt: now, expiresAt: expiryOf(now, keepFinishedMs) };
  switch (verdict.kind) {
    case "complete":
      return { ...job, ...ended, state: "completed", result: verdict.result };
    case "cancel":
      return { ...job, ...ended, state: "cancelled" };
    case "release":
      return {
        ...job,
        state: "queued",
        releases: job.releases + 1,
        runAt: now + verdict.delayMs,
        updatedAt: now,
        batchMost: verdict.batchMost ?? job.batchMost,
      };
    default:
      return charged(job, verdict, now);
  }
}

/** When retention deletes a job that ended at this time; null where it is not known how long the job is kept. */
export function expiryOf(endedAt: number, keepMs: number | null): number | null {
  return keepMs === null ? null : endedAt + keepMs;
}

function charged(job: Job, verdict: Extract<Verdict, { readonly failure: unknown }>, now: number): Job {
  const { charge, failure } = verdict;
  const bad = { ...job, failure, attempts: job.attempts + charge.attempts, crashes: job.crashes + charge.crashes };
  if (verdict.kind === "dead")
    return { ...bad, state: "dead", finishedAt: now, updatedAt: now, expiresAt: expiryOf(now, job.keepDeadMs) };
  const { delayMs, batchMost = job.batchMost } = verdict;
  return { ...bad, state: "queued", runAt: now + delayMs, lastDelayMs: delayMs, updatedAt: now, batchMost };
}

/** True if the job as it is `now` is what the verdict made of the run that `job` was claimed for. */
export function isSettledBy(now: Job, job: Job, verdict: Verdict): boolean {
  const after = settledJob(job, verdict, 0);
  // A job with a requested cancel becomes cancelled instead of going back to the queue.
  const isThere = now.state === after.state || (now.state === "cancelled" && after.state === "queued");
  return (
    isThere &&
    // All three are compared: a server that crashed may forget its last claims and give out an epoch again.
    now.epoch === job.epoch &&
    now.worker === job.worker &&
    now.startedAt === job.startedAt &&
    now.generation === job.generation &&
    now.attempts === after.attempts &&
    now.crashes === after.crashes &&
    now.releases === after.releases &&
    now.result === after.result &&
    now.failure?.fingerprint === after.failure?.fingerprint
  );
}
