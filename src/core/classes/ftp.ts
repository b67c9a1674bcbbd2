// FTP (basic-ftp): `code` is the server's reply (RFC 959), where 4xx passes and 5xx does not, the other way round than
// HTTP's 5xx.

import { type Family, table } from "./clue.ts";

const REPLIES = table({
  network: "425 426",
  system: "452",
  transient: "421 431 434 450 451",
  authentication: "331 332 430 530 532 533 534",
  validation: "501 553",
});

/** FTP. */
export const ftp: Family = ({ name, type, code }) => {
  if (name !== "FTPError" && type !== "FTPError") return undefined;
  return REPLIES.get(code) ?? (code.startsWith("5") ? "permanent" : "transient");
};
