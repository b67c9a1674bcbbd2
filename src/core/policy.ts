// The policy of a job type: attempts, delays, deadlines, stuck limits. Defaults are set only in the presets. Three
// layers (library < type < job) are merged once, and the answer records the layer of each value.
import { type Backoff, type CustomDelay, exponential, fixed, immediate, resolveBackoff } from "./backoff.ts";
import { type Duration, parseDuration } from "./duration.ts";
import { didYouMean, invalid, parseNumber, namesOf, parseOptions } from "./options.ts";
import { LIMIT_NAMES, TERMS, type Terms, USUAL_TERMS } from "./job.ts";

/** A complete policy; nothing below the resolution sees an optional. */
export interface Policy extends Terms {
  readonly backoff: Backoff;
  /** Limit of one attempt; null for none. */
  readonly timeoutMs: number | null;
  /** How long completed and cancelled jobs are kept. */
  readonly keepFinishedMs: number;
  /** How long dead letters are kept. */
  readonly keepDeadMs: number;
}

/** Limits of a job type. Those of the type override those of the library, and those of a job override both. */
export interface PolicyOptions {
  /** A named set of limits to start from; default `default`. */
  readonly preset?: PresetName;
  /** Runs in all, the first one included: 1 to 10,000; default 10. */
  readonly maxAttempts?: number;
  /** The same counted without the first run: 0 to 9,999. Give one of the two. */
  readonly maxRetries?: number;
  /** Worker deaths a job may be part of before it dies: 1 to 1,000; default 3. */
  readonly maxCrashes?: number;
  /** The wait before a retry; default exponential 1 s × 3, at most 1 h, full jitter. A function answers milliseconds. */
  readonly backoff?: Backoff | CustomDelay;
  /** Time over all attempts from the first due time, pauses not counted; default none, from 1 ms to 10 years. */
  readonly deadline?: Duration | null;
  /** Limit of one attempt; default none, from 1 ms to 10 years. */
  readonly timeout?: Duration | null;
  /**
   * A run longer than `after` is given up and tried again `retryAfter` later (default the backoff, at most 7 d), at most
   * `limit` times (0 to 9,999; default all the attempts there are, which it never exceeds); default never.
   */
  readonly stuck?: { readonly after: Duration; readonly retryAfter?: Duration; readonly limit?: number } | null;
  /**
   * How long finished jobs (default 24 h) and dead letters (default 7 d) are kept; each job carries it, so that no other
   * program deletes it sooner. With `finished: 0` a job that never
   * failed is deleted as it completes: only a `run()` of the worker's own process still learns what it returned.
   */
  readonly keep?: { readonly finished?: Duration; readonly dead?: Duration };
}

/** The limits that a single job may set, instead of those of its type. */
export interface JobLimitOptions {
  /** Time over all attempts from the first due time; default that of the type, null for none. */
  readonly deadline?: Duration | null | undefined;
  /** Attempts in total, 1 to 10,000; default that of the type. */
  readonly maxAttempts?: number | undefined;
  /** The same without the first attempt, 0 to 9,999; give one of the two. */
  readonly maxRetries?: number | undefined;
}

/** The names of these options. */
export const JOB_LIMIT_FIELDS = namesOf<JobLimitOptions>()(["deadline", "maxAttempts", "maxRetries"]);

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

const LIBRARY: Policy = {
  ...USUAL_TERMS,
  backoff: exponential({ initial: "1s", multiplier: 3, max: "1h", jitter: "full" }),
  timeoutMs: null,
};

/** The named sets of limits; see backoff and presets. */
export const PRESETS = {
  default: LIBRARY,
  handler: {
    ...LIBRARY,
    maxAttempts: 6,
    backoff: exponential({ initial: "1s", multiplier: 3, min: "0.1s", max: "60s", jitter: "full" }),
    deadlineMs: 300_000,
  },
  worker: { ...LIBRARY, maxAttempts: 3, backoff: fixed("5s"), keepDeadMs: 30 * DAY_MS },
  runs: { ...LIBRARY, maxAttempts: 5, backoff: fixed("4h"), stuckMs: HOUR_MS, stuckRetryMs: 4 * HOUR_MS },
  records: {
    ...LIBRARY,
    maxAttempts: 6,
    backoff: exponential({ initial: "2m", multiplier: 2, max: "32m", jitter: "none" }),
  },
  batch: { ...LIBRARY, maxAttempts: 4, backoff: immediate() },
} as const satisfies Record<string, Policy>;

/** The name of a preset. */
export type PresetName = keyof typeof PRESETS;

/** The layers, from the weakest to the strongest. */
export const LAYERS = ["library", "type", "job"] as const;
/** Where a value came from: a layer, or the preset `default` where no layer set it. */
export type Origin = (typeof LAYERS)[number] | "default";

/** A policy and, for each of its values, the layer it came from. */
export interface ResolvedPolicy {
  readonly policy: Policy;
  readonly origins: Readonly<Record<keyof Policy, Origin>>;
}

