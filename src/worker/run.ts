// One run of one job while a worker holds it: why it was asked to stop, and the signal that tells its handler.
import type { Lease } from "../core/job.ts";
import type { Verdict } from "../core/verdict.ts";
import type { BatchItem } from "../jobs/batch-handler.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import type { RunTrace } from "../report/traces.ts";
import type { ClaimedJob } from "../store/store.ts";

/** Why a run was asked to stop. */
export type StopReason = "timeout" | "stuck" | "shutdown" | "cancel" | "lease_lost" | "contact_lost";

const WORDS: Readonly<Record<StopReason, string>> = {
  timeout: "The run took longer than its timeout.",
  stuck: "The run took longer than its stuck limit.",
  shutdown: "The worker is stopping.",
  cancel: "The job was cancelled.",
  lease_lost: "The lease was lost: another process ended this run, and its job may run elsewhere by now.",
  contact_lost: "Contact with the store was lost for too long.",
};

/** A run in progress. A class, because there is one per job and most of them use few of its fields. */
export class Run {
  place = 0;
  /** It has no slot for itself, because it is in a batch. */
  isTogether = false;
  readonly job: ClaimedJob;
  readonly definition: JobDefinition;
  /** When the claim was answered and when the handler was called, on the monotonic clock. */
  readonly claimedMs: number;
  readonly startedMs: number;
  /** When it was judged, on the same clock. */
  endedMs = 0;
  /** The first reason given to stop; later ones change nothing. */
  stopped: StopReason | null = null;
  /** Its verdict was handed over; a later one is dropped. */
  isSettled = false;
  /** Called when the run was asked to stop. */
  onStop: ((reason: StopReason) => void) | null = null;
  /** Called when the store has answered its verdict, or the verdict was given up. */
  onSettled: (() => void) | null = null;
  /** Its span, which the jobs of a batch share; null without traces. */
  trace: RunTrace | null = null;
  /** What the handler completed inside its own transaction; whether that committed, only the store knows. */
  completion: Extract<Verdict, { readonly kind: "complete" }> | null = null;
  /** Resolves when the handler has really returned, however long after its run was settled. */
  returned: Promise<void> = Promise.resolve();
  #controller: AbortController | null = null;

  constructor(job: ClaimedJob, definition: JobDefinition, claimedMs: number, startedMs: number) {
    this.job = job;
    this.definition = definition;
    this.claimedMs = claimedMs;
    this.startedMs = startedMs;
  }

  /** The handler's signal; created on first use, because most handlers never read it. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.stopped) this.#controller.abort(abortError(this.stopped));
    }
    return this.#controller.signal;
  }

  /** Asks the handler to stop. */
  stop(reason: StopReason): void {
    if (this.stopped) return;
    this.stopped = reason;
    this.#controller?.abort(abortError(reason));
    this.onStop?.(reason);
  }
}

/** The reason that an abort signal carries. */
export function abortError(reason: StopReason): Error {
  const error = new Error(WORDS[reason]);
  error.name = reason === "timeout" ? "TimeoutError" : "AbortError";
  return error;
}

/**
 * True for a job that is held under this lease; compares epoch and nonce, because a crashed server may give out an
 * epoch again.
 */
export function isUnder({ id, epoch, nonce }: ClaimedJob, lease: Lease): boolean {
  return id === lease.id && epoch === lease.epoch && nonce === lease.nonce;
}

/** The batch item of a run. */
export function itemOf(run: Run, input: unknown): BatchItem {
  const { id, epoch, nonce, attempts, maxAttempts, payload } = run.job;
  return {
    id,
    input,
    ...(run.definition.input ? {} : { text: payload }),
    attempt: attempts + 1,
    maxAttempts,
    lease: { id, epoch, nonce },
    get signal() {
      return run.signal;
    },
  };
}
