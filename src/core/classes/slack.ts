// Slack: the Web API answers 200 with a word in `data.error`. Words that are not listed are permanent, because Slack
// names what it refuses (channel_not_found, is_archived).

import { readPath } from "../error-shape.ts";
import { type Family, table } from "./clue.ts";

const WORDS = table({
  authentication: `not_authed invalid_auth account_inactive token_revoked token_expired no_permission missing_scope
    not_allowed_token_type org_login_required ekm_access_denied access_denied two_factor_setup_required
    team_access_not_granted invalid_token bad_client_secret invalid_client_id invalid_refresh_token`,
  transient: "fatal_error internal_error service_unavailable team_added_to_org accesslimited",
  timeout: "request_timeout",
  rate_limited: "ratelimited rate_limited message_limit_exceeded",
  validation: "msg_too_long no_text msg_blocks_too_long metadata_too_large",
});
const WRONG_CALL = /^(?:invalid|missing|too_many)_|_(?:required|too_long)$/;

/** Slack. */
export const slack: Family = ({ error, code }) => {
  if (code === "slack_webapi_rate_limited_error") return "rate_limited";
  if (code === "slack_webapi_file_upload_invalid_args_error") return "validation";
  const word = readPath(error, "data", "error");
  if (code !== "slack_webapi_platform_error" || typeof word !== "string") return undefined;
  return WORDS.get(word) ?? (WRONG_CALL.test(word.slice(0, 64)) ? "validation" : "permanent");
};
