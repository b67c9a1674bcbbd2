// SQL Server and Azure SQL (tedious, mssql): `number` names the server's error, `code` what the driver was doing.

import { type Family, readNumber, table } from "./clue.ts";

const NUMBERS = table({
  // Deadlock, lock timeout, snapshot conflict, failover, moved or busy database (Azure SQL).
  transient: `1205 1222 3960 3961 3935 1204 17197 17142 18401 4060 4221 40197 40143 40166 40540 40613 42108 42109 615
    926 49920 983 976 978 979 981 982 3906 41301 41302 41305 41325 41839 6005`,
  rate_limited: "40501 10928 10929 10936 49918 49919 40544 40549 40550 40551 40552 40553",
  timeout: "-2 3617 8645 8651 18486",
  network: "20 64 121 233 10053 10054 10060 10061 11001",
  system: "701 802 1101 1105 9002 823 824",
  validation: "220 232 241 242 245 248 295 515 547 2628 8114 8115 8152 8134 13609",
  permanent: `102 156 207 208 213 2601 2627 2812 1785 3701 2714 4104 4901 8144 8145 15151 201 137 8178 50000 911 15404
    544`,
  authentication: "229 230 262 297 300 916 18456 18452 18470 18487 18488 40532 40615 40914 33155 47073",
});
const CODES = table({
  timeout: "ETIMEOUT",
  network: "ESOCKET ECONNCLOSED ENOTOPEN EINSTLOOKUP",
  authentication: "ELOGIN EFEDAUTH",
  validation: "EPARAM EARGS EINJECT",
  transient: "ECANCEL EABORT",
});

/** SQL Server. A request that the server refused for a reason not listed is permanent if its severity is the user's. */
export const mssql: Family = ({ error, code }) => {
  const number = readNumber(error, "number");
  const numbered = number === undefined || code === "" ? undefined : NUMBERS.get(String(number));
  if (numbered !== undefined) return numbered;
  if (code !== "EREQUEST") return CODES.get(code);
  const severity = readNumber(error, "class") ?? 0;
  return severity >= 11 && severity <= 16 ? "permanent" : undefined;
};
