// NATS: the word or number in `code`. 503 means that nothing listens on the subject now, 408 that no message came.

import { type Family, table } from "./clue.ts";

const CODES = table({
  network: "CONNECTION_CLOSED CONNECTION_REFUSED CONNECTION_DRAINING DISCONNECT TLS",
  timeout: "TIMEOUT AUTHENTICATION_TIMEOUT CONNECTION_TIMEOUT 408",
  transient: "503 409 CANCELLED SUB_DRAINING SUB_CLOSED NATS_PROTOCOL_ERR UNKNOWN_ERROR JESTREAM_INVALID_ACK",
  authentication: `AUTHORIZATION_VIOLATION AUTHENTICATION_EXPIRED PERMISSIONS_VIOLATION BAD_AUTHENTICATION BAD_CREDS
    ACCOUNT_EXPIRED`,
  rate_limited: "MAX_CONNECTIONS_EXCEEDED",
  validation: `MAX_PAYLOAD_EXCEEDED BAD_SUBJECT BAD_PAYLOAD BAD_HEADER BAD_JSON INVALID_OPTION INVALID_PAYLOAD NOT_FUNC
    INVALID_INBOX`,
  permanent: "404 SERVER_OPT_NA WSS_REQUIRED",
});

/** NATS. */
export const nats: Family = ({ name, code }) => (name === "NatsError" ? CODES.get(code) : undefined);
