// The result of one run, in the terms of tests.
import type { DeathReason, Failure, Job } from "../core/job.ts";
import type { ReleaseReason, Verdict } from "../core/verdict.ts";

/** The result of one run. */
export interface RunReport<Result = unknown> {
  /** The job as it is now. */
  readonly job: Job;
  readonly state: "completed" | "retrying" | "dead" | "snoozed" | "released" | "cancelled";
  /** What the handler returned, passed through JSON. */
  readonly result: Result | undefined;
  /** What went wrong; null unless it is retrying or dead. */
  readonly failure: Failure | null;
  /** Why it is dead, or why it was released uncharged. */
  readonly reason: DeathReason | ReleaseReason | null;
  /** When it runs again, in epoch milliseconds; null if it does not. */
  readonly nextRunAt: number | null;
}

/** The report of a verdict. */
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
