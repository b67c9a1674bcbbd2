// Turns the arguments of a caller into a new job that a store takes: checks the input against its schema, resolves
// limits and durations, makes the id. Every refusal happens here, before anything is written.
import { createHash } from "node:crypto";
import { type Duration, parseDuration } from "../core/duration.ts";
import { type Terms, termsOf } from "../core/job.ts";
import { checkNewJob, checkOneOf, JOB_BOUNDS, type NewJob, UNIQUE_MODES, type UniqueMode } from "../core/new-job.ts";
import { invalid, namesOf, parseOptions } from "../core/options.ts";
import { checkPayloadText, encodePayload } from "../core/payload.ts";
import {
  JOB_LIMIT_FIELDS,
  type JobLimitOptions,
  type Policy,
  type PolicyOptions,
  resolvePolicy,
} from "../core/policy.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import { validated } from "../jobs/schema.ts";

/**
 * Options of one job; durations as `"5s"` or milliseconds. For a type that is not defined here, the limits of its
 * definition in the worker apply. If you set `maxAttempts`, `maxRetries` or `deadline` for such a job, your values
 * apply instead, with the defaults of this queue for every other limit.
 */
export interface EnqueueOptions extends JobLimitOptions {
  /** A type has at most one job per key, as `unique` says; at most 255 bytes. */
  readonly key?: string | undefined;
  /** What happens when the key is taken; default `key`: the same payload is a duplicate, another one a conflict. */
  readonly unique?: UniqueMode | undefined;
  /** 0 to 9, higher first; default 0. */
  readonly priority?: number | undefined;
  /** Run no sooner than this long from now; default 0, at most 10 years. */
  readonly delay?: Duration | undefined;
  /** Run no sooner than this time: a date, epoch milliseconds or an ISO 8601 text. */
  readonly runAt?: Date | number | string | undefined;
  /** The tenant it belongs to, 1 to 255 bytes; default none. */
  readonly tenant?: string | undefined;
  /**
   * Jobs of one type and group take turns, 1 to 255 bytes: one at a time and in order, or as many at the same time as
   * the type's `groupConcurrency` says; default none.
   */
  readonly group?: string | undefined;
  /** The queue of a type that is not defined here; otherwise its definition sets it. */
  readonly queue?: string | undefined;
  /** The service of a type that is not defined here, or instead of the one in its definition. */
  readonly service?: string | undefined;
  /**
   * Your transaction: the job exists once it commits, and never existed if it rolls back. Postgres only: a client of
   * `pg`, a transaction of Kysely or Drizzle, or anything with `query(text, values)`.
   */
  readonly tx?: unknown;
}

const FIELDS = namesOf<EnqueueOptions>()([
  "key",
  "unique",
  "priority",
  "delay",
  "runAt",
  "tenant",
  "group",
  "queue",
  "service",
  "tx",
  ...JOB_LIMIT_FIELDS,
]);

/** The facts about a type, whether it is defined here or known only by name. */
export interface KnownType {
  readonly type: string;
  readonly queue: string;
  readonly service: string | null;
  readonly version: number;
  readonly groupConcurrency: number;
  readonly definition: JobDefinition | null;
  readonly policy: Policy;
  /** The layers the policy was made of, so that a job can add its own. */
  readonly layers: { readonly library: PolicyOptions; readonly type: PolicyOptions };
  /** A job of the type without options, made once: all others are copies. */
  plain: NewJob | null;
  /** The terms of its jobs without options, once computed. */
  terms: Terms | null;
}

/** A type with the defaults of its queue; a name alone is enough, but then no input is validated. */
export function knownType(definition: JobDefinition | string, library: PolicyOptions): KnownType {
  const defined = typeof definition === "string" ? null : definition;
  const layers = { library, type: defined?.options ?? {} };
  return {
    type: typeof definition === "string" ? definition : definition.type,
    queue: defined?.queue ?? "default",
    service: defined?.service ?? null,
    version: defined?.version ?? 1,
    groupConcurrency: defined?.groupConcurrency ?? 1,
    definition: defined,
    policy: resolvePolicy(layers).policy,
    layers,
    plain: null,
    terms: null,
  };
}

/** Checks an input and returns its JSON text; synchronously where there is no schema. */
export function payloadOf(known: KnownType, input: unknown, maxBytes?: number): string | Promise<string> {
  const text = encodePayload(input, maxBytes);
  const schema = known.definition?.input;
  return schema ? validated(schema, input, known.type).then(() => text) : text;
}

