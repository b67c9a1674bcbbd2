// A job type: its name, its handler and its limits. Definitions are branded with a registered symbol, so that a global
// command line and a local library recognise each other's.
import type { ClassifyRule } from "../core/classify-rules.ts";
import { resolveRules } from "../core/classify-rules.ts";
import { type Duration, parseDuration } from "../core/duration.ts";
import { isRedriveError, RedriveError } from "../core/errors.ts";
import { GROUP_CONCURRENCY } from "../core/group.ts";
import { type ItemOutcome, type ResultOf, SNOOZE } from "../core/item-outcome.ts";
import { invalid, parseNumber, namesOf, parseOptions } from "../core/options.ts";
import type { Job, Lease } from "../core/job.ts";
import { checkInteger, checkName, JOB_BOUNDS } from "../core/new-job.ts";
import { type Policy, POLICY_FIELDS, type PolicyOptions, PRESETS, resolvePolicy } from "../core/policy.ts";
import { declaredLimits, type DeclaredLimits } from "../core/declared-limits.ts";
import { type RateOptions, type RateSettings, resolveRate } from "../core/rate.ts";
import type { RetryPolicy } from "../core/verdict.ts";
import type { Log } from "../system/log.ts";
import { type BatchOptions, type BatchSettings, resolveBatch, type RunBatch, runAsOne } from "./batch-handler.ts";
import { checkSchema, type SchemaInput, type SchemaOutput, type StandardSchema } from "./schema.ts";

const BRAND = Symbol.for("redrive.job");
/** The fields of both ways to write a job type. */
type AnyField =
  | keyof JobOptions<unknown, unknown>
  | keyof BatchJobOptions<never, unknown>
  | keyof WithSchema<StandardSchema>;
const FIELDS = namesOf<Record<AnyField, unknown>>()([
  "run",
  "runBatch",
  "batch",
  "input",
  "version",
  "queue",
  "service",
  "concurrency",
  "groupConcurrency",
  "rateLimit",
  "classify",
  "onDead",
  "letters",
  ...POLICY_FIELDS,
]);

/** What a handler gets besides its input. */
export interface JobContext {
  /** Fires on timeout, on cancel, on shutdown, and when the run has lost its lease. Pass it on, e.g. to `fetch`. */
  readonly signal: AbortSignal;
  /** The attempt that runs now, from 1. */
  readonly attempt: number;
  /** Attempts in total. */
  readonly maxAttempts: number;
  /** The job as it was claimed. */
  readonly job: Job;
  /**
   * Proof for other systems that this run owns the job: its epoch grows with every claim, so your own store can refuse
   * writes with an older one.
   */
  readonly lease: Lease;
  /** The log of this Redrive, with the id and the type of the job and the id of its trace in each line. */
  readonly log: Log;
  /**
   * Stores the progress of the run: any value that JSON can carry. Rejects with `lease_lost` once the run has lost its
   * lease.
   */
  progress(value: unknown): Promise<void>;
  /**
   * Completes the job inside your transaction, so that your writes and the completion commit together or not at all.
   * Rejects with `lease_lost` once the run has lost its lease: then roll back. Postgres only.
   */
  complete(result: unknown, options: { readonly tx: unknown }): Promise<void>;
  /** Return its result from the handler to run the job again after the delay (0 to 366 d) without using an attempt. */
  snooze(delay: Duration): Snooze;
}

/** A request to run the job again later, without using an attempt. */
export interface Snooze {
  readonly [SNOOZE]: number;
}

/** The options of a job type besides its handler. */
export interface TypeOptions extends PolicyOptions {
  /**
   * The version of the input's form, 1 to 1,000,000; default 1. A worker that knows only older versions leaves the job
   * to other workers.
   */
  readonly version?: number;
  /** Its queue, used to pause it and to choose which workers serve it; default `default`. */
  readonly queue?: string;
  /** The service the job depends on; default none. */
  readonly service?: string;
  /** Runs of this type at the same time in one worker; default no limit, from 1 to 10,000. */
  readonly concurrency?: number;
  /**
   * Jobs of one group that may run at the same time in the whole fleet; default 1: one at a time, in order, and a job
   * that waits for a retry blocks those after it. From 1 to 10,000; stored with each job.
   */
  readonly groupConcurrency?: number;
  /** Starts of this type allowed for the whole fleet; default no limit. */
  readonly rateLimit?: RateOptions;
  /** Your own rules, tried before Redrive's; the first that matches wins. Default none. */
  readonly classify?: readonly ClassifyRule[];
  /**
   * Called after a job of this type died, in the process that judged it: the worker that ran it, or one that found it
   * abandoned. A process that does not define the type calls nothing; nor does the command line.
   */
  readonly onDead?: (job: Job) => void | Promise<void>;
  /**
   * `objective`: how old a dead letter of this type may get before the alert `letterAge` is raised, from 1 minute to 366
   * days. Default none.
   */
  readonly letters?: { readonly objective: Duration };
}

