// Builders of failures and verdicts, complete and legal; a test names only what it is about.
import { type Failure, type Terms, USUAL_TERMS } from "../../src/core/job.ts";
import type { Verdict } from "../../src/core/verdict.ts";
import type { Progress } from "../../src/store/store.ts";

type VerdictOf<K extends Verdict["kind"]> = Extract<Verdict, { kind: K }>;

/** A failure of a flaky network. */
export function failure(overrides: Partial<Failure> = {}): Failure {
  return {
    class: "transient",
    severity: "warning",
    name: "Error",
    message: "connection reset",
    stack: "Error: connection reset\n    at run (thumbnail.ts:7:11)",
    fingerprint: "f1",
    ...overrides,
  };
}

/** The run went well. */
export function complete(result: string | null = '{"ok":true}'): VerdictOf<"complete"> {
  return { kind: "complete", result };
}

/** The run went well, and nothing of its job is kept. */
export function forgotten(result: string | null = '{"ok":true}'): VerdictOf<"complete"> {
  return { kind: "complete", result, keep: false };
}

/** The run failed and is tried again, at once unless said otherwise. */
export function retry(overrides: Partial<VerdictOf<"retry">> = {}): VerdictOf<"retry"> {
  return {
    kind: "retry",
    delayMs: 0,
    lane: "retry",
    charge: { attempts: 1, crashes: 0 },
    failure: failure(),
    ...overrides,
  };
}

/** The worker died with the job in its hands, which is tried again. */
export function crashed(overrides: Partial<VerdictOf<"retry">> = {}): VerdictOf<"retry"> {
  return retry({ lane: "suspect", charge: { attempts: 1, crashes: 1 }, ...overrides });
}

/** The run is handed back uncharged. */
export function release(overrides: Partial<VerdictOf<"release">> = {}): VerdictOf<"release"> {
  return { kind: "release", delayMs: 0, reason: "shutdown", ...overrides };
}

/** The run was the last one. */
export function dead(overrides: Partial<VerdictOf<"dead">> = {}): VerdictOf<"dead"> {
  return {
    kind: "dead",
    reason: "exhausted",
    charge: { attempts: 1, crashes: 0 },
    failure: failure({ class: "permanent", severity: "error", message: "no such file" }),
    ...overrides,
  };
}

/** The run stopped because it was asked to. */
export function cancel(): VerdictOf<"cancel"> {
  return { kind: "cancel" };
}

/** The run goes on and says how far it is. */
export function progress(value: string): Progress {
  return { kind: "progress", value };
}

/** What a run was judged by: other than what a job of `newJob` carries in every respect. */
export const JUDGED_BY: Terms = {
  ...USUAL_TERMS,
  maxAttempts: 2,
  maxCrashes: 7,
  deadlineMs: 60_000,
  stuckMs: 5_000,
  stuckRetryMs: 50,
  stuckLimit: 1,
  keepFinishedMs: 1_000,
  keepDeadMs: 2_000,
};
