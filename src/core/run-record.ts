// The runs of a job: the first is the original, every later one a retry of it. Made from the job and the records of its
// failed runs; the view `runs` gives the same in SQL.
import type { AttemptRecord, Job } from "./job.ts";

/** The status of a run. A waiting retry is a separate run. */
export const RUN_STATUSES = ["queued", "running", "failed", "pending_retry", "completed", "cancelled"] as const;
/** One of `RUN_STATUSES`. */
export type RunStatus = (typeof RUN_STATUSES)[number];

/** One run of a job. Times are epoch milliseconds by the store's clock. */
export interface RunRecord {
  /** The id of the job for its first run; for later runs the same, followed by generation and number: `ID:1.2`. */
  readonly id: string;
  /** The id of the job. */
  readonly jobId: string;
  /** The key of the job; null without one. */
  readonly key: string | null;
  /** The type of the job. */
  readonly type: string;
  /** The generation of the job. */
  readonly generation: number;
  /** Runs of this generation before it: 0 for the first. */
  readonly retryCount: number;
  /** Retries allowed: attempts without the first. */
  readonly maxRetries: number;
  /** False for the first run of the job. */
  readonly isRetry: boolean;
  /** The id of the job's first run; null for that one itself. */
  readonly originalRunId: string | null;
  /** The status of the run. */
  readonly status: RunStatus;
  /** When the retry is due: this one if it waits, otherwise the one that followed. */
  readonly nextRetryAt: number | null;
  /** What went wrong; for a waiting retry, what went wrong before. */
  readonly errorMessage: string | null;
  /** When it started; null if it did not. */
  readonly startedAt: number | null;
  /** When it ended; null if it has not. */
  readonly completedAt: number | null;
  /** `[RETRY 1/4]`; null for the first run, and without the limit where only the definition of the type has it. */
  readonly label: string | null;
}

/** The fields that runs are counted from. */
type Counted = Pick<Job, "id" | "key" | "type" | "maxAttempts" | "limited">;

/** The id of a run. */
export function runId(jobId: string, generation: number, run: number): string {
  return generation === 1 && run === 1 ? jobId : `${jobId}:${generation}.${run}`;
}

/** The id of the job that a run belongs to. */
export function jobOfRun(id: string): string {
  return id.replace(/:[0-9]+\.[0-9]+$/, "");
}

/** Every run of a job, oldest first. Runs that were not charged do not count. */
export function runsOf(job: Job, history: readonly AttemptRecord[]): RunRecord[] {
  const bad: RunRecord[] = [];
  const seen = new Set<string>();
  for (const { generation, attempt, failure, delayMs, startedAt, endedAt } of history) {
    const place = `${generation}.${attempt}`;
    if (attempt === 0 || seen.has(place)) continue;
    seen.add(place);
    const run = runAt(job, generation, attempt);
    const nextRetryAt = delayMs === null ? null : endedAt + delayMs;
    const { message: errorMessage } = failure;
    bad.push({ ...run, status: "failed", nextRetryAt, errorMessage, startedAt, completedAt: endedAt });
  }
  return job.state === "dead" && wasCharged(job, history) ? bad : [...bad, present(job, history)];
}

/** The current or last run of a job. */
export function latestRun(job: Job): RunRecord {
  if (job.state !== "dead" || job.attempts === 0) return present(job, []);
  const run = runAt(job, job.generation, job.attempts);
  const errorMessage = job.failure?.message ?? null;
  return { ...run, status: "failed", errorMessage, startedAt: job.startedAt, completedAt: job.finishedAt };
}

/** True if a dead job was charged for its end; a deadline that passed before the run began charges nothing. */
function wasCharged({ attempts, generation, epoch }: Job, history: readonly AttemptRecord[]): boolean {
  const isBefore = (record: AttemptRecord): boolean =>
    record.generation === generation && record.attempt === attempts && record.epoch < epoch;
  return attempts > 0 && !history.some(isBefore);
}

/** The run that has no failure record yet. */
function present(job: Job, history: readonly AttemptRecord[]): RunRecord {
  const { state, attempts, startedAt, finishedAt, runAt: dueAt, failure } = job;
  const run = runAt(job, job.generation, attempts + 1);
  const why = failure?.message ?? null;
  switch (state) {
    case "queued":
      if (attempts === 0) return { ...run, status: "queued" };
      return { ...run, status: "pending_retry", nextRetryAt: dueAt, errorMessage: why };
    case "running":
      return { ...run, status: "running", startedAt };
    case "completed":
      return { ...run, status: "completed", startedAt, completedAt: finishedAt };
    case "cancelled": {
      // A retry that was cancelled while it waited never started; the job's `startedAt` belongs to the run before.
      const isSettled = history.some(({ epoch }) => epoch === job.epoch);
      return { ...run, status: "cancelled", startedAt: isSettled ? null : startedAt, completedAt: finishedAt };
    }
    case "dead":
      return { ...run, status: "failed", errorMessage: why, completedAt: finishedAt };
  }
}

function runAt({ id, key, type, maxAttempts, limited }: Counted, generation: number, run: number): RunRecord {
  const isFirst = generation === 1 && run === 1;
  const most = limited ? `/${maxAttempts - 1}` : "";
  return {
    id: runId(id, generation, run),
    jobId: id,
    key,
    type,
    generation,
    retryCount: run - 1,
    maxRetries: maxAttempts - 1,
    isRetry: run > 1,
    originalRunId: isFirst ? null : id,
    status: "queued",
    nextRetryAt: null,
    errorMessage: null,
    startedAt: null,
    completedAt: null,
    label: run > 1 ? `[RETRY ${run - 1}${most}]` : null,
  };
}
