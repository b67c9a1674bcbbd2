// The retry settings that the old systems took from the environment, as defaults below what a job type sets itself.
// Each variable belongs to one command; the others ignore it.
import { fixed, MAX_DELAY_MS } from "../core/backoff.ts";
import { RedriveError } from "../core/errors.ts";
import { TERMS } from "../core/job.ts";
import type { PolicyOptions } from "../core/policy.ts";

/** The variables of a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The settings in the environment. */
export interface SaidByEnvironment {
  readonly maxAttempts?: number;
  readonly delayMs?: number;
}

/** The commands that take retry settings from the environment. */
export type EnvironmentOf = "worker" | "drain";

/**
 * For `worker`: `MAX_RETRY_ATTEMPTS` (attempts in total) and `RETRY_DELAY_SECONDS` (the wait before every retry). For
 * `drain`: `MAX_RETRIES` (attempts after the first). An empty variable counts as absent.
 */
export function policyFromEnvironment(env: Environment, command: EnvironmentOf): SaidByEnvironment {
  if (command === "drain") {
    const retries = wholeNumber(env, "MAX_RETRIES", 0, TERMS.maxAttempts.most - 1);
    return retries === undefined ? {} : { maxAttempts: retries + 1 };
  }
  const maxAttempts = wholeNumber(env, "MAX_RETRY_ATTEMPTS", 1, TERMS.maxAttempts.most);
  const delayMs = delayOf(env);
  return { ...(maxAttempts !== undefined && { maxAttempts }), ...(delayMs !== undefined && { delayMs }) };
}

/** Defaults of a config file, overridden by those of the environment. */
export function mergedDefaults(config: PolicyOptions, { maxAttempts, delayMs }: SaidByEnvironment): PolicyOptions {
  const { maxRetries: _replaced, ...rest } = config;
  const merged = maxAttempts === undefined ? config : { ...rest, maxAttempts };
  return delayMs === undefined ? merged : { ...merged, backoff: fixed(delayMs) };
}

/** A variable as a whole number; undefined where it is not set. */
export function wholeNumber(env: Environment, name: string, least: number, most: number): number | undefined {
  const text = env[name];
  if (text === undefined || text.trim() === "") return undefined;
  const value = /^\d{1,9}$/.test(text.trim()) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw refused(name, `a whole number from ${least} to ${most}`, text);
}

function delayOf(env: Environment): number | undefined {
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
