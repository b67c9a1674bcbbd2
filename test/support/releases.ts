// Programs of two releases on one store: this one, which knows the newest version, and a later one, whose migration the
// test brings.
import { inject, onTestFinished } from "vitest";
import { MIGRATIONS as ON_POSTGRES } from "../../src/store/postgres/schema.ts";
import { createInlineSqliteStore } from "../../src/store/sqlite/inline.ts";
import { MIGRATIONS as ON_SQLITE } from "../../src/store/sqlite/schema.ts";
import type { Store } from "../../src/store/store.ts";
import { importBuilt } from "./built.ts";
import { reader, testPath } from "./database-file.ts";
import { testSchema } from "./postgres-queue.ts";
import { sql } from "./postgres-world.ts";

// The heartbeat of a worker runs in a thread, which loads JavaScript.
const { createPostgresStore } =
  await importBuilt<typeof import("../../src/store/postgres/index.ts")>("store/postgres/index.js");

/** The version that this release knows. */
export const KNOWN = ON_SQLITE.length;
/** The one after it. */
export const NEXT = KNOWN + 1;

/** The versions of a store that this release has made, each with the oldest that it is readable by. */
export const VERSIONS = ON_SQLITE.map(({ readableBy }, at) => [at + 1, readableBy]);

/** A place for a store that programs of two releases open. */
export interface ReleasePlace {
  readonly name: "sqlite" | "postgres";
  /** The path of the file, or the URL with its schema. */
  readonly address: string;
  /** Opens it as a program of this release does; closed with the test. */
  open(): Store;
  /** Opens it as a program of the next release does, whose migration adds a column and is readable by this version. */
  openNext(readableBy: number): Store;
  /** The versions it went through, each with the oldest that it is readable by. */
  versions(): Promise<unknown[][]>;
  /** What the planted migration has added. */
  added(): Promise<string[]>;
}

const closing = (store: Store): Store => {
  onTestFinished(() => store.close());
  return store;
};

/** A SQLite file of its own. */
function sqlitePlace(): ReleasePlace {
  const path = testPath();
  const clock = Date.now;
  return {
    name: "sqlite",
    address: path,
    open: () => closing(createInlineSqliteStore({ path, clock })),
    openNext(readableBy) {
      const next = { sql: "alter table job add column color text;", readableBy };
      return closing(createInlineSqliteStore({ path, clock, migrations: [...ON_SQLITE, next] }));
    },
    versions: async () => reader(path)("select version, readable_by from migration order by 1"),
    added: async () =>
      reader(path)("select name from pragma_table_info('job') where name = 'color'").map(([name]) => String(name)),
  };
}

/** A schema of its own on the shared server. */
function postgresPlace(): ReleasePlace {
  const server = inject("postgres18");
  const { schema, url } = testSchema(server);
  const options = { url: server, schema, maxConnections: 3 };
  const rows = async (text: string): Promise<unknown[][]> =>
    (await sql(server, text.replaceAll("@", schema))).map((row) => Object.values(row));
  return {
    name: "postgres",
    address: url,
    open: () => closing(createPostgresStore(options)),
    openNext(readableBy) {
      const next = { sql: (s: string) => `alter table ${s}.job add column color text;`, readableBy };
      return closing(createPostgresStore(options, { migrations: [...ON_POSTGRES, next] }));
    },
    versions: () => rows("select version, readable_by from @.migration order by 1"),
    added: async () =>
      (
        await rows(`select column_name::text from information_schema.columns
          where table_schema = '@' and table_name = 'job' and column_name = 'color'`)
      ).map(([name]) => String(name)),
  };
}

/** Both kinds. */
export const RELEASE_PLACES: readonly (readonly [string, () => ReleasePlace])[] = [
  ["sqlite", sqlitePlace],
  ["postgres", postgresPlace],
];
