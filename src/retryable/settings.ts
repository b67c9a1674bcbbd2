// The options of `retryable`, and the complete settings made from them. Everything is checked here, once, when a
// function is wrapped; no call sees an optional or a bad value.
import { type BreakerOptions, type BreakerSettings, resolveBreaker } from "../core/breaker.ts";
import { type ClassifyRule, resolveRules } from "../core/classify-rules.ts";
import { isRedriveError, RedriveError } from "../core/errors.ts";
import type { Failure } from "../core/job.ts";
import { checkName } from "../core/new-job.ts";
import { invalid, namesOf, parseOptions } from "../core/options.ts";
import { type Policy, type PolicyOptions, resolvePolicy } from "../core/policy.ts";
import { type CallBreaker, type CircuitBreaker, isBreaker } from "../services/call-breaker.ts";

/** What is known when an attempt failed and another follows. */
export interface RetryNotice {
  /** The attempt that failed, counted from 1. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /** The wait before the next attempt. */
  readonly delayMs: number;
  /** The failure as Redrive judged it. */
  readonly failure: Failure;
  /** What was thrown. */
  readonly error: unknown;
}

type PolicyKeys = "preset" | "maxAttempts" | "maxRetries" | "backoff" | "deadline" | "timeout";

/** Options of `retryable`; `Args` are the arguments of the wrapped function. The default preset is `handler`. */
export interface RetryableOptions<Args extends readonly unknown[] = readonly unknown[]>
  extends Pick<PolicyOptions, PolicyKeys> {
  /** Your own rules, tried before Redrive's; the first that matches wins. */
  readonly classify?: readonly ClassifyRule[];
  /** The outside service that the function depends on: available to the rules, shown in errors. */
  readonly service?: string;
  /**
   * Thresholds of a breaker for this function, or one made by `createBreaker`, or the fleet's (`redrive.breaker`);
   * default none.
   */
  readonly breaker?: CircuitBreaker | BreakerOptions;
  /** Ends the wait and all further attempts; a function chooses the signal of each call from its arguments. */
  readonly signal?: AbortSignal | ((...args: Args) => AbortSignal | undefined);
  /** Called and awaited before each wait; an error that it throws ends the call. */
  readonly onRetry?: (notice: RetryNotice) => void | Promise<void>;
}

/** Complete settings of a wrapped function. */
export interface RetryableSettings {
  readonly policy: Policy;
  readonly rules: readonly ClassifyRule[];
  readonly service: string | null;
  /** Thresholds, until the function they are for is known. */
  readonly breaker: (CircuitBreaker & CallBreaker) | BreakerSettings | null;
  readonly signal: AbortSignal | ((...args: readonly unknown[]) => unknown) | null;
  readonly onRetry: ((notice: RetryNotice) => void | Promise<void>) | null;
}

const POLICY_KEYS = ["preset", "maxAttempts", "maxRetries", "backoff", "deadline", "timeout"] as const;
const KEYS = namesOf<RetryableOptions>()([...POLICY_KEYS, "classify", "service", "breaker", "signal", "onRetry"]);

/** Settings from options; throws `invalid_argument` for a bad value. */
export function resolveRetryable(options: unknown): RetryableSettings {
  const { classify = [], service, breaker, signal, onRetry, ...policy } = parseOptions(options, KEYS, "retryable");
  if (service !== undefined) checkName("retryable.service", service);
  if (signal !== undefined && typeof signal !== "function" && !isSignal(signal)) {
    throw invalid(
      "retryable.signal",
      "an AbortSignal, or a function that returns one",
      signal,
      "pass controller.signal",
    );
  }
  if (onRetry !== undefined && typeof onRetry !== "function") {
    throw invalid("retryable.onRetry", "a function ({ attempt, delayMs, failure, … }) => …", onRetry, "pass one");
  }
  return {
    policy: policyOf(policy as PolicyOptions),
    rules: resolveRules(classify, "retryable.classify"),
    service: (service as string | undefined) ?? null,
    breaker: breaker === undefined ? null : isBreaker(breaker) ? breaker : resolveBreaker(breaker as BreakerOptions),
    signal: (signal as RetryableSettings["signal"] | undefined) ?? null,
    onRetry: (onRetry as RetryableSettings["onRetry"] | undefined) ?? null,
  };
}

/** Whether it can be listened to; not `instanceof`, because signals also come from polyfills and other realms. */
export function isSignal(value: unknown): value is AbortSignal {
  if (typeof value !== "object" || value === null) return false;
  const { aborted, addEventListener } = value as Partial<AbortSignal>;
  return typeof aborted === "boolean" && typeof addEventListener === "function";
}

/** The policy; errors name the caller's option (`retryable.timeout`) instead of the layer's (`type.timeout`). */
function policyOf(options: PolicyOptions): Policy {
  try {
    return resolvePolicy({ library: { preset: "handler" }, type: options }).policy;
  } catch (error) {
    if (!isRedriveError(error, "invalid_argument")) throw error;
    throw new RedriveError("invalid_argument", error.message.replace(/^type\b/, "retryable"));
  }
}
