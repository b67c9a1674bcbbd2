// The last step of a run: what people and programs hear about it. Log lines, counts, events and the hook for deaths,
// in one place, so that a run judged by a reaper is reported like any other.
import { formatDuration } from "../core/duration.ts";
import { textOf } from "../core/failure.ts";
import type { Job } from "../core/job.ts";
import { isNextRound } from "../core/round.ts";
import type { FleetBreaker } from "../core/service-record.ts";
import { settledJob, type Settled } from "../core/after-verdict.ts";
import type { Verdict } from "../core/verdict.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import { isLogged, type Log } from "../system/log.ts";

/** What a worker tells programs. */
export type WorkerEvent =
  | {
      readonly kind: "job.completed" | "job.retried" | "job.dead" | "job.released" | "job.cancelled";
      readonly job: Job;
      readonly verdict: Verdict;
    }
  | { readonly kind: "job.stale"; readonly job: Job; readonly verdict: Verdict }
  | { readonly kind: "worker.started" | "worker.stopped" | "worker.given_up"; readonly worker: string }
  /** The breaker of a service is not as it was, for the whole fleet. */
  | {
      readonly kind: "breaker.changed";
      readonly service: string;
      readonly state: FleetBreaker["state"];
      readonly before: FleetBreaker["state"];
    }
  /** Only this worker fails with a service; it leaves it alone until then. */
  | { readonly kind: "worker.sick"; readonly worker: string; readonly service: string; readonly until: number }
  /** Half of the slots are lost to handlers that ignore their abort; the process should be replaced. */
  | { readonly kind: "worker.spent"; readonly worker: string; readonly leaked: number };

/** Where events go. */
export interface WorkerEvents {
  emit(event: WorkerEvent): void;
}

/** What a worker has done. */
export interface WorkerCounts {
  claimed: number;
  completed: number;
  retried: number;
  dead: number;
  released: number;
  cancelled: number;
  /** Verdicts that were refused because the lease was lost. */
  stale: number;
  /** Slots lost to handlers that ignored their abort. */
  leaked: number;
}

/** Counts at the start. */
export function zeroCounts(): WorkerCounts {
  return { claimed: 0, completed: 0, retried: 0, dead: 0, released: 0, cancelled: 0, stale: 0, leaked: 0 };
}

const FIELD = {
  complete: "completed",
  retry: "retried",
  dead: "dead",
  release: "released",
  cancel: "cancelled",
} as const;

/** How much people want to hear of it. */
const LEVEL = { complete: "debug", release: "debug", cancel: "info", retry: "info", dead: "warn" } as const;

/** Reports one judged run. */
export type Reporter = (job: Job, verdict: Verdict, settled: Settled) => void;

/** A reporter for one worker. */
export function openReporter(options: {
  readonly log: Log;
  readonly events: WorkerEvents;
  readonly counts: WorkerCounts;
  readonly definitions: ReadonlyMap<string, JobDefinition>;
  readonly now: () => number;
}): Reporter {
  const { log, counts, definitions, now } = options;
  const events = unbreakable(options.events, log);
  return (job, verdict, settled) => {
    if (settled === "unwritten") {
      const about = { job: job.id, type: job.type };
      return log.error(about, `the ${verdict.kind} of this run could not be written; the job will be judged by others`);
    }
    if (settled === "unanswered") {
      const about = { job: job.id, type: job.type };
      return log.warn(
        about,
        `the answer to the ${verdict.kind} of this run was lost, and its job is gone: as it would be after it, or after a run of somebody else`,
      );
    }
    if (settled === "stale") {
      counts.stale += 1;
      log.warn(
        { job: job.id, type: job.type },
        `lease lost: the ${verdict.kind} of this run was refused, because its job was taken from it meanwhile`,
      );
      return events.emit({ kind: "job.stale", job, verdict });
    }
    const field = FIELD[verdict.kind];
    counts[field] += 1;
    describe(log, job, verdict);
    if (verdict.kind === "dead") callOnDead(definitions.get(job.type), settledJob(job, verdict, now()), log);
    events.emit(new JobEvent(`job.${field}`, job, verdict, now));
  };
}

/** A class, because there is one per run and most of the time nobody asks for its job. */
class JobEvent {
  readonly kind: `job.${(typeof FIELD)[keyof typeof FIELD]}`;
  readonly verdict: Verdict;
  readonly #job: Job;
  readonly #now: () => number;

  constructor(kind: JobEvent["kind"], job: Job, verdict: Verdict, now: () => number) {
    this.kind = kind;
    this.verdict = verdict;
    this.#job = job;
    this.#now = now;
  }

  /** The job as it is after the verdict. */
  get job(): Job {
    return settledJob(this.#job, this.verdict, this.#now());
  }
}

function describe(log: Log, job: Job, verdict: Verdict): void {
  const level = LEVEL[verdict.kind];
  if (level !== "warn" && !isLogged(log, level)) return;
  const about = { job: job.id, type: job.type };
  if (verdict.kind === "complete") log.debug(about, `completed (attempt ${job.attempts + 1}/${job.maxAttempts})`);
  if (verdict.kind === "release") log.debug({ ...about, reason: verdict.reason }, "released uncharged");
  if (verdict.kind === "cancel") log.info(about, "cancelled");
  if (verdict.kind !== "retry" && verdict.kind !== "dead") return;
  const { failure, charge } = verdict;
  const attempts = job.attempts + charge.attempts;
  const what = `${failure.name}: ${failure.message} (attempt ${attempts}/${job.maxAttempts})`;
  if (verdict.kind === "retry") {
    log.info(
      { ...about, class: failure.class, severity: failure.severity },
      `${what}, requeueing for attempt ${attempts + 1} in ${waitText(job.type, verdict.delayMs)}`,
    );
  } else {
    log.warn(
      { ...about, class: failure.class, severity: failure.severity, reason: verdict.reason },
      `${what}, moved to the dead letter queue`,
    );
  }
}

/** The user's hook must not harm the worker. */
function callOnDead(definition: JobDefinition | undefined, job: Job, log: Log): void {
  if (!definition?.onDead) return;
  const failed = (error: unknown): void =>
    log.error({ job: job.id, error: textOf(error) }, `onDead of ${job.type} failed`);
  try {
    Promise.resolve(definition.onDead(job)).catch(failed);
  } catch (error) {
    failed(error);
  }
}

/** Events whose listeners can do no harm. */
export function unbreakable(events: WorkerEvents, log: Log): WorkerEvents {
  return {
    emit(event) {
      try {
        events.emit(event);
      } catch (error) {
        log.error({ event: event.kind, error: textOf(error) }, "a listener to events failed");
      }
    },
  };
}

function waitText(type: string, ms: number): string {
  return isNextRound(type, ms) ? "the next round" : formatDuration(ms);
}