/** The options of a job type whose handler gets one job at a time. */
export interface JobOptions<Input, Returned> extends TypeOptions {
  readonly batch?: undefined;
  readonly runBatch?: undefined;
  /**
   * The handler. It returns the result, an outcome (`done`, `transient`, `permanent`) or a snooze; what it throws is a
   * failure.
   */
  run(input: Input, context: JobContext): Returned | Promise<Returned>;
}

/**
 * The options of a job type whose handler gets jobs in batches. A timeout applies to the whole batch; middleware is not
 * applied.
 */
export interface BatchJobOptions<Input, Result> extends TypeOptions {
  readonly run?: undefined;
  /** How jobs are combined into batches; default batches of at most 10. */
  readonly batch?: BatchOptions;
  /** The handler: gets many jobs and reports an outcome for each. */
  readonly runBatch: RunBatch<Input, Result>;
}

/** The schema of a job's input, besides its other options. */
export interface WithSchema<S extends StandardSchema> {
  /** A Standard Schema (zod, valibot, arktype …), checked at enqueue and before every run. */
  readonly input: S;
}

/** A job type that can be enqueued and run. `Input` is what `enqueue` takes. */
export interface JobDefinition<Input = unknown, Result = unknown> {
  readonly [BRAND]: 1;
  readonly type: string;
  readonly queue: string;
  readonly service: string | null;
  readonly version: number;
  readonly concurrency: number;
  readonly groupConcurrency: number;
  readonly rate: RateSettings | null;
  readonly input: StandardSchema | null;
  readonly policy: Policy;
  /** The limits that the policy declares, for jobs enqueued by type name, without the definition. */
  readonly limits: DeclaredLimits;
  /** The options that the policy was made from, so that another layer can be added. */
  readonly options: PolicyOptions;
  readonly rules: readonly ClassifyRule[];
  readonly onDead: ((job: Job) => void | Promise<void>) | null;
  /** How old its dead letters may get, in milliseconds; null for no objective. */
  readonly objectiveMs: number | null;
  /** How its jobs run in batches; null where each runs alone. */
  readonly batch: BatchSettings | null;
  run(input: Input, context: JobContext): Returned<Result> | Promise<Returned<Result>>;
}

type Returned<Result> = Result | Snooze | ItemOutcome<Result>;

/** Defines a job type with a schema; the handler gets the output of the schema. */
export function defineJob<S extends StandardSchema, Returned>(
  type: string,
  options: JobOptions<SchemaOutput<S>, Returned> & WithSchema<S>,
): JobDefinition<SchemaInput<S>, ResultOf<Exclude<Returned, Snooze>>>;
/** Defines a job type without a schema. */
export function defineJob<Input, Returned>(
  type: string,
  options: JobOptions<Input, Returned> & { readonly input?: undefined },
): JobDefinition<Input, ResultOf<Exclude<Returned, Snooze>>>;
/** Defines a job type with a schema, whose handler gets batches. */
export function defineJob<S extends StandardSchema, Result>(
  type: string,
  options: BatchJobOptions<SchemaOutput<S>, Result> & WithSchema<S>,
): JobDefinition<SchemaInput<S>, Result>;
/** Defines a job type without a schema, whose handler gets batches. */
export function defineJob<Input, Result>(
  type: string,
  options: BatchJobOptions<Input, Result> & { readonly input?: undefined },
): JobDefinition<Input, Result>;
export function defineJob(
  type: string,
  options: (JobOptions<unknown, unknown> | BatchJobOptions<never, unknown>) & {
    readonly input?: StandardSchema | undefined;
  },
): JobDefinition {
  checkName("type", type);
  if (typeof options !== "object" || options === null)
    throw invalid(type, "an object with run and options", options, "pass { run(input, context) { … } }");
  parseOptions(options, FIELDS, type);
  const { queue = "default", service = null, version = 1, input, classify = [], onDead = null, ...more } = options;
  const { run: _run, runBatch: _runBatch, batch: _batch, letters, ...rest } = more;
  const { concurrency = Number.POSITIVE_INFINITY, groupConcurrency = 1, rateLimit, ...policy } = rest;
  checkName("queue", queue);
  if (service !== null) checkName("service", service);
  checkInteger(`${type}.version`, version, 1, JOB_BOUNDS.version);
  parseNumber(concurrency, "concurrency", { min: 1, max: 10_000, integer: true, infinite: true });
  checkInteger(`${type}.groupConcurrency`, groupConcurrency, GROUP_CONCURRENCY.least, GROUP_CONCURRENCY.most);
  if (input !== undefined) checkSchema(input, `${type}.input`);
  if (onDead !== null && typeof onDead !== "function")
    throw invalid(`${type}.onDead`, "a function (job) => …", onDead, "pass one");
  return Object.freeze({
    [BRAND]: 1 as const,
    type,
    queue,
    service,
    version,
    concurrency,
    groupConcurrency,
    rate: rateLimit === undefined ? null : resolveRate(rateLimit, `${type}.rateLimit`),
    input: input ?? null,
    ...policyOf(type, policy),
    options: policy,
    rules: resolveRules(classify, `${type}.classify`),
    onDead,
    objectiveMs: objectiveOf(letters, `${type}.letters`),
    ...handlerOf(type, options),
  });
}

