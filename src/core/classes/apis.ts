// Cloud services and payment or model APIs whose own word says more than the HTTP status beside it: AWS, Azure,
// Stripe, OpenAI, Firebase, Elasticsearch. What is not listed is left to the status.

import { read, readMembers, readPath, readText } from "../error-shape.ts";
import { classOfStatus } from "../http-status.ts";
import { type Family, table } from "./clue.ts";

const AWS = table({
  authentication: `AccessDenied AccessDeniedException AllAccessDisabled AuthFailure ExpiredToken ExpiredTokenException
    IncompleteSignature InvalidAccessKeyId InvalidClientTokenId InvalidSignatureException InvalidToken KmsAccessDenied
    KMSAccessDeniedException MissingAuthenticationToken MissingAuthenticationTokenException NotAuthorized
    OptInRequired NotAuthorizedException RequestExpired SignatureDoesNotMatch AuthorizationHeaderMalformed
    InvalidSecurity NotSignedUp AccountProblem SubscriptionRequiredException TokenRefreshRequired
    UnauthorizedOperation UnrecognizedClientException CredentialsProviderError KmsOptInRequired
    UserNotConfirmedException`,
  rate_limited: `KmsThrottled KMSThrottlingException RequestThrottled LimitExceededException RequestLimitExceeded
    SlowDown RequestThrottledException ThrottlingException Throttling TooManyRequestsException BandwidthLimitExceeded
    ProvisionedThroughputExceededException ServiceQuotaExceededException OverLimit`,
  transient: `TemporaryRedirect TransactionConflictException TransactionInProgressException OperationAborted
    InternalError InternalFailure InternalServerError ServiceUnavailable ServiceUnavailableException
    RequestTimeTooSkewed ConditionalRequestConflict ReplicatedWriteConflictException IDPCommunicationError
    QueueDeletedRecently ConcurrentModificationException ResourceInUseException ResourceConflictException
    ConcurrentRunsExceededException PriorRequestNotComplete ResourceNotReadyException PurgeQueueInProgress
    KMSInternalException BucketNotReady TransientError OptimisticLockException ModelNotReadyException`,
  timeout: "RequestTimeout RequestTimeoutException ModelTimeoutException",
  validation: `ValidationException ValidationError InvalidMessageContents InvalidParameterValue
    InvalidParameterException SerializationException InvalidAttributeName InvalidAttributeValue EntityTooLarge
    EntityTooSmall MalformedXML InvalidDigest BadDigest InvalidRequest InvalidArgument KeyTooLongError
    BatchRequestTooLong MissingParameter`,
  permanent: `ItemCollectionSizeLimitExceededException ConditionalCheckFailedException ResourceNotFoundException
    QueueDoesNotExist QueueDoesNotExistException NonExistentQueue ReceiptHandleIsInvalid DuplicateItemException
    AWS.SimpleQueueService.NonExistentQueue UnsupportedOperation QueueNameExists NoSuchBucket NoSuchKey NoSuchUpload
    PermanentRedirect InvalidBucketState InvalidObjectState KmsDisabled KmsNotFound KmsInvalidState KmsInvalidKeyUsage
    TableNotFoundException IdempotentParameterMismatchException TooManyEntriesInBatchRequest EmptyBatchRequest
    BatchEntryIdsNotDistinct MessageNotInflight NotFoundException`,
});

/** AWS SDK 3: the name of the error; a name alone counts if it ends in Exception, as AWS's do. A cancelled DynamoDB transaction has a reason for each item. */
export const aws: Family = ({ error, name }) => {
  const isAws = read(error, "$metadata") !== undefined || read(error, "$fault") !== undefined;
  if (!isAws && !name.endsWith("Exception")) return undefined;
  if (name === "TransactionCanceledException") return byReasons(readMembers(error, "CancellationReasons"));
  const word = name.includes("#") ? (name.split("#").pop() ?? "") : name;
  return AWS.get(word) ?? (/Throttl/.test(word) ? "rate_limited" : undefined);
};

function byReasons(reasons: readonly unknown[]) {
  const codes = reasons.map((reason) => readText(reason, "Code") ?? "");
  if (codes.some((code) => code === "ThrottlingError" || code === "ProvisionedThroughputExceeded"))
    return "rate_limited";
  if (codes.includes("TransactionConflict")) return "transient";
  if (codes.includes("ValidationError")) return "validation";
  return codes.some((code) => code !== "" && code !== "None") ? "permanent" : "transient";
}

