// LDAP (ldapts, ldapjs): the result codes of RFC 4511. The number counts only beside the message or the fields that
// these clients write, because numbers as small mean other things elsewhere.

import { read } from "../error-shape.ts";
import { type Family, readNumber, table } from "./clue.ts";

const RESULTS = table({
  transient: "1 51 52 80",
  timeout: "3 85",
  rate_limited: "11",
  network: "81 91",
  authentication: "7 8 13 14 48 49 50",
  validation: "17 18 19 21 34 64 65 89",
  permanent: "2 4 10 12 16 20 32 33 35 36 53 54 66 67 68 69 71 82 83 84 86 87 92 93 94 97",
});

/** LDAP. */
export const ldap: Family = ({ error, message }) => {
  const result = readNumber(error, "code");
  if (result === undefined) return undefined;
  const isLdap = /Code: 0x[0-9a-f]{1,4}$/.test(message) || read(error, "lde_message") !== undefined;
  return isLdap ? RESULTS.get(String(result)) : undefined;
};
