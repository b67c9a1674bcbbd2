// The one error class of the library, and the two errors a handler may throw to say more about a failure. An error is
// identified by its code, not by its class, so that this works with two copies of the package in one program.

/** Every code a `RedriveError` can carry; docs/reference/errors.md lists cause and remedy of each. */
export type ErrorCode =
  | "invalid_argument" // A value outside its documented range or form.
  | "invalid_payload" // Something JSON cannot carry; the message names the path.
  | "payload_too_large" // Over the byte or depth limit.
  | "conflict" // The key is taken by a job with another payload.
  | "not_found" // No job, dead letter, plan, redrive run or worker of that id.
  | "illegal_transition" // The state of the job, plan or redrive run does not allow what was asked.
  | "lease_lost" // The write carried a lease that is no longer the current one.
  | "store_unavailable" // Cannot answer now; try again.
  | "store_unusable" // Does not work until its version, rights or schema are fixed.
  | "closed" // The store, queue or worker was closed.
  | "aborted" // The caller's signal fired, the source of its inputs failed, or its results could not be written.
  | "timeout" // An attempt, or all of them together, took longer than allowed.
  | "breaker_open" // The service's breaker lets no call through.
  | "config_refused"; // A configuration that would be unsafe or contradicts itself.

/** The error that the library throws: a code for programs, a message for people. */
export class RedriveError extends Error {
  readonly code: ErrorCode;
  /** Facts a program may want, e.g. the id of the original job in a conflict. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, options: { cause?: unknown; details?: Record<string, unknown> } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "RedriveError";
    this.code = code;
    this.details = options.details ?? {};
  }
}

/** True for an error of this library, optionally of one code; works across duplicate installs. */
export function isRedriveError(error: unknown, code?: ErrorCode): error is RedriveError {
  if (!(error instanceof Error) || error.name !== "RedriveError" || !("code" in error)) return false;
  return code === undefined || error.code === code;
}

/** Thrown by a handler: this will never work, do not try again. */
export class PermanentError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "PermanentError";
  }
}

/** Thrown by a handler: try again, but not before this delay (a duration such as `"30s"`, or milliseconds). */
export class RetryAfterError extends Error {
  readonly retryAfter: string | number;

  constructor(message: string, retryAfter: string | number, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "RetryAfterError";
    this.retryAfter = retryAfter;
  }
}