const AZURE = table({
  transient: `ContainerBeingDeleted ContainerBeingDisabled QueueBeingDeleted ShareBeingDeleted TableBeingDeleted
    BlobBeingRehydrated PendingCopyOperation OperationTimedOut InternalError ServerBusy AccountBeingCreated
    LeaseAlreadyPresent LeaseIsBreakingAndCannotBeAcquired PARSE_ERROR`,
  network: "REQUEST_SEND_ERROR",
});

/** Azure: `code` beside a status. A body that cannot be parsed (PARSE_ERROR) passes. */
export const azure: Family = ({ name, code }) => (name === "RestError" ? AZURE.get(code) : undefined);

const STRIPE = table({
  authentication:
    "StripeInvalidGrantError StripeAuthenticationError StripePermissionError StripeSignatureVerificationError",
  rate_limited: "StripeRateLimitError",
  network: "StripeConnectionError",
  transient: "StripeAPIError",
});
const STRIPE_LATER = table({
  transient: `lock_timeout idempotency_key_in_use processing_error try_again_later issuer_not_available
    reenter_transaction api_connection_error`,
  rate_limited: "rate_limit",
});

/** Stripe: the error's `type`, and the declines that the card's bank allows to be tried again. */
export const stripe: Family = ({ error, code, message }) => {
  const type = readText(error, "type") ?? "";
  if (!type.startsWith("Stripe")) return undefined;
  const later = STRIPE_LATER.get(code) ?? STRIPE_LATER.get(readText(error, "decline_code") ?? "");
  if (later !== undefined) return later;
  if (type === "StripeConnectionError" && /timeout|ETIMEDOUT/i.test(message)) return "timeout";
  return STRIPE.get(type);
};

const WORDS = table({
  // An account without credit (OpenAI answers 429), which no wait fills.
  permanent: "insufficient_quota billing_hard_limit_reached billing_not_active billing_error",
  // Notion: two writes met; its docs say to try again.
  transient: "conflict_error",
});

/** OpenAI, Anthropic, Notion: a word in `code` or `type`. */
export const words: Family = ({ error, type, code }) => {
  // The SDKs of OpenAI and Anthropic retry a 409 themselves: another request holds the object.
  if (type === "ConflictError" && read(error, "requestID") !== undefined) return "transient";
  return WORDS.get(code) ?? WORDS.get(readText(error, "type") ?? "");
};

/** Supabase Storage: the real status is text in `statusCode`, beside the 400 of every answer. */
export const storage: Family = ({ error, name }) => {
  const status = name === "StorageApiError" ? Number(readText(error, "statusCode")) : 0;
  return status >= 400 && status <= 599 ? classOfStatus(status, error) : undefined;
};

const FIREBASE = table({
  rate_limited: `message-rate-exceeded device-message-rate-exceeded topics-message-rate-exceeded too-many-requests
    quota-exceeded too-many-topics reset-password-exceed-limit too-many-attempts-try-later`,
  transient: "server-unavailable internal-error unknown-error unknown internal unavailable aborted cancelled",
  timeout: "deadline-exceeded network-timeout",
  network: "network-error",
  authentication: `mismatched-credential invalid-apns-credentials third-party-auth-error authentication-error
    invalid-credential insufficient-permission id-token-expired id-token-revoked session-cookie-expired
    session-cookie-revoked invalid-id-token unauthorized unauthenticated permission-denied user-disabled
    invalid-session-cookie unauthorized-continue-uri wrong-password invalid-auth-event`,
  validation: "argument-error",
  permanent: "registration-token-not-registered not-found user-not-found already-exists failed-precondition no-app",
});

/** Firebase: `service/word`. A word that is not listed tells what was wrong with the call. */
export const firebase: Family = ({ error, code }) => {
  const [prefix = "", word] = code.split("/");
  if (word === undefined || !/^[a-z-]{2,24}$/.test(prefix) || !/^[a-z-]{2,60}$/.test(word)) return undefined;
  const isFirebase = read(error, "errorInfo") !== undefined || read(error, "codePrefix") !== undefined;
  const known = FIREBASE.get(word);
  if (known !== undefined || !isFirebase) return known;
  if (/(?:already-exists|not-found|not-allowed|-disabled)$/.test(word)) return "permanent";
  return /^(?:invalid|missing|maximum|claims|forbidden)-|-limit-exceeded$|-required$/.test(word)
    ? "validation"
    : undefined;
};

/** Elasticsearch and OpenSearch: a version conflict (409) passes once the document is read again. */
export const elastic: Family = ({ error, name, message }) => {
  if (read(error, "meta") === undefined) return undefined;
  if (name === "NoLivingConnectionsError") return "network";
  const type = readPath(error, "meta", "body", "error", "type");
  if (readPath(error, "meta", "statusCode") !== 409) return undefined;
  return `${String(type)} ${message}`.includes("version_conflict_engine_exception") ? "transient" : undefined;
};
