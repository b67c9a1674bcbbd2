// The retry settings that the old systems took from the environment, as defaults below what a job type says itself.
import { type Backoff, MAX_DELAY_MS } from "../core/backoff.ts";
import { RedriveError } from "../core/errors.ts";
import { JOB_BOUNDS } from "../core/new-job.ts";
import { type PolicyOptions, PRESETS, resolvePolicy } from "../core/policy.ts";
import type { Io } from "./io.ts";

/** What the environment says. */
export interface SaidByEnvironment {
  readonly maxAttempts?: number;
  readonly firstDelayMs?: number;
}

/**
 * `MAX_RETRY_ATTEMPTS` (attempts in all), `RETRY_DELAY_SECONDS` (first delay) and, where `retries` says so, `MAX_RETRIES`
 * (attempts after the first). Contradictions are refused; an empty variable counts as absent.
 */
export function policyFromEnvironment(env: Io["env"], { retries }: { readonly retries: boolean }): SaidByEnvironment {
  const attempts = wholeNumber(env, "MAX_RETRY_ATTEMPTS", 1, JOB_BOUNDS.attempts);
  const again = retries ? wholeNumber(env, "MAX_RETRIES", 0, JOB_BOUNDS.attempts - 1) : undefined;
  if (attempts !== undefined && again !== undefined && attempts !== again + 1) {
    const message =
      `MAX_RETRY_ATTEMPTS: expected ${again + 1}, because MAX_RETRIES is ${again} and does not count the first run; ` +
      `got ${attempts}; set one of the two`;
    throw new RedriveError("config_refused", message);
  }
  const maxAttempts = attempts ?? (again === undefined ? undefined : again + 1);
  const firstDelayMs = delayOf(env);
  return { ...(maxAttempts !== undefined && { maxAttempts }), ...(firstDelayMs !== undefined && { firstDelayMs }) };
}

/** Defaults of a config file with those of the environment above them. */
export function mergedDefaults(config: PolicyOptions, { maxAttempts, firstDelayMs }: SaidByEnvironment): PolicyOptions {
  const { maxRetries: _replaced, ...rest } = config;
  const merged = maxAttempts === undefined ? config : { ...rest, maxAttempts };
  return firstDelayMs === undefined ? merged : { ...merged, backoff: beginningWith(firstDelayMs, config) };
}

/** The delays that the file says, with another first one; where it says none that begin with one, those of a worker. */
function beginningWith(initialMs: number, config: PolicyOptions): Backoff {
  const { policy, origins } = resolvePolicy({ library: config });
  const says = origins.backoff !== "default" && "initialMs" in policy.backoff;
  const backoff = says ? policy.backoff : PRESETS.worker.backoff;
  if (!("initialMs" in backoff)) return backoff;
  const maxMs = Math.max(initialMs, backoff.maxMs);
  return { ...backoff, initialMs, maxMs, minMs: Math.min(initialMs, backoff.minMs) };
}

/** A variable as a whole number; undefined where it is not set. */
export function wholeNumber(env: Io["env"], name: string, least: number, most: number): number | undefined {
  const text = env[name];
  if (text === undefined || text.trim() === "") return undefined;
  const value = /^\d{1,9}$/.test(text.trim()) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw refused(name, `a whole number from ${least} to ${most}`, text);
}

function delayOf(env: Io["env"]): number | undefined {
  const text = env.RETRY_DELAY_SECONDS;
  if (text === undefined || text.trim() === "") return undefined;
  const ms = /^\d{1,9}(\.\d{1,3})?$/.test(text.trim()) ? Math.round(Number(text) * 1_000) : Number.NaN;
  if (ms <= MAX_DELAY_MS) return ms;
  throw refused("RETRY_DELAY_SECONDS", `seconds from 0 to ${MAX_DELAY_MS / 1_000}, such as 5 or 0.5`, text);
}

function refused(name: string, expected: string, came: string): RedriveError {
  const shown = JSON.stringify(came.slice(0, 60));
  return new RedriveError("config_refused", `${name}: expected ${expected}; got ${shown}; change or unset it`);
}
