// The SQL of Postgres where it differs from that of other stores.
import type { Dialect } from "../dialect.ts";

/** A time in readable form; null for a number that is not a time, so that one odd row does not break a view. */
export const time = (column: string): string =>
  `case when ${column} between -62135596800000 and 8640000000000000 then to_timestamp(${column} / 1000.0) end`;

/** The SQL of Postgres, for a schema of this name. */
export const postgresDialect = (s: string): Dialect => ({
  table: (name) => `${s}.${name}`,
  parameter: (at) => `$${at}`,
  // Under this collation lower() changes only A to Z.
  says: (column, part) => `position(lower(${part}::text collate "C") in lower(${column} collate "C")) > 0`,
  time,
  number: "bigint",
});
