// Names that children in Python report: built-in exceptions, requests, urllib3, httpx, aiohttp, DB-API drivers, boto3.
// The number in `[Errno 28]` and the word in boto's message decide before the name.

import { SYSTEM_CODES } from "../system-codes.ts";
import { type Family, table } from "./clue.ts";
import { classOfWord } from "./words.ts";

const NAMES = table({
  network: `ConnectionError ConnectionRefusedError ConnectionResetError ConnectionAbortedError BrokenPipeError gaierror
    ChunkedEncodingError ProxyError NewConnectionError MaxRetryError NameResolutionError IncompleteRead
    RemoteDisconnected ConnectError ReadError WriteError CloseError RemoteProtocolError ClientConnectorError
    ClientConnectionError ServerDisconnectedError ClientOSError ClientPayloadError EndpointConnectionError URLError
    ConnectionClosedError EOFError SMTPServerDisconnected SMTPConnectError InterfaceError`,
  timeout: `ReadTimeout ConnectTimeout WriteTimeout PoolTimeout Timeout ReadTimeoutError ConnectTimeoutError
    ServerTimeoutError TimeoutExpired QueryCanceled SoftTimeLimitExceeded TimeLimitExceeded`,
  transient: `JSONDecodeError BlockingIOError InterruptedError DeadlockDetected SerializationFailure LockNotAvailable
    AdminShutdown CannotConnectNow TooManyConnections ReadOnlySqlTransaction InFailedSqlTransaction RetryError
    ContentDecodingError BusyLoadingError CalledProcessError`,
  system: "DiskFull MemoryError OutOfMemoryError",
  validation: `ValueError UnicodeDecodeError UnicodeEncodeError UnicodeError MissingSchema InvalidSchema InvalidURL
    InvalidHeader LocationParseError DataError NotNullViolation CheckViolation ParamValidationError
    UnidentifiedImageError StringDataRightTruncation NumericValueOutOfRange UnsupportedProtocol InvalidProxyURL
    InvalidTextRepresentation ParserError ScannerError`,
  permanent: `FileNotFoundError FileExistsError IsADirectoryError NotADirectoryError PermissionError ImportError
    ModuleNotFoundError NotImplementedError SSLError SSLCertVerificationError CertificateError ClientConnectorSSLError
    TooManyRedirects UniqueViolation ForeignKeyViolation IntegrityError ProgrammingError NotSupportedError
    UndefinedTable UndefinedColumn DoesNotExist ObjectDoesNotExist NoResultFound MultipleResultsFound IndentationError
    UndefinedFunction DuplicateTable InvalidCatalogName ExclusionViolation ClientConnectorCertificateError
    SMTPRecipientsRefused`,
  authentication: `InsufficientPrivilege NoCredentialsError PartialCredentialsError InvalidSignatureError
    ExpiredSignatureError InvalidPassword RefreshError DefaultCredentialsError SMTPAuthenticationError
    InvalidAuthorizationSpecification InvalidTokenError`,
  rate_limited: "QuotaExceededError ResourceExhausted",
});
/** Linux numbers of system errors, as `[Errno 28]` has them. */
const ERRNO: ReadonlyMap<string, string> = new Map(
  `1 EPERM 2 ENOENT 4 EAGAIN 5 EIO 11 EAGAIN 12 ENOMEM 13 EACCES 16 EBUSY 17 EEXIST 20 ENOTDIR 21 EISDIR 23 ENFILE
  24 EMFILE 26 ETXTBSY 28 ENOSPC 30 EROFS 32 EPIPE 36 ENAMETOOLONG 40 ELOOP 98 EBUSY 99 EADDRNOTAVAIL 100 ENETDOWN
  101 ENETUNREACH 103 ECONNABORTED 104 ECONNRESET 105 ENOBUFS 107 ENOTCONN 110 ETIMEDOUT 111 ECONNREFUSED
  112 EHOSTDOWN 113 EHOSTUNREACH 122 EDQUOT`
    .match(/\d+ [A-Z]+/g)
    ?.map((row) => row.split(" ") as [string, string]) ?? [],
);

/** Python. */
export const python: Family = ({ name, message }) => {
  const short = name.split(".").pop() ?? "";
  const errno = /^\[Errno (\d{1,3})\]/.exec(message)?.[1];
  const system = errno === undefined ? undefined : SYSTEM_CODES.get(ERRNO.get(errno) ?? "");
  if (system !== undefined && !NAMES.has(short)) return system;
  if (short === "SSLError" && /EOF|reset/.test(message)) return "network";
  if (short === "OperationalError") {
    if (/authentication failed/.test(message)) return "authentication";
    return /connect|server closed/.test(message) ? "network" : "transient";
  }
  const boto = /^An error occurred \(([A-Za-z.]{3,64})\) when calling/.exec(message)?.[1];
  return boto === undefined ? NAMES.get(short) : (classOfWord(boto) ?? NAMES.get(short));
};
