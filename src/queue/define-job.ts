// A job type: its name, its handler and what it allows itself. Definitions are branded with a registered symbol, so
// that a global command line and a local library recognise each other's.
import type { ClassifyRule } from "../core/classify.ts";
import { resolveRules } from "../core/classify.ts";
import { type Duration, parseDuration } from "../core/duration.ts";
import { invalid, parseNumber } from "../core/options.ts";
import type { Job, Lease } from "../core/job.ts";
import { checkName } from "../core/new-job.ts";
import { type Policy, type PolicyOptions, resolvePolicy } from "../core/policy.ts";
import type { Log } from "../system/log.ts";

const BRAND = Symbol.for("redrive.job");
const SNOOZE = Symbol.for("redrive.snooze");

/** What a handler gets beside its input. */
export interface JobContext {
  /** Fires on timeout, cancel, shutdown and when the lease is lost. */
  readonly signal: AbortSignal;
  /** The attempt that is running, counted from 1. */
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly job: Job;
  /** Proof of ownership for the outside world: epoch and nonce of this run. */
  readonly lease: Lease;
  readonly log: Log;
  /** Stores how far the run has come; anything JSON can carry. Rejects with `lease_lost` once the run was given up. */
  progress(value: unknown): Promise<void>;
  /** Return this to try again later without a charge. */
  snooze(delay: Duration): Snooze;
}

/** The wish to be run again later, uncharged. */
export interface Snooze {
  readonly [SNOOZE]: number;
}

/** What users write. */
export interface JobOptions<Input, Result> extends PolicyOptions {
  readonly queue?: string;
  /** The outside thing the job depends on. */
  readonly service?: string;
  /** Runs of this type at the same time in one worker. */
  readonly concurrency?: number;
  readonly classify?: readonly ClassifyRule[];
  /** Called after a job of this type died, whoever judged it. */
  readonly onDead?: (job: Job) => void | Promise<void>;
  run(input: Input, context: JobContext): Result | Snooze | Promise<Result | Snooze>;
}

/** A job type, ready to be enqueued and worked on. */
export interface JobDefinition<Input = unknown, Result = unknown> {
  readonly [BRAND]: 1;
  readonly type: string;
  readonly queue: string;
  readonly service: string | null;
  readonly concurrency: number;
  readonly policy: Policy;
  readonly rules: readonly ClassifyRule[];
  readonly onDead: ((job: Job) => void | Promise<void>) | null;
  readonly run: (input: Input, context: JobContext) => Result | Snooze | Promise<Result | Snooze>;
}

/** Defines a job type. */
export function defineJob<Input, Result>(
  type: string,
  options: JobOptions<Input, Result>,
): JobDefinition<Input, Result> {
  const {
    queue = "default",
    service = null,
    concurrency = Number.POSITIVE_INFINITY,
    classify = [],
    onDead = null,
    run,
    ...policy
  } = options;
  checkName("type", type);
  checkName("queue", queue);
  if (service !== null) checkName("service", service);
  parseNumber(concurrency, "concurrency", { min: 1, max: 10_000, integer: true, infinite: true });
  if (typeof run !== "function")
    throw invalid(`${type}.run`, "a function (input, context) => result", run, "pass the handler");
  if (onDead !== null && typeof onDead !== "function")
    throw invalid(`${type}.onDead`, "a function (job) => …", onDead, "pass one");
  const resolved = resolvePolicy({ type: policy }).policy;
  const rules = resolveRules(classify, `${type}.classify`);
  return Object.freeze({
    [BRAND]: 1 as const,
    type,
    queue,
    service,
    concurrency,
    policy: resolved,
    rules,
    onDead,
    run,
  });
}

/** True for a definition made by any copy of this library. */
export function isJobDefinition(value: unknown): value is JobDefinition {
  return typeof value === "object" && value !== null && (value as { [BRAND]?: unknown })[BRAND] === 1;
}

/** The wish to be run again after the delay. */
export function snooze(delay: Duration): Snooze {
  return { [SNOOZE]: parseDuration(delay, "snooze", { maxMs: 366 * 86_400_000 }) };
}

/** The delay of a snooze, or null for anything else a handler may return. */
export function snoozeMs(value: unknown): number | null {
  if (typeof value !== "object" || value === null || !(SNOOZE in value)) return null;
  return (value as Snooze)[SNOOZE];
}
