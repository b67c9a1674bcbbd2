// SQLSTATE: the five characters that PostgreSQL (pg, postgres.js, PostgREST) gives as `code` and MySQL as `sqlState`.
// The first two name a class of errors; some codes of a class mean something else.

import { readText } from "../error-shape.ts";
import type { FailureClass } from "../job.ts";
import { type Family, table } from "./clue.ts";

const CODES = table({
  network: "57P05 HV00N",
  timeout: "57014 25P03 25P04",
  // A failover leaves a connection on a replica (25006); a pooler forgets prepared statements (26000).
  transient: "25006 25P02 26000 53300 55006 55P03 57P01 57P02 57P03 XX000",
  system: "53000 53100 53200 53400",
  validation: "23502 23514 44000",
  permanent: "57P04 XX001 XX002",
  authentication: "42501",
});
const CLASSES = table({
  network: "08",
  transient: "40 57 70 72",
  system: "53 58",
  validation: "22",
  permanent: "03 09 0A 0B 0F 0Z 20 21 23 24 25 26 27 2B 2D 2F 34 38 39 3B 3D 3F 42 44 45 54 55 F0 P0",
  authentication: "0L 0P 28",
});

/** The class of a SQLSTATE; undefined for what is none, and for general ones such as HY000. */
export function classOfSqlState(state: string): FailureClass | undefined {
  return /^[0-9A-Z]{5}$/.test(state) ? (CODES.get(state) ?? CLASSES.get(state.slice(0, 2))) : undefined;
}

/** PostgreSQL: `code` as text; a number of five digits belongs to another family. */
export const sqlstate: Family = ({ error, message }) => {
  const code = readText(error, "code") ?? "";
  // The plan of a prepared statement; a new connection has none.
  if (code === "0A000" && /cached plan must not change/.test(message)) return "transient";
  if (code === "57014" && /user request/.test(message)) return "transient";
  return classOfSqlState(code);
};

const POSTGREST = table({
  network: "PGRST000",
  transient: "PGRST001 PGRST002 PGRSTX00",
  timeout: "PGRST003",
  validation: "PGRST100 PGRST102 PGRST103 PGRST108 PGRST120 PGRST121 PGRST122",
  authentication: "PGRST300 PGRST301 PGRST302 PGRST303",
});

/** PostgREST (Supabase): codes of its own beside those of PostgreSQL. */
export const postgrest: Family = ({ code }) =>
  code.startsWith("PGRST") ? (POSTGREST.get(code) ?? "permanent") : undefined;
