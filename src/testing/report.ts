// What became of one run, in the words that tests use.
import type { DeathReason, Failure, Job } from "../core/job.ts";
import type { ReleaseReason, Verdict } from "../core/verdict.ts";

/** What became of one run. */
export interface RunReport<Result = unknown> {
  /** The job as it is now. */
  readonly job: Job;
  readonly state: "completed" | "retrying" | "dead" | "snoozed" | "released" | "cancelled";
  /** What the handler returned, after its way through JSON. */
  readonly result: Result | undefined;
  /** What went wrong; null unless it is retrying or dead. */
  readonly failure: Failure | null;
  /** Why it is dead, or why it was handed back uncharged. */
  readonly reason: DeathReason | ReleaseReason | null;
  /** When it runs again, in epoch milliseconds; null if it does not. */
  readonly nextRunAt: number | null;
}

/** Puts a verdict into words. */
export function reportOf(job: Job, verdict: Verdict, nextRunAt: number | null): RunReport {
  return {
    job,
    state: stateOf(verdict),
    result: verdict.kind === "complete" && verdict.result !== null ? JSON.parse(verdict.result) : undefined,
    failure: "failure" in verdict ? verdict.failure : null,
    reason: "reason" in verdict ? verdict.reason : null,
    nextRunAt,
  };
}

function stateOf(verdict: Verdict): RunReport["state"] {
  switch (verdict.kind) {
    case "complete":
      return "completed";
    case "retry":
      return "retrying";
    case "release":
      return verdict.reason === "snooze" ? "snoozed" : "released";
    case "cancel":
      return "cancelled";
    default:
      return "dead";
  }
}
