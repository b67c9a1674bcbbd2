// The SQL of SQLite where it differs from that of other stores.
import type { Dialect } from "../dialect.ts";

/** A time as people write it in SQLite; comparable with `datetime('now', '-1 hour')`. */
export const time = (column: string): string => `strftime('%Y-%m-%d %H:%M:%f', ${column} / 1000.0, 'unixepoch')`;

/** The SQL of SQLite. */
export const SQLITE: Dialect = {
  table: (name) => name,
  parameter: () => "?",
  // In SQLite, lower() changes only A to Z.
  says: (column, part) => `instr(lower(${column}), lower(${part})) > 0`,
  time,
  number: "integer",
};
