// The tables that belong to no family: system codes, general error names and gRPC statuses, each with its failure
// class. `SyntaxError` is left out on purpose, because its usual cause is a truncated response body, and so are
// `TypeError` and `RangeError`, which say nothing about the next attempt.

import { table } from "./classes/clue.ts";
import type { FailureClass } from "./job.ts";

/** Classes of `error.code`: Node, libuv, undici, axios. */
export const SYSTEM_CODES: ReadonlyMap<string, FailureClass> = table({
  network: `ECONNRESET ECONNREFUSED ECONNABORTED ENOTFOUND EAI_AGAIN EAI_FAIL EAI_NODATA ETIMEDOUT EPIPE EPROTO
    EHOSTUNREACH EHOSTDOWN ENETUNREACH ENETDOWN ENETRESET EADDRNOTAVAIL ENOTCONN ESHUTDOWN ERR_NETWORK EAI_NONAME
    ENONAME ENODATA ESERVFAIL EREFUSED EBADRESP ERR_STREAM_PREMATURE_CLOSE ERR_SOCKET_CLOSED ERR_NOT_CONNECTED
    ERR_CONNECTION_REFUSED ERR_IPC_CHANNEL_CLOSED HPE_INVALID_CONSTANT`,
  timeout: `ESOCKETTIMEDOUT ERR_SOCKET_CONNECTION_TIMEOUT ERR_TLS_HANDSHAKE_TIMEOUT UND_ERR_CONNECT_TIMEOUT
    UND_ERR_HEADERS_TIMEOUT UND_ERR_BODY_TIMEOUT ETIMEOUT`,
  transient: "ABORT_ERR ERR_ABORTED ERR_CANCELED UND_ERR_ABORTED ECANCELED EINTR Z_BUF_ERROR ERR_STREAM_DESTROYED",
  system: `Z_MEM_ERROR ENOSPC EDQUOT EMFILE ENFILE ENOMEM ENOBUFS EAGAIN EBUSY EIO ETXTBSY EADDRINUSE
    ERR_WORKER_OUT_OF_MEMORY ERR_MEMORY_ALLOCATION_FAILED`,
  permanent: `ENOENT EACCES EPERM EISDIR ENOTDIR EEXIST ENAMETOOLONG EROFS ELOOP ENOEXEC MODULE_NOT_FOUND ENOTEMPTY
    EXDEV EBADF EINVAL ENOSYS ENOTSUP EOPNOTSUPP EMLINK ENXIO ENODEV EFBIG EMSGSIZE EPROTONOSUPPORT ENOTSOCK ESRCH
    EAFNOSUPPORT ERR_MODULE_NOT_FOUND UND_ERR_INVALID_ARG UND_ERR_NOT_SUPPORTED UND_ERR_HEADERS_OVERFLOW
    UND_ERR_RES_EXCEEDED_MAX_SIZE ERR_STRING_TOO_LONG ERR_CHILD_PROCESS_STDIO_MAXBUFFER ERR_TOO_MANY_REDIRECTS
    ERR_FR_TOO_MANY_REDIRECTS ERR_FR_MAX_BODY_LENGTH_EXCEEDED ERR_NOT_SUPPORT ERR_BAD_PATH ETOOLARGE
    UND_ERR_REQ_CONTENT_LENGTH_MISMATCH WS_ERR_UNSUPPORTED_MESSAGE_LENGTH Z_DATA_ERROR`,
  validation: "E2BIG EBADNAME ERR_BAD_OPTION ERR_BAD_OPTION_VALUE ERR_SOCKET_BAD_PORT",
  authentication: "ERR_BAD_AUTH",
});

/** Classes of `error.name`, for errors whose name says more than a status. */
export const ERROR_NAMES: ReadonlyMap<string, FailureClass> = table({
  transient: "AbortError RequestTimeTooSkewed PriorRequestNotComplete",
  timeout: "TimeoutError",
  permanent: "PermanentError UnrecoverableError NonRetriableError",
  crashed: "ProcessDied",
  rate_limited: "RetryAfterError RateLimitError BandwidthLimitExceeded",
  authentication: "CredentialsProviderError InvalidClientTokenId",
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
  ["FAILED_PRECONDITION", "permanent"],
  ["ABORTED", "transient"],
  ["OUT_OF_RANGE", "validation"],
  ["UNIMPLEMENTED", "permanent"],
  ["INTERNAL", "transient"],
  ["UNAVAILABLE", "network"],
  ["DATA_LOSS", "permanent"],
  ["UNAUTHENTICATED", "authentication"],
];
