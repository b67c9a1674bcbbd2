// The tables of known errors: system codes, error names and gRPC statuses, each with its failure class. An error that
// is not listed is transient. `SyntaxError` is left out on purpose, because its usual cause is a truncated response
// body, and so are `TypeError` and `RangeError`, which say nothing about the next attempt.

import type { FailureClass } from "./job.ts";

function table(rows: Partial<Record<FailureClass, string>>): ReadonlyMap<string, FailureClass> {
  const entries = Object.entries(rows) as [FailureClass, string][];
  return new Map(entries.flatMap(([found, words]) => words.split(/\s+/).map((word) => [word, found] as const)));
}

/** Classes of `error.code`: Node, libuv, undici, axios. */
export const SYSTEM_CODES: ReadonlyMap<string, FailureClass> = table({
  network: `ECONNRESET ECONNREFUSED ECONNABORTED ENOTFOUND EAI_AGAIN EAI_FAIL EAI_NODATA ETIMEDOUT EPIPE EPROTO
    EHOSTUNREACH EHOSTDOWN ENETUNREACH ENETDOWN ENETRESET EADDRNOTAVAIL ENOTCONN ESHUTDOWN ERR_NETWORK
    ERR_STREAM_PREMATURE_CLOSE ERR_SOCKET_CLOSED ERR_SSL_WRONG_VERSION_NUMBER CERT_HAS_EXPIRED
    DEPTH_ZERO_SELF_SIGNED_CERT SELF_SIGNED_CERT_IN_CHAIN UNABLE_TO_VERIFY_LEAF_SIGNATURE
    ERR_TLS_CERT_ALTNAME_INVALID HPE_INVALID_CONSTANT`,
  timeout: `ESOCKETTIMEDOUT ERR_SOCKET_CONNECTION_TIMEOUT ERR_TLS_HANDSHAKE_TIMEOUT UND_ERR_CONNECT_TIMEOUT
    UND_ERR_HEADERS_TIMEOUT UND_ERR_BODY_TIMEOUT`,
  transient: "ABORT_ERR ERR_CANCELED UND_ERR_ABORTED",
  system: `ENOSPC EDQUOT EMFILE ENFILE ENOMEM ENOBUFS EAGAIN EBUSY EIO ETXTBSY ERR_WORKER_OUT_OF_MEMORY
    ERR_MEMORY_ALLOCATION_FAILED`,
  permanent: `ENOENT EACCES EPERM EISDIR ENOTDIR EEXIST ENAMETOOLONG EROFS ELOOP ENOEXEC MODULE_NOT_FOUND
    ERR_MODULE_NOT_FOUND ERR_PACKAGE_PATH_NOT_EXPORTED UND_ERR_INVALID_ARG UND_ERR_NOT_SUPPORTED`,
  validation: "ERR_INVALID_URL",
});

/** Classes of `error.name`, for errors whose name says more than a status. */
export const ERROR_NAMES: ReadonlyMap<string, FailureClass> = table({
  transient: "AbortError TransactionInProgressException RequestTimeTooSkewed",
  timeout: "TimeoutError RequestTimeout RequestTimeoutException",
  permanent: "PermanentError UnrecoverableError NonRetriableError",
  crashed: "ProcessDied",
  rate_limited: `RetryAfterError RateLimitError Throttling ThrottlingException ThrottledException RequestThrottled
    RequestThrottledException EC2ThrottledException TooManyRequestsException RequestLimitExceeded
    ProvisionedThroughputExceededException BandwidthLimitExceeded LimitExceededException SlowDown
    PriorRequestNotComplete`,
  validation: "ZodError $ZodError ValidationError ValiError SchemaError ValidationException",
  authentication: `AccessDeniedException UnrecognizedClientException InvalidSignatureException ExpiredTokenException
    InvalidClientTokenId CredentialsProviderError JsonWebTokenError TokenExpiredError`,
});

/** Classes of this library's errors, for handlers that use the library themselves. */
export const REDRIVE_CODES: ReadonlyMap<string, FailureClass> = table({
  validation: "invalid_argument invalid_payload payload_too_large",
  permanent: "conflict illegal_transition config_refused",
  timeout: "timeout",
});

/** gRPC statuses by number, with name and class. */
export const GRPC_STATUSES: readonly (readonly [name: string, found: FailureClass])[] = [
  ["OK", "transient"],
  ["CANCELLED", "transient"],
  ["UNKNOWN", "transient"],
  ["INVALID_ARGUMENT", "validation"],
  ["DEADLINE_EXCEEDED", "timeout"],
  ["NOT_FOUND", "permanent"],
  ["ALREADY_EXISTS", "permanent"],
  ["PERMISSION_DENIED", "authentication"],
  ["RESOURCE_EXHAUSTED", "rate_limited"],
  ["FAILED_PRECONDITION", "validation"],
  ["ABORTED", "transient"],
  ["OUT_OF_RANGE", "validation"],
  ["UNIMPLEMENTED", "permanent"],
  ["INTERNAL", "transient"],
  ["UNAVAILABLE", "network"],
  ["DATA_LOSS", "transient"],
  ["UNAUTHENTICATED", "authentication"],
];