function objectiveOf(letters: TypeOptions["letters"], name: string): number | null {
  if (letters === undefined) return null;
  const { objective } = parseOptions(letters, ["objective"], name);
  return parseDuration(objective, `${name}.objective`, { minMs: 60_000, maxMs: 366 * 86_400_000 });
}

/** The handler of a type; a batch handler also serves a job that runs alone. */
function handlerOf(
  type: string,
  options: JobOptions<unknown, unknown> | BatchJobOptions<never, unknown>,
): Pick<JobDefinition, "batch" | "run"> {
  const { run, runBatch, batch } = options;
  if (runBatch !== undefined || batch !== undefined) {
    if (run !== undefined) throw invalid(type, "either run or runBatch", "both", "leave one of the two out");
    const settings = resolveBatch(batch, runBatch as RunBatch, type);
    return { batch: settings, run: runAsOne(settings.run, "input" in options && options.input !== undefined) };
  }
  if (typeof run !== "function")
    throw invalid(`${type}.run`, "a function (input, context) => result", run, "pass the handler");
  return { batch: null, run };
}

/** The definition with the defaults of a queue below it. */
export function withDefaults(definition: JobDefinition, library: PolicyOptions): JobDefinition {
  return { ...definition, ...policyAndLimits({ library, type: definition.options }) };
}

function policyAndLimits(layers: Parameters<typeof resolvePolicy>[0]): Pick<JobDefinition, "policy" | "limits"> {
  const resolved = resolvePolicy(layers);
  return { policy: resolved.policy, limits: declaredLimits(resolved) };
}

/** The policy of the type; its errors name the type. */
function policyOf(type: string, options: PolicyOptions): Pick<JobDefinition, "policy" | "limits"> {
  try {
    return policyAndLimits({ type: options });
  } catch (error) {
    if (!isRedriveError(error)) throw error;
    throw new RedriveError(
      error.code,
      error.message.replace(/^type\b/, () => type),
      { cause: error },
    );
  }
}

/** The part of a type that judging needs; the defaults for an unknown type. */
export function retryPolicyOf(definition: JobDefinition | undefined): RetryPolicy {
  return definition?.policy ?? PRESETS.default;
}

/** True for a definition made by any copy of this library. */
export function isJobDefinition(value: unknown): value is JobDefinition {
  return typeof value === "object" && value !== null && (value as { [BRAND]?: unknown })[BRAND] === 1;
}

/** Returned by a handler: run the job again after the delay (0 to 366 d) without using an attempt. */
export function snooze(delay: Duration): Snooze {
  return { [SNOOZE]: parseDuration(delay, "snooze", { maxMs: 366 * 86_400_000 }) };
}

/** The delay of a snooze, or null for anything else that a handler may return. */
export function snoozeMs(value: unknown): number | null {
  if (typeof value !== "object" || value === null || !(SNOOZE in value)) return null;
  return (value as Snooze)[SNOOZE];
}
