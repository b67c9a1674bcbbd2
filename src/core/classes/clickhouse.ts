// ClickHouse: the word in `type`. The status does not tell: the client drops it, and the server says 500 for most.

import { readText } from "../error-shape.ts";
import type { FailureClass } from "../job.ts";
import type { Family } from "./clue.ts";

const WORDS: readonly (readonly [RegExp, FailureClass])[] = [
  [
    /^(?:AUTHENTICATION_FAILED|REQUIRED_PASSWORD|WRONG_PASSWORD|UNKNOWN_USER|ACCESS_DENIED|READONLY)$/,
    "authentication",
  ],
  [/^(?:TOO_MANY_SIMULTANEOUS_QUERIES|QUOTA_EXCEEDED|TOO_MANY_PARTS)$/, "rate_limited"],
  [/TIMEOUT/, "timeout"],
  [/^(?:NETWORK_ERROR|ALL_CONNECTION_TRIES_FAILED|CANNOT_READ_FROM_SOCKET|CANNOT_WRITE_TO_SOCKET)$/, "network"],
  [/^(?:TYPE_MISMATCH|CANNOT_PARSE_|INCORRECT_DATA|ILLEGAL_|ARGUMENT_OUT_OF_BOUND|DECIMAL_OVERFLOW)/, "validation"],
  [
    /^(?:SYNTAX_ERROR|UNKNOWN_|NO_SUCH_|BAD_|NOT_IMPLEMENTED|NUMBER_OF_|\w+_ALREADY_EXISTS|SUPPORT_IS_DISABLED)/,
    "permanent",
  ],
];

/** ClickHouse. */
export const clickhouse: Family = ({ error, type }) => {
  if (type !== "ClickHouseError") return undefined;
  const word = (readText(error, "type") ?? "").slice(0, 64);
  return WORDS.find(([pattern]) => pattern.test(word))?.[1] ?? "transient";
};
