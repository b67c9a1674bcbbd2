// The settings of a worker: its options, resolved once.
import { type Duration, parseDuration } from "../core/duration.ts";
import { checkName } from "../core/new-job.ts";
import { invalid, parseNumber, namesOf, parseOptions } from "../core/options.ts";

/** Options of every worker; durations as `"5s"` or milliseconds. */
export interface WorkerOptions {
  /** Jobs run at the same time; default 50, from 1 to 10,000. */
  readonly concurrency?: number;
  /** How long the worker keeps its jobs without a heartbeat; default 30 s, from 100 ms to 1 d. */
  readonly lease?: Duration;
  /**
   * How often it sends a heartbeat; default 5 s, or a sixth of the lease if that is less; from 10 ms to a third of the
   * lease.
   */
  readonly heartbeat?: Duration;
  /** How often it looks for work when the store sends no wake-up; default 1 s, from 1 ms to 1 d. */
  readonly poll?: Duration;
  /** Queues to serve; default all. */
  readonly queues?: readonly string[];
  /**
   * How long the event loop may be blocked before the worker loses its jobs; default five leases, from one lease to 1
   * d.
   */
  readonly stallLimit?: Duration;
  /**
   * How long a handler may take after its abort signal fired before its slot counts as lost; default 5 s, at most 1 d.
   */
  readonly abortGrace?: Duration;
  /** What happens to runs when the worker has had no contact with the store for almost a lease; default `abort`. */
  readonly onContactLost?: "abort" | "continue";
  /** The version of your program, recorded with failures; default none. */
  readonly release?: string;
}

/** The complete settings. */
export interface WorkerSettings {
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  readonly pollMs: number;
  readonly queues: ReadonlySet<string> | null;
  readonly stallMs: number;
  readonly abortGraceMs: number;
  readonly onContactLost: "abort" | "continue";
  readonly release: string | null;
}

/** The defaults; the stall limit is five times the lease. */
export const WORKER_DEFAULTS = {
  concurrency: 50,
  lease: "30s",
  heartbeat: "5s",
  poll: "1s",
  abortGrace: "5s",
} as const;

/** The names of the options. */
export const WORKER_FIELDS = namesOf<WorkerOptions>()([
  "concurrency",
  "lease",
  "heartbeat",
  "poll",
  "queues",
  "stallLimit",
  "abortGrace",
  "onContactLost",
  "release",
]);
const DAY_MS = 86_400_000;

/** Checks and completes the options. */
export function resolveWorker(options: WorkerOptions = {}): WorkerSettings {
  const given = parseOptions(options, WORKER_FIELDS, "worker");
  const duration = (
    name: "lease" | "heartbeat" | "poll" | "stallLimit" | "abortGrace",
    fallback: Duration,
    minMs: number,
  ): number => parseDuration(given[name] ?? fallback, `worker.${name}`, { minMs, maxMs: DAY_MS });
  const leaseMs = duration("lease", WORKER_DEFAULTS.lease, 100);
  const heartbeatMs = duration("heartbeat", Math.min(5_000, Math.floor(leaseMs / 6)), 10);
  if (heartbeatMs * 3 > leaseMs) {
    const remedy = "lower it, or raise the lease: a lease must survive two lost heartbeats";
    throw invalid("worker.heartbeat", `at most a third of the lease (${leaseMs} ms)`, heartbeatMs, remedy);
  }
  const { queues, onContactLost = "abort", release = null } = given;
  if (onContactLost !== "abort" && onContactLost !== "continue") {
    throw invalid("worker.onContactLost", '"abort" or "continue"', onContactLost, "use one of these");
  }
  return Object.freeze({
    concurrency: parseNumber(given.concurrency ?? WORKER_DEFAULTS.concurrency, "worker.concurrency", {
      min: 1,
      max: 10_000,
      integer: true,
    }),
    leaseMs,
    heartbeatMs,
    pollMs: duration("poll", WORKER_DEFAULTS.poll, 1),
    queues: queues === undefined ? null : queueNames(queues),
    stallMs: duration("stallLimit", Math.min(DAY_MS, leaseMs * 5), leaseMs),
    abortGraceMs: duration("abortGrace", WORKER_DEFAULTS.abortGrace, 0),
    onContactLost,
    release: release === null ? null : text(release),
  });
}

function text(release: unknown): string {
  if (typeof release !== "string")
    throw invalid("worker.release", "text", release, "pass a commit or version, or leave it out");
  return release;
}

function queueNames(queues: unknown): ReadonlySet<string> {
  if (!Array.isArray(queues) || queues.length === 0)
    throw invalid("worker.queues", "a list of queue names", queues, "leave it out to serve all");
  for (const queue of queues) checkName("worker.queues", queue);
  return new Set(queues as string[]);
}
