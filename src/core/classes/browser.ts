// Browsers under Playwright and Puppeteer: Chromium's `net::ERR_…`, Firefox's `NS_ERROR_…`, a page or browser that
// went away (a new one works), and a browser that is not installed.

import type { FailureClass } from "../job.ts";
import { type Family, table } from "./clue.ts";

const NET = table({
  timeout: "TIMED_OUT CONNECTION_TIMED_OUT",
  transient:
    "ABORTED FAILED CACHE_MISS HTTP_RESPONSE_CODE_FAILURE INVALID_RESPONSE CONTENT_LENGTH_MISMATCH CONTENT_DECODING_FAILED",
  system: "OUT_OF_MEMORY INSUFFICIENT_RESOURCES FILE_NO_SPACE",
  validation: "INVALID_URL UNKNOWN_URL_SCHEME DISALLOWED_URL_SCHEME",
  permanent: `UNSAFE_PORT FILE_NOT_FOUND TOO_MANY_REDIRECTS UNSAFE_REDIRECT BLOCKED_BY_CLIENT BLOCKED_BY_RESPONSE
    BLOCKED_BY_ADMINISTRATOR BLOCKED_BY_CSP SSL_VERSION_OR_CIPHER_MISMATCH BAD_SSL_CLIENT_AUTH_CERT ACCESS_DENIED`,
  authentication: "INVALID_AUTH_CREDENTIALS UNSUPPORTED_AUTH_SCHEME PROXY_AUTH_UNSUPPORTED",
});
const TEXTS: readonly (readonly [RegExp, FailureClass])[] = [
  [
    /executable doesn't exist|Browser was not found|Could not find (?:Chrome|Firefox|browser)|Host system is missing|error while loading shared libraries/i,
    "permanent",
  ],
  [
    /(?:Target|Session|Page|Browser|Connection)(?: has been)? closed|browser has been closed|frame (?:was|got) detached/i,
    "transient",
  ],
  [/Target crashed|Page crashed|Execution context was destroyed|browser has disconnected/i, "transient"],
  [/Cannot navigate to invalid URL/, "validation"],
  [/is not a valid selector|strict mode violation|No element found for selector/, "permanent"],
];

/** Browsers. */
export const browser: Family = ({ message }) => {
  const net = /\bnet::ERR_([A-Z0-9_]{3,48})/.exec(message)?.[1];
  if (net !== undefined) return NET.get(net) ?? (net.startsWith("CERT_") ? "permanent" : "network");
  const gecko = /\bNS_ERROR_([A-Z_]{3,48})/.exec(message)?.[1];
  if (gecko !== undefined) return gecko.includes("TIMEOUT") ? "timeout" : "network";
  const isBrowser =
    /^(?:page|browser|browserType|frame|locator|elementHandle|context|browserContext)\.|Protocol error|Navigating|chrom|firefox|Browser was/i;
  return isBrowser.test(message) ? TEXTS.find(([text]) => text.test(message))?.[1] : undefined;
};
