// Redis replies: the first word of the message (`WRONGTYPE Operation against …`), and the errors of ioredis and redis
// about their connection. `ERR` is a general word, so the text after it decides.

import { type Clue, type Family, table } from "./clue.ts";

const REPLIES = table({
  transient: `LOADING BUSY CLUSTERDOWN MASTERDOWN TRYAGAIN MOVED ASK READONLY NOREPLICAS NOTREADY UNBLOCKED INPROG
    NOGOODSLAVE NOQUORUM STALE REDIRECT FAILOVER`,
  system: "OOM MISCONF IOERR",
  authentication: "NOAUTH WRONGPASS NOPERM DENIED",
  permanent: `WRONGTYPE CROSSSLOT EXECABORT NOSCRIPT BUSYGROUP BUSYKEY NOGROUP NOPROTO NOTBUSY UNKILLABLE DUPLICATE
    NOMASTERLINK NOADDR INVALIDOBJ BADARITY`,
});
const ERR_TEXTS: readonly (readonly [RegExp, "rate_limited" | "transient" | "authentication"])[] = [
  [/^ERR max (?:daily |monthly )?requests? (?:size )?limit exceeded/, "rate_limited"],
  [/^ERR max number of clients/, "transient"],
  [/^ERR (?:invalid password|operation not permitted|AUTH |Client sent AUTH|invalid username)/i, "authentication"],
  [/^ERR (?:internal|server) error|try again/i, "transient"],
];
const NAMES = table({
  network: `MaxRetriesPerRequestError ClusterAllFailedError SocketClosedUnexpectedlyError ClientClosedError
    ClientOfflineError DisconnectsClientError RootNodesUnavailableError ReconnectStrategyError`,
  timeout:
    "SocketTimeoutError ConnectionTimeoutError CommandTimeoutDuringMaintenanceError SocketTimeoutDuringMaintenanceError",
  transient: "WatchError ScanIteratorInterruptedError MaxCommandRedirectionsError ClusterCommandRedirectionsError",
});
const REPLY_TYPES = ["ReplyError", "SimpleError", "BlobError", "ErrorReply", "RedisError", "ResponseError"];

/** Redis. */
export const redis: Family = (clue) => NAMES.get(clue.type) ?? NAMES.get(clue.name) ?? byReply(clue);

function byReply({ name, type, message }: Clue) {
  const word = /^[A-Z]{3,16}(?= |$)/.exec(message)?.[0];
  if (word === undefined) return undefined;
  const isReply = REPLY_TYPES.includes(name) || REPLY_TYPES.includes(type);
  if (word === "ERR") {
    return isReply ? (ERR_TEXTS.find(([text]) => text.test(message))?.[1] ?? "permanent") : undefined;
  }
  // A short or common word begins the messages of other programs too.
  return isReply || /^(?:NOAUTH|WRONGPASS|NOPERM|WRONGTYPE|CROSSSLOT|CLUSTERDOWN|MASTERDOWN)$/.test(word)
    ? REPLIES.get(word)
    : undefined;
}
