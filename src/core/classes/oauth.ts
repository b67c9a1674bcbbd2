// OAuth 2 and OpenID Connect: the word in `error` of an answer (RFC 6749, 8628, OpenID Connect Core). It says more than
// the status 400 that most of them come with.

import { read, readPath, readText } from "../error-shape.ts";
import { type Family, table } from "./clue.ts";

const WORDS = table({
  authentication: `invalid_grant invalid_client unauthorized_client access_denied invalid_token insufficient_scope
    login_required consent_required interaction_required account_selection_required expired_token invalid_dpop_proof
    mismatching_state bad_verification_code incorrect_client_credentials`,
  validation: "invalid_request invalid_scope invalid_target invalid_request_object invalid_request_uri",
  permanent: `unsupported_grant_type unsupported_response_type unsupported_token_type request_not_supported
    request_uri_not_supported redirect_uri_mismatch`,
  transient: "temporarily_unavailable server_error authorization_pending use_dpop_nonce",
  rate_limited: "slow_down",
});
/** Codes of openid-client about tokens and answers. */
const CODES = table({
  authentication: `OAUTH_JWT_TIMESTAMP_CHECK_FAILED OAUTH_JWT_CLAIM_COMPARISON_FAILED OAUTH_KEY_SELECTION_FAILED
    OAUTH_DECRYPTION_FAILED OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED OAUTH_WWW_AUTHENTICATE_CHALLENGE`,
  permanent: `OAUTH_HTTP_REQUEST_FORBIDDEN OAUTH_REQUEST_PROTOCOL_FORBIDDEN OAUTH_MISSING_SERVER_METADATA
    OAUTH_INVALID_SERVER_METADATA OAUTH_UNSUPPORTED_OPERATION`,
  validation: "OAUTH_INVALID_REQUEST",
  timeout: "OAUTH_TIMEOUT",
  transient: "OAUTH_ABORT OAUTH_PARSE_ERROR OAUTH_RESPONSE_IS_NOT_JSON",
});

/** OAuth: openid-client, google-auth-library, axios or fetch against a token endpoint, MSAL (`errorCode`). */
export const oauth: Family = ({ error, code, message, carries }) => {
  const cause = read(error, "cause");
  if (carries === "nothing" && cause === undefined) return WORDS.get(message);
  const holders = [
    error,
    cause,
    readPath(error, "response", "data"),
    readPath(error, "response", "body"),
    read(error, "body"),
    readPath(error, "data", "payload"),
    read(error, "data"),
  ];
  const words = holders.map((holder) => readText(holder, "error") ?? "");
  const known = [...words, readText(error, "errorCode") ?? "", code, message].find((word) => WORDS.has(word));
  return known === undefined ? CODES.get(code) : WORDS.get(known);
};
