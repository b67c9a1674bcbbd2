// Errors as answers: one map from every code of the library, and of HTTP itself, to a status.
import { type ErrorCode, isRedriveError } from "../core/errors.ts";
import { jsonText } from "../operate/json-form.ts";
import type { PlainAnswer } from "./answers.ts";

/** Codes that only HTTP has. */
export type HttpCode =
  | "unauthenticated"
  | "forbidden"
  | "method_not_allowed"
  | "not_acceptable"
  | "unsupported_media_type"
  | "precondition_failed"
  | "request_timeout"
  | "misdirected_request"
  | "too_many_requests"
  | "internal";

/** The status of every code. */
export const STATUS: Readonly<Record<ErrorCode | HttpCode, number>> = {
  invalid_argument: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  not_acceptable: 406,
  request_timeout: 408,
  conflict: 409,
  illegal_transition: 409,
  lease_lost: 409,
  precondition_failed: 412,
  payload_too_large: 413,
  unsupported_media_type: 415,
  misdirected_request: 421,
  invalid_payload: 422,
  too_many_requests: 429,
  aborted: 400,
  internal: 500,
  config_refused: 500,
  store_unavailable: 503,
  store_unusable: 503,
  closed: 503,
  breaker_open: 503,
  timeout: 504,
};

/** An error that HTTP itself has, thrown where a request is refused. */
export class HttpError extends Error {
  readonly code: ErrorCode | HttpCode;
  readonly hint: string | undefined;
  readonly details: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: ErrorCode | HttpCode,
    message: string,
    more: {
      readonly hint?: string;
      readonly details?: Readonly<Record<string, unknown>>;
      readonly headers?: Readonly<Record<string, string>>;
    } = {},
  ) {
    super(message);
    this.name = "HttpError";
    this.code = code;
    this.hint = more.hint;
    this.details = more.details ?? {};
    this.headers = more.headers ?? {};
  }
}

/** Seconds after which a caller may try again. */
const RETRY_SECONDS = "1";

/** The error as it is answered; what the library does not know is said without its text. */
export function errorForm(error: unknown, requestId: string): { readonly status: number; readonly body: object } {
  const known = error instanceof HttpError || isRedriveError(error) ? error : null;
  if (known === null) {
    const message = "The server has failed. Its log has the error under this request id.";
    return { status: 500, body: { code: "internal", message, requestId } };
  }
  const details = plainDetails(known.details);
  return {
    status: STATUS[known.code] ?? 500,
    body: {
      code: known.code,
      message: known.message,
      ...(known instanceof HttpError && known.hint !== undefined && { hint: known.hint }),
      ...(details !== null && { details }),
      requestId,
    },
  };
}

/** Details that are JSON; null for none. */
function plainDetails(details: Readonly<Record<string, unknown>>): object | null {
  const said = Object.entries(details).filter(
    ([, value]) => value === null || ["string", "number", "boolean"].includes(typeof value) || Array.isArray(value),
  );
  return said.length === 0 ? null : Object.fromEntries(said);
}

/** The answer to a request that failed. */
export function errorAnswer(error: unknown, requestId: string): PlainAnswer {
  const { status, body } = errorForm(error, requestId);
  const own = error instanceof HttpError ? error.headers : {};
  const retry = status === 503 || status === 429 ? { "retry-after": RETRY_SECONDS } : {};
  const headers = { "content-type": "application/json", "cache-control": "no-store", ...retry, ...own };
  return { status, headers, body: jsonText(body) };
}
