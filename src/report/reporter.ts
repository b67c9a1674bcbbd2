// The last step of a run: reports it. Log lines, counts, events and the hook for deaths in one place, so that a run
// judged by a reaper is reported like any other.
import { formatDuration } from "../core/duration.ts";
import { textOf } from "../core/failure.ts";
import type { Job } from "../core/job.ts";
import { isNextRound } from "../core/round.ts";
import type { Breaker } from "../core/service-record.ts";
import { settledJob, type Settled } from "../core/after-verdict.ts";
import type { Verdict } from "../core/verdict.ts";
import type { FlowMeter } from "../store/flow-meter.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import { isLogged, type Log } from "../system/log.ts";
import { aboutJob } from "./about-job.ts";
import type { Meter } from "./meter.ts";

/** A judged run whose verdict is written. */
interface Judged<Kind extends string> {
  readonly kind: Kind;
  /** The job after the verdict. */
  readonly job: Job;
  /** The verdict about the run. */
  readonly verdict: Verdict;
}

/** An event about a worker. */
interface OfWorker<Kind extends string> {
  readonly kind: Kind;
  /** The id of the worker. */
  readonly worker: string;
}

/** The events of a worker. */
export type WorkerEvent =
  /** A run succeeded and the store has written it: the job is completed. */
  | Judged<"job.completed">
  /** A run failed, was stuck or was lost with its worker, and the job waits for its next attempt. */
  | Judged<"job.retried">
  /** A job died: a dead letter with its reason is in the store. */
  | Judged<"job.dead">
  /** A run was handed back without using an attempt; the job waits again. `verdict.reason` says why. */
  | Judged<"job.released">
  /** A job was cancelled: while it waited, or by ending its run. */
  | Judged<"job.cancelled">
  /** The store refused the verdict of a run that had lost its lease: another worker runs the job, or has judged it. */
  | {
      readonly kind: "job.stale";
      /** The job as the run saw it. */
      readonly job: Job;
      /** The verdict that was refused. */
      readonly verdict: Verdict;
    }
  /** A worker of this process has registered and begins to take jobs. */
  | OfWorker<"worker.started">
  /** A worker of this process has stopped; its jobs are finished or handed back. */
  | OfWorker<"worker.stopped">
  /**
   * The fleet gave up a worker of this process, because it sent no heartbeat for its lease; it comes back under a new
   * id.
   */
  | OfWorker<"worker.given_up">
  /** A worker of this process changed the breaker of a service, or saw that it has changed, for the whole fleet. */
  | {
      readonly kind: "breaker.changed";
      /** The name of the service. */
      readonly service: string;
      /** The state now; `isolated` is open by hand. */
      readonly state: Breaker["state"];
      /** The state before. */
      readonly before: Breaker["state"];
    }
  /** Calls to a service fail only in this worker, not in others; it takes no jobs of that service for a while. */
  | {
      readonly kind: "worker.sick";
      /** The id of the worker. */
      readonly worker: string;
      /** The name of the service. */
      readonly service: string;
      /** When it takes jobs of the service again, in epoch milliseconds. */
      readonly until: number;
    }
  /** Half of a worker's slots are lost to handlers that ignore their abort signal; replace the process. */
  | {
      readonly kind: "worker.spent";
      /** The id of the worker. */
      readonly worker: string;
      /** The slots that are lost. */
      readonly leaked: number;
    };

/** The destination of events. */
export interface WorkerEvents {
  emit(event: WorkerEvent): void;
}

