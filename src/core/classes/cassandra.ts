// Cassandra: the number in a `ResponseError`, as the protocol writes it. Other libraries have errors of this name; only the
// driver's has `info`.

import { readText } from "../error-shape.ts";
import { type Family, readNumber } from "./clue.ts";

/** Cassandra. */
export const cassandra: Family = ({ error, name }) => {
  const isOwn = name === "ResponseError" && readText(error, "info") !== undefined;
  const code = isOwn ? readNumber(error, "code") : undefined;
  if (code === undefined) return undefined;
  if (code === 0x0100 || code === 0x2100) return "authentication";
  if (code === 0x1100 || code === 0x1200) return "timeout";
  if (code < 0x2000) return "transient";
  // The server has forgotten a prepared statement; the driver prepares it again.
  if (code === 0x2500) return "transient";
  return code >= 0x2000 && code < 0x2600 ? "permanent" : undefined;
};
