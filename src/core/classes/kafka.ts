// Kafka (kafkajs): the protocol's name of an error in `type`, the names of the client's errors, and its own mark
// `retriable` for the rest. A group that rebalances takes its members back, so those errors pass although the client
// itself does not repeat the request.

import { read, readText } from "../error-shape.ts";
import { type Family, table } from "./clue.ts";

const TYPES = table({
  authentication: `SASL_AUTHENTICATION_FAILED UNSUPPORTED_SASL_MECHANISM ILLEGAL_SASL_STATE SECURITY_DISABLED
    TOPIC_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED DELEGATION_TOKEN_AUTHORIZATION_FAILED DELEGATION_TOKEN_AUTH_DISABLED
    DELEGATION_TOKEN_EXPIRED DELEGATION_TOKEN_NOT_FOUND DELEGATION_TOKEN_OWNER_MISMATCH`,
  timeout: "REQUEST_TIMED_OUT",
  network: "NETWORK_EXCEPTION",
  rate_limited: "THROTTLING_QUOTA_EXCEEDED",
  transient: `UNKNOWN KAFKAJS_UNKNOWN_ERROR_CODE BROKER_NOT_AVAILABLE REBALANCE_IN_PROGRESS ILLEGAL_GENERATION
    UNKNOWN_MEMBER_ID MEMBER_ID_REQUIRED STALE_BROKER_EPOCH STALE_CONTROLLER_EPOCH REASSIGNMENT_IN_PROGRESS
    OPERATION_NOT_ATTEMPTED CONCURRENT_TRANSACTIONS FETCH_SESSION_ID_NOT_FOUND`,
  validation: `MESSAGE_TOO_LARGE RECORD_LIST_TOO_LARGE INVALID_TOPIC_EXCEPTION INVALID_REQUEST INVALID_RECORD
    INVALID_PARTITIONS INVALID_REPLICATION_FACTOR INVALID_CONFIG INVALID_TIMESTAMP INVALID_REQUIRED_ACKS
    INVALID_GROUP_ID INVALID_SESSION_TIMEOUT INVALID_COMMIT_OFFSET_SIZE OFFSET_METADATA_TOO_LARGE`,
});
const NAMES = table({
  network: `KafkaJSConnectionError KafkaJSConnectionClosedError KafkaJSBrokerNotFound KafkaJSGroupCoordinatorNotFound
    KafkaJSNoBrokerAvailableError`,
  timeout: "KafkaJSRequestTimeoutError KafkaJSTimeout KafkaJSLockTimeout",
  authentication: "KafkaJSSASLAuthenticationError",
  transient: `KafkaJSTopicMetadataNotLoaded KafkaJSStaleTopicMetadataAssignment KafkaJSMetadataNotLoaded
    KafkaJSPartialMessageError`,
});
/** They only say how often the client tried; their cause says why. */
const WRAPPERS = [
  "KafkaJSNumberOfRetriesExceeded",
  "KafkaJSAggregateError",
  "KafkaJSNonRetriableError",
  "KafkaJSError",
];

/** Kafka. */
export const kafka: Family = ({ error, name }) => {
  if (!name.startsWith("KafkaJS")) return undefined;
  const known = NAMES.get(name) ?? TYPES.get(readText(error, "type") ?? "");
  if (known !== undefined) return known;
  const hasCause = read(error, "cause") !== undefined || read(error, "errors") !== undefined;
  if (WRAPPERS.includes(name) && hasCause) return undefined;
  return read(error, "retriable") === false ? "permanent" : "transient";
};