/** The same for JSON text, which is kept byte for byte. */
export function payloadOfText(known: KnownType, text: string, maxBytes?: number): string | Promise<string> {
  const kept = checkPayloadText(text, maxBytes);
  const schema = known.definition?.input;
  return schema ? validated(schema, JSON.parse(text), known.type).then(() => kept) : kept;
}

/** Throws unless a job with these options may be stored. */
export function checkJobOf(known: KnownType, payload: string, options: EnqueueOptions): void {
  checkNewJob(newJobOf(known, payload, "check", options));
}

/**
 * The new job; throws for options that contradict each other or have no effect. `checkNewJob` checks later, and only once,
 * whether the job may be stored.
 */
export function newJobOf(known: KnownType, payload: string, id: string, options?: EnqueueOptions): NewJob {
  if (options !== undefined) return jobWith(known, payload, id, options);
  known.plain ??= jobWith(known, payload, id, {});
  return { ...known.plain, payload, id };
}

function jobWith(known: KnownType, payload: string, id: string, options: EnqueueOptions): NewJob {
  const given = parseOptions(options, FIELDS, "enqueue");
  const saysLimits = JOB_LIMIT_FIELDS.some((field) => given[field] !== undefined);
  const policy = saysLimits ? resolvePolicy({ ...known.layers, job: limitsOf(given) }).policy : known.policy;
  if (given.delay !== undefined && given.runAt !== undefined)
    throw invalid("enqueue", "delay or runAt", "both", "give one of them");
  const { key = null, unique = "key" } = given;
  checkOneOf("unique", unique, UNIQUE_MODES);
  if (key === null && unique !== "key") throw invalid("unique", "a key", unique, "set a key too");
  return {
    id,
    type: known.type,
    queue: given.queue ?? known.queue,
    service: given.service ?? known.service,
    tenant: given.tenant ?? null,
    group: given.group ?? null,
    groupConcurrency: given.group === undefined ? null : known.groupConcurrency,
    priority: given.priority ?? 0,
    payload,
    version: known.version,
    key,
    unique,
    digest: key === null ? null : createHash("sha256").update(payload).digest("hex"),
    delayMs: given.delay === undefined ? 0 : parseDuration(given.delay, "delay", { maxMs: JOB_BOUNDS.delayMs }),
    runAt: given.runAt === undefined ? null : instantOf(given.runAt, "runAt"),
    trace: null,
    limited: saysLimits || known.definition !== null,
    ...(saysLimits ? newTerms(known, policy) : (known.terms ??= newTerms(known, policy))),
  } as NewJob;
}

/** The terms of the type's jobs; how long they are kept is included only where the definition is known. */
function newTerms({ definition }: KnownType, policy: Policy): Terms {
  const kept = definition === null ? { keepFinishedMs: null, keepDeadMs: null } : {};
  return { ...termsOf(policy), ...kept };
}

function limitsOf(given: { readonly [K in (typeof FIELDS)[number]]?: unknown }): PolicyOptions {
  const said = JOB_LIMIT_FIELDS.filter((field) => given[field] !== undefined).map((field) => [field, given[field]]);
  return Object.fromEntries(said) as PolicyOptions;
}

/** The last instant of a Date. */
const LAST_MS = 8.64e15;

/** An ISO 8601 text in milliseconds; NaN for a day that does not exist, which the parser would take for a later one. */
function parsedTime(text: string): number {
  const [, year, month, day] = /^(\d{4})-(\d{2})-(\d{2})(?:T.*)?$/.exec(text)?.map(Number) ?? [];
  if (year === undefined || month === undefined || day === undefined) return Number.NaN;
  const isThere = new Date(Date.UTC(year, month - 1, day)).getUTCDate() === day;
  return isThere ? Date.parse(text) : Number.NaN;
}

/** Epoch milliseconds of a date, a number or an ISO 8601 text. */
export function instantOf(value: unknown, name: string): number {
  const ms = value instanceof Date ? value.getTime() : typeof value === "string" ? parsedTime(value) : value;
  if (typeof ms === "number" && Number.isSafeInteger(ms) && ms >= 0 && ms <= LAST_MS) return ms;
  throw invalid(
    name,
    'a date, epoch milliseconds or an ISO 8601 text such as "2027-01-31T08:00:00Z"',
    value,
    "use one",
  );
}
