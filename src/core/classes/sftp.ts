// SFTP and SSH (ssh2): a status number from 1 to 8 with its standard text, because the number alone could be the exit
// code of a program; and `level`, which says at which step a connection failed.

import { read, readText } from "../error-shape.ts";
import type { FailureClass } from "../job.ts";
import { type Family, table } from "./clue.ts";

/** Statuses by number, with the text that clients and servers send. */
const STATUSES: readonly (readonly [text: RegExp, found: FailureClass] | undefined)[] = [
  undefined,
  [/end of file/i, "transient"],
  [/no such (?:file|path)/i, "permanent"],
  [/permission denied/i, "authentication"],
  [/failure/i, "transient"],
  [/bad message/i, "permanent"],
  [/no connection/i, "network"],
  [/connection lost/i, "network"],
  [/unsupported/i, "permanent"],
];
const LEVELS = table({
  authentication: "client-authentication agent",
  network: "client-socket client-dns socket",
  timeout: "client-timeout",
});
/** Why a server opens no channel (RFC 4254). */
const REASONS = table({ permanent: "1 3", network: "2", transient: "4" });

/** SFTP and SSH. */
export const sftp: Family = ({ error, code, message }) => {
  const level = LEVELS.get(readText(error, "level") ?? "");
  if (level !== undefined) return level;
  if (message.startsWith("(SSH) Channel open failure")) return REASONS.get(String(read(error, "reason")));
  const status = /^[1-8]$/.test(code) ? STATUSES[Number(code)] : undefined;
  return status?.[0].test(message.slice(0, 64)) ? status[1] : undefined;
};
