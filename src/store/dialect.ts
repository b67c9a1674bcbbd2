// What SQL stores write differently in statements that are the same otherwise: lists and tallies, which people wait for.
// Statements that every job passes through are written by each store for itself.
import type { Value } from "./columns.ts";

/** The words of one store. */
export interface Dialect {
  /** A table of the store. */
  readonly table: (name: string) => string;
  /** The parameter at this place, counted from 1. */
  readonly parameter: (at: number) => string;
  /** True where a text is part of the column: plain text, not a pattern, of which A to Z match a to z and nothing else does. */
  readonly says: (column: string, part: string) => string;
}

/** The words of SQLite. */
export const SQLITE: Dialect = {
  table: (name) => name,
  parameter: () => "?",
  // lower() of SQLite knows A to Z.
  says: (column, part) => `instr(lower(${column}), lower(${part})) > 0`,
};

/** The words of Postgres, for a schema of this name. */
export const postgresDialect = (s: string): Dialect => ({
  table: (name) => `${s}.${name}`,
  parameter: (at) => `$${at}`,
  // Under this collation lower() knows A to Z.
  says: (column, part) => `position(lower(${part}::text collate "C") in lower(${column} collate "C")) > 0`,
});

/** A statement with the values of its parameters. */
export interface Query {
  readonly text: string;
  readonly values: readonly Value[];
}

/** The conditions of a list; each parameter stands in the text once, in the order of the values. */
export class Conditions {
  readonly values: Value[] = [];
  readonly #dialect: Dialect;
  readonly #all: string[] = [];

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
  }

  /** A parameter of this value. */
  of(value: Value): string {
    return this.#dialect.parameter(this.values.push(value));
  }

  /** Adds a condition. */
  add(condition: string): void {
    this.#all.push(condition);
  }

  /** Adds one for each field of the query that is given: its column has that value. */
  addEqual<K extends string>(
    columns: Readonly<Record<K, string>>,
    query: { readonly [key in NoInfer<K>]?: string | number },
  ): void {
    for (const field of Object.keys(columns) as K[]) {
      const value = query[field];
      if (value !== undefined) this.add(`${columns[field]} = ${this.of(value)}`);
    }
  }

  /** All of them as one. */
  get text(): string {
    return this.#all.join(" and ");
  }
}

/** Cuts a page of rows that were read one further than wanted; the cursor is the column at `at`. */
export function pageOf<Row extends readonly unknown[]>(
  found: readonly Row[],
  limit: number,
  at: number,
): { readonly rows: Row[]; readonly next: string | null } {
  const rows = found.slice(0, limit);
  return { rows, next: found.length > limit ? String(rows.at(-1)?.[at]) : null };
}
