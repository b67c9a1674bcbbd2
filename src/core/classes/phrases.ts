// What only the message says: the texts of libraries that give no code, a system code or HTTP status in a text, and
// common words for a timeout, a lost connection or a rate limit. Asked last, after names and codes.

import { classOfStatus } from "../http-status.ts";
import { readText } from "../error-shape.ts";
import type { FailureClass } from "../job.ts";
import { SYSTEM_CODES } from "../system-codes.ts";
import type { Clue } from "./clue.ts";
import { classOfWord } from "./words.ts";

/** Texts of one library each; they may say that a retry is useless. */
const TEXTS: readonly (readonly [RegExp, FailureClass])[] = [
  // fetch, node-fetch, axios, got
  [
    /^bad port$|^unknown scheme$|^redirect count exceeded$|^unexpected redirect$|maximum redirect reached|over limit: \d/,
    "permanent",
  ],
  [
    /^maxContentLength size of \d+ exceeded|^maxBodyLength|larger than maxBodyLength limit|^Redirected \d+ times/,
    "permanent",
  ],
  [
    /^Invalid URL\b|^Failed to parse URL|^Only absolute URLs are supported|^Only HTTP\(S\) protocols|^Unsupported protocol /,
    "validation",
  ],
  [/^URL scheme ".{0,20}" is not supported/, "validation"],
  // JSON, better-sqlite3, mysql2: a value that cannot be written.
  [/^Converting circular structure to JSON|^Do not know how to serialize a BigInt/, "validation"],
  [/^SQLite3 can only bind |^Too (?:few|many) parameter values were provided|^Missing named parameter/, "validation"],
  [/^Bind parameters must not contain undefined/, "validation"],
  // pg
  [/^SASL: |^SASL channel binding/, "authentication"],
  [/^The server does not support SSL connections|^Server does not support secure connection/, "permanent"],
  [/is not queryable$/, "network"],
  // mysql2, mssql, redis, ssh2
  [/^Queue limit reached|^No connections available/, "transient"],
  [/All configured authentication methods failed|\bHost denied\b|^Invalid username$/, "authentication"],
  [
    /^Stream isn't writeable|^All sentinels are unreachable|^None of startup nodes is available|isn't ready and enableOffline/,
    "network",
  ],
  [/Handshake failed: no matching/, "permanent"],
  // nodemailer, Google
  [
    /^Missing credentials for|^Could not (?:load the default|refresh access) (?:credentials|token)|^No key or keyFile set/,
    "authentication",
  ],
  [/^Credential is missing|^API key (?:not valid|expired)|^Authentication failed against/, "authentication"],
  [
    /^Region is missing|Environment variable not found: |^Connection in subscriber mode|^secretOrPrivateKey must/,
    "permanent",
  ],
  [/^Expected amqp: or amqps: /, "permanent"],
  [/^Can't reach database server/, "network"],
  // git, curl
  [/^fatal: Authentication failed|^fatal: could not read Username/, "authentication"],
  [/\bCould not resolve (?:host|proxy)\b/, "network"],
  // Uploads, luxon
  [/\b(?:file|payload|entity|message|body) (?:is )?too large\b/i, "validation"],
  [/^Invalid (?:DateTime|Duration|Interval): /, "validation"],
  // socket.io
  [/^(?:xhr poll|xhr post|websocket) error$/, "network"],
  // Python
  [/^invalid literal for int\(\)|^could not convert string to float/, "validation"],
];
/** Common words, only for failures that pass. */
const COMMON: readonly (readonly [RegExp, FailureClass])[] = [
  [/\brate[- ]?limit(?:ed|s|ing)?\b|\btoo many requests\b|\bthrottl(?:ed|ing)\b|\bquota exceeded\b/i, "rate_limited"],
  [/\btime(?:d)?[ -]?out\b|\bdeadline exceeded\b/i, "timeout"],
  [
    /\bsocket hang up\b|\bpremature close\b|\bnetwork (?:error|is unreachable)\b|\bbroken pipe\b|\bfailed to fetch\b/i,
    "network",
  ],
  [
    /\b(?:connection|socket|channel|stream|websocket)\b.{0,24}\b(?:closed|lost|reset|refused|aborted|terminated|ended|disconnected|failed|not open)\b/i,
    "network",
  ],
  [
    /\bnot connected\b|\bclosed (?:the )?connection\b|\bother side closed\b|\bname resolution\b|\bno (?:\w+ )?connection\b|\bis (?:closed|disconnected)\.?$/i,
    "network",
  ],
  [/\bout of memory\b|\bno space left\b|\bheap limit\b/i, "system"],
];
/** One pattern that fits what any of these fit, so that a text that none fits is read once. */
function anyOf(rows: readonly (readonly [RegExp, FailureClass])[], flags: string): RegExp {
  const patterns = rows.map(([pattern]) => pattern).filter((pattern) => pattern.flags === flags);
  return new RegExp(patterns.map(({ source }) => source).join("|"), flags);
}
const ANY_TEXT = anyOf(TEXTS, "");
const ANY_TEXT_IN_ANY_CASE = anyOf(TEXTS, "i");
const ANY_COMMON = anyOf(COMMON, "i");

/** System codes count in a text only where the failure passes: a text may tell of more than its own failure. */
const PASSING = new Map([...SYSTEM_CODES].filter(([, found]) => found !== "permanent" && found !== "validation"));
const STATUS_TEXT =
  /^([45]\d\d):? (?:Bad Request|Unauthorized|Forbidden|Not Found|Conflict|Gone|Unprocessable|Too Many Requests|Internal Server Error|Bad Gateway|Service Unavailable|Gateway Time-?out|Request Timeout)/i;
const STATUS =
  /(?:\bstatus(?: code)?|\bHTTP(?: Error)?(?:\/\d(?:\.\d)?)?|\bresponse)[ :=(]{1,3}([45]\d\d)\b|^([45]\d\d) (?:Client|Server) Error\b|^(?:Client|Server) error '([45]\d\d) |^([45]\d\d), message=/i;

/** The class of a message; undefined where it says nothing. */
export function classOfText({ error, message: own, carries }: Clue): FailureClass | undefined {
  // PostgREST's client puts the cause of a failed fetch into `details`.
  const details = carries === "more" ? (readText(error, "details")?.slice(0, 256) ?? "") : "";
  const message = `${own}\n${details}`.trimEnd();
  if (ANY_TEXT.test(message) || ANY_TEXT_IN_ANY_CASE.test(message))
    return TEXTS.find(([text]) => text.test(message))?.[1];
  const found = STATUS_TEXT.exec(message) ?? STATUS.exec(message);
  const status = found?.slice(1).find((digits) => digits !== undefined);
  if (status !== undefined) return classOfStatus(Number(status), error);
  const code = message.match(/\bE[A-Z]{3,14}(?:_[A-Z]{3,10})?\b/g)?.find((word) => PASSING.has(word));
  if (code !== undefined) return PASSING.get(code);
  const common = ANY_COMMON.test(message) ? COMMON.find(([text]) => text.test(message))?.[1] : undefined;
  return common ?? (typeof error === "string" && error.length <= 40 ? classOfWord(error) : undefined);
}