/** Merges the layers; a later layer wins field by field, and its preset counts as set by it. */
export function resolvePolicy(layers: { readonly [L in (typeof LAYERS)[number]]?: PolicyOptions }): ResolvedPolicy {
  const policy: { -readonly [K in keyof Policy]: Policy[K] } = { ...LIBRARY };
  const origins = Object.fromEntries(Object.keys(LIBRARY).map((field) => [field, "default"])) as Record<
    keyof Policy,
    Origin
  >;
  for (const layer of LAYERS) {
    const said = parsePolicy(layers[layer] ?? {}, layer);
    Object.assign(policy, said);
    for (const field of Object.keys(said) as (keyof Policy)[]) origins[field] = layer;
  }
  return Object.freeze({ policy: Object.freeze(policy), origins: Object.freeze(origins) });
}

/** The names of the options. */
export const POLICY_FIELDS = namesOf<PolicyOptions>()([
  "preset",
  "maxAttempts",
  "maxRetries",
  "maxCrashes",
  "backoff",
  "deadline",
  "timeout",
  "stuck",
  "keep",
]);
const STUCK_FIELDS = namesOf<NonNullable<PolicyOptions["stuck"]>>()(["after", "retryAfter", "limit"]);
const KEEP_FIELDS = namesOf<NonNullable<PolicyOptions["keep"]>>()(["finished", "dead"]);
type Given = { readonly [option: string]: unknown };

function parsePolicy(options: PolicyOptions, layer: string): Partial<Policy> {
  const given = parseOptions(options, POLICY_FIELDS, layer);
  const said: { -readonly [K in keyof Policy]?: Policy[K] } = {
    ...presetOf(given.preset, layer),
  };
  putLimits(said, given, layer);
  Object.assign(said, attemptsOf(given, layer));
  if (given.backoff !== undefined) said.backoff = resolveBackoff(given.backoff, `${layer}.backoff`);
  if (given.timeout !== undefined)
    said.timeoutMs =
      given.timeout === null
        ? null
        : parseDuration(given.timeout, `${layer}.timeout`, { minMs: 1, maxMs: TERMS.deadlineMs.most });
  if (given.stuck !== undefined) Object.assign(said, stuckOf(given.stuck, layer));
  if (given.keep !== undefined) {
    const keep = parseOptions(given.keep, KEEP_FIELDS, `${layer}.keep`);
    if (keep.finished !== undefined) said.keepFinishedMs = termOf("keepFinishedMs", keep.finished, layer);
    if (keep.dead !== undefined) said.keepDeadMs = termOf("keepDeadMs", keep.dead, layer);
  }
  return said;
}

/** The value of a term from that of its option: a duration where the term counts milliseconds. */
function termOf(name: keyof Terms, value: unknown, layer: string): number {
  const { option, least, most } = TERMS[name];
  return name.endsWith("Ms")
    ? parseDuration(value, `${layer}.${option}`, { minMs: least, maxMs: most })
    : parseNumber(value, `${layer}.${option}`, { min: least, max: most, integer: true });
}

/** Puts the limits whose option has one value. */
function putLimits(said: Partial<Record<keyof Terms, number | null>>, given: Given, layer: string): void {
  for (const name of LIMIT_NAMES) {
    const value = given[TERMS[name].option];
    if (value === undefined) continue;
    said[name] = value === null && TERMS[name].mayBeNull ? null : termOf(name, value, layer);
  }
}

function presetOf(name: unknown, layer: string): Partial<Policy> {
  if (name === undefined) return {};
  const names = Object.keys(PRESETS) as PresetName[];
  const known = names.find((preset) => preset === name);
  if (known === undefined)
    throw invalid(`${layer}.preset`, names.join(", "), name, didYouMean(name, names, "use one of these"));
  return PRESETS[known];
}

/** `maxRetries` says the same as `maxAttempts`, less the first run. */
function attemptsOf(
  { maxAttempts, maxRetries }: { readonly maxAttempts?: unknown; readonly maxRetries?: unknown },
  layer: string,
): Partial<Policy> {
  if (maxRetries === undefined) return {};
  const range = { min: 0, max: TERMS.maxAttempts.most - 1, integer: true };
  const attempts = parseNumber(maxRetries, `${layer}.maxRetries`, range) + 1;
  if (maxAttempts !== undefined && maxAttempts !== attempts) {
    const remedy = "maxAttempts counts the first run too; give one of the two";
    throw invalid(`${layer}.maxAttempts`, `${attempts}, because maxRetries is ${attempts - 1}`, maxAttempts, remedy);
  }
  return { maxAttempts: attempts };
}

/** The three stuck settings together: a layer that sets when a run is stuck also sets what follows. */
function stuckOf(given: unknown, layer: string): Pick<Policy, "stuckMs" | "stuckRetryMs" | "stuckLimit"> {
  if (given === null) return { stuckMs: null, stuckRetryMs: null, stuckLimit: null };
  const { after, retryAfter, limit } = parseOptions(given, STUCK_FIELDS, `${layer}.stuck`);
  return {
    stuckMs: termOf("stuckMs", after, layer),
    stuckRetryMs: retryAfter === undefined ? null : termOf("stuckRetryMs", retryAfter, layer),
    stuckLimit: limit === undefined ? null : termOf("stuckLimit", limit, layer),
  };
}