/** What a worker has done. */
export interface WorkerCounts {
  /** Jobs taken from the store. */
  claimed: number;
  /** Runs that succeeded. */
  completed: number;
  /** Runs after which the job waits for its next attempt. */
  retried: number;
  /** Jobs that became dead letters. */
  dead: number;
  /** Runs handed back without using an attempt. */
  released: number;
  /** Jobs that were cancelled. */
  cancelled: number;
  /** Verdicts that the store refused because the run had lost its lease. */
  stale: number;
  /** Slots lost to handlers that ignored their abort signal. */
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

/** The log level of each kind of verdict. */
const LEVEL = { complete: "debug", release: "debug", cancel: "info", retry: "warn", dead: "error" } as const;

/** When a run was claimed, began and ended, on the monotonic clock. */
export interface RunTimes {
  readonly claimedMs: number;
  readonly startedMs: number;
  readonly endedMs: number;
  /** Its span; null without traces. */
  readonly trace?: { readonly traceId: string } | null;
}

/** Reports one judged run; without times for one that this process did not run. */
export type Reporter = (job: Job, verdict: Verdict, settled: Settled, times?: RunTimes) => void;

/** A reporter for one worker. */
export function openReporter(options: {
  readonly log: Log;
  readonly events: WorkerEvents;
  readonly counts: WorkerCounts;
  readonly definitions: ReadonlyMap<string, JobDefinition>;
  readonly now: () => number;
  /** Absent where runs are not counted for the store. */
  readonly flow?: FlowMeter;
  /** Absent where runs are not counted for metrics. */
  readonly meter?: Meter;
}): Reporter {
  const { log, counts, definitions, now, flow, meter } = options;
  const events = unbreakable(options.events, log);
  return (job, verdict, settled, times) => {
    if (settled === "unwritten") {
      return log.error(
        aboutJob(job, times?.trace),
        `the ${verdict.kind} of this run could not be written; another worker will judge the job`,
      );
    }
    if (settled === "unanswered") {
      return log.warn(
        aboutJob(job, times?.trace),
        `the answer to the ${verdict.kind} of this run was lost, and its job is deleted: by this verdict, or after a run on another worker`,
      );
    }
    if (settled === "stale") {
      counts.stale += 1;
      meter?.stale(job.type);
      log.warn(
        aboutJob(job, times?.trace),
        `lease lost: the ${verdict.kind} of this run was refused, because another worker has taken over its job`,
      );
      return events.emit({ kind: "job.stale", job, verdict });
    }
    const field = FIELD[verdict.kind];
    counts[field] += 1;
    meter?.ran(job, verdict, times);
    if (flow) measure(flow, job, verdict.kind, times);
    describe(log, job, verdict, times?.trace);
    if (verdict.kind === "dead")
      callOnDead(definitions.get(job.type), settledJob(job, verdict, now()), log, times?.trace);
    events.emit(new JobEvent(`job.${field}`, job, verdict, now));
  };
}

/** Counts a run for the store. */
function measure(flow: FlowMeter, job: Job, kind: Verdict["kind"], times: RunTimes | undefined): void {
  if (kind === "cancel") return;
  if (kind === "release" || times === undefined) return flow.add(job.type, FIELD[kind]);
  const { claimedMs, startedMs, endedMs } = times;
  const waitMs = Math.max(0, (job.startedAt ?? job.runAt) - job.runAt) + startedMs - claimedMs;
  flow.add(job.type, FIELD[kind], endedMs - startedMs, waitMs);
}

/** A class, because there is one per run and most listeners never read its job. */
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

  /** The job after the verdict. */
  get job(): Job {
    return settledJob(this.#job, this.verdict, this.#now());
  }
}

function describe(log: Log, job: Job, verdict: Verdict, trace: RunTimes["trace"]): void {
  const level = LEVEL[verdict.kind];
  if ((level === "debug" || level === "info") && !isLogged(log, level)) return;
  const about = aboutJob(job, trace);
  if (verdict.kind === "complete") log.debug(about, `completed (attempt ${job.attempts + 1}/${job.maxAttempts})`);
  if (verdict.kind === "release") log.debug({ ...about, reason: verdict.reason }, "released uncharged");
  if (verdict.kind === "cancel") log.info(about, "cancelled");
  if (verdict.kind !== "retry" && verdict.kind !== "dead") return;
  const { failure, charge } = verdict;
  const attempts = job.attempts + charge.attempts;
  const what = `${failure.name}: ${failure.message} (attempt ${attempts}/${job.maxAttempts})`;
  if (verdict.kind === "retry") {
    log.warn(
      { ...about, class: failure.class, severity: failure.severity },
      `${what}, requeueing for attempt ${attempts + 1} in ${waitText(job.type, verdict.delayMs)}`,
    );
  } else {
    log.error(
      { ...about, class: failure.class, severity: failure.severity, reason: verdict.reason },
      `${what}, moved to the dead letter queue`,
    );
  }
}

/** Calls the user's hook; an error in it must not harm the worker. */
function callOnDead(definition: JobDefinition | undefined, job: Job, log: Log, trace: RunTimes["trace"]): void {
  if (!definition?.onDead) return;
  const failed = (error: unknown): void =>
    log.error({ ...aboutJob(job, trace), error: textOf(error) }, `onDead of ${job.type} failed`);
  try {
    Promise.resolve(definition.onDead(job)).catch(failed);
  } catch (error) {
    failed(error);
  }
}

/** Events whose listeners cannot harm the worker. */
export function unbreakable(events: WorkerEvents, log: Log): WorkerEvents {
  return {
    emit(event) {
      try {
        events.emit(event);
      } catch (error) {
        log.error({ event: event.kind, error: textOf(error) }, "an event listener failed");
      }
    },
  };
}

function waitText(type: string, ms: number): string {
  return isNextRound(type, ms) ? "the next round" : formatDuration(ms);
}
