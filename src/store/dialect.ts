// What a store must say of its SQL for statements that are otherwise the same: the lists and tallies that operators
// read, the views, added columns. Each store writes the statements that every job needs (enqueue, claim, settle) on its own.
import type { Value } from "./columns.ts";

/** The SQL of one store. */
export interface Dialect {
  /** A table of the store. */
  readonly table: (name: string) => string;
  /** The parameter at this position, counted from 1. */
  readonly parameter: (at: number) => string;
  /** True if the column contains the text: plain text, not a pattern; A to Z match a to z and nothing else does. */
  readonly says: (column: string, part: string) => string;
  /** A time in readable form. */
  readonly time: (column: string) => string;
  /** The type of a column for whole numbers. */
  readonly number: string;
}

/** A statement with the values of its parameters. */
export interface Query {
  readonly text: string;
  readonly values: readonly Value[];
}

/** The conditions of a list; each parameter is used once in the text, in the order of the values. */
export class Conditions {
  readonly values: Value[] = [];
  readonly #dialect: Dialect;
  readonly #all: string[] = [];

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
  }

  /** A new parameter with this value. */
  of(value: Value): string {
    return this.#dialect.parameter(this.values.push(value));
  }

  /** Adds a condition. */
  add(condition: string): void {
    this.#all.push(condition);
  }

  /** Adds a condition for each given field of the query: its column has that value. */
  addEqual<K extends string>(
    columns: Readonly<Record<K, string>>,
    query: { readonly [key in NoInfer<K>]?: string | number },
  ): void {
    for (const field of Object.keys(columns) as K[]) {
      const value = query[field];
      if (value !== undefined) this.add(`${columns[field]} = ${this.of(value)}`);
    }
  }

  /** All conditions as one. */
  get text(): string {
    return this.#all.join(" and ");
  }
}

/**
 * Cuts a page of rows, of which one more than wanted was read; the cursor is the column at `at`. A page that is not full
 * goes on behind what it was allowed to look at.
 */
export function pageOf<Row extends readonly unknown[]>(
  found: readonly Row[],
  limit: number,
  at: number,
  bound: { readonly seq: number; readonly at: number } | null = null,
): { readonly rows: Row[]; readonly next: string | null; readonly seenTo?: number } {
  const rows = found.slice(0, limit);
  if (found.length > limit) return { rows, next: String(rows.at(-1)?.[at]) };
  return bound ? { rows, next: String(bound.seq), seenTo: bound.at } : { rows, next: null };
}
