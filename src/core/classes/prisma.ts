// Prisma: the codes of its error reference (`code`, or `errorCode` where the client could not start), and the names of
// the errors that have none. P2010, a raw query that failed, carries the database's own code in `meta`.

import { readPath, readText } from "../error-shape.ts";
import { type Family, table } from "./clue.ts";
import { classOfSqlState } from "./sqlstate.ts";

const CODES = table({
  authentication: "P1000 P1010 P5007 P6002",
  network: "P1001 P1011 P1017 P5010 P6008",
  timeout: "P1002 P1008 P2024 P5004 P5009 P6004",
  transient: "P2027 P2028 P2034 P2036 P2037 P5000 P5001 P5006 P5013 P5014 P5015 P6000 P6100",
  rate_limited: "P5008 P6003",
  validation: `P1013 P1016 P2000 P2005 P2006 P2007 P2008 P2009 P2011 P2012 P2013 P2016 P2019 P2020 P2023 P2029 P2033
    P5011 P6005`,
  permanent: `P1003 P1009 P1012 P1014 P1015 P2001 P2002 P2003 P2004 P2014 P2015 P2017 P2018 P2021 P2022 P2025 P2026
    P2030 P2031 P2035 P5002 P5003 P5005 P5012 P6001 P6006 P6009 P6010 P6101`,
});
const NAMES = table({ validation: "PrismaClientValidationError", transient: "PrismaClientRustPanicError" });

/** Prisma. */
export const prisma: Family = ({ error, name, code }) => {
  const given = code || readText(error, "errorCode") || "";
  if (given === "P2010") {
    const inner =
      readPath(error, "meta", "code") ?? readPath(error, "meta", "driverAdapterError", "cause", "originalCode");
    return typeof inner === "string" ? classOfSqlState(inner) : undefined;
  }
  return CODES.get(given) ?? NAMES.get(name);
};
