// The public surface of Redrive: re-exports only.
export { isRedriveError, PermanentError, RedriveError, RetryAfterError, type ErrorCode } from "./core/errors.ts";
