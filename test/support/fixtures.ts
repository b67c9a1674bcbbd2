// The stored fixtures of each version of the schema, each in a place of its own: a copy of the SQLite file, and the Postgres dump restored
// into a database, as an operator restores a backup.
import { chmodSync, copyFileSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { inject, onTestFinished } from "vitest";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { createInlineSqliteStore } from "../../src/store/sqlite/inline.ts";
import type { Store } from "../../src/store/store.ts";
import { reader, testPath } from "./database-file.ts";
import { freshSchema, sql } from "./postgres-world.ts";

const file = (name: string): string => fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url));

/** The versions that have fixtures; a version is frozen as soon as it has. */
export type FrozenVersion = 1 | 2;

/** A store as programs of one version have left it. */
export interface Fixture {
  /** Its address, for other programs. */
  readonly url: string;
  /** Opens it as this program does, under a clock of the test's; closed with the test. */
  open(clock: () => number): Promise<Store>;
  /** Rows of a query on it; Postgres finds the names of its schema. */
  rows(text: string): Promise<unknown[][]>;
}

/** A copy of the SQLite file. */
export async function sqliteFixture(version: FrozenVersion): Promise<Fixture> {
  const path = testPath();
  copyFileSync(file(`version-${version}.sqlite`), path);
  chmodSync(path, 0o600);
  return {
    url: `sqlite:${path}`,
    async open(clock) {
      const store = createInlineSqliteStore({ path, clock });
      onTestFinished(() => store.close());
      return store;
    },
    rows: async (text) => reader(path)(text),
  };
}

/** A database of its own on the shared server; gone with the test. */
export async function testDatabase(): Promise<string> {
  const server = inject("postgres18");
  const name = freshSchema();
  await sql(server, `create database ${name}`);
  onTestFinished(async () => void (await sql(server, `drop database ${name} with (force)`)));
  return Object.assign(new URL(server), { pathname: `/${name}` }).href;
}

/** Asks a database, where the names of the schema are found without it. */
export function rowsOn(url: string): Fixture["rows"] {
  const found = `${url}?options=-c%20search_path=redrive`;
  return async (text) => (await sql(found, text)).map((row) => Object.values(row));
}

/** The dump, restored. */
export async function postgresFixture(version: FrozenVersion): Promise<Fixture> {
  const url = await testDatabase();
  await sql(url, readFileSync(file(`version-${version}.sql`), "utf8"));
  return {
    url,
    async open(clock) {
      const store = createPostgresStore({ url, maxConnections: 3 }, { clock });
      onTestFinished(() => store.close());
      return store;
    },
    rows: rowsOn(url),
  };
}

/** Both. */
export const FIXTURES: readonly (readonly [string, (version: FrozenVersion) => Promise<Fixture>])[] = [
  ["sqlite", sqliteFixture],
  ["postgres", postgresFixture],
];
