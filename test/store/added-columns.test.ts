// Columns that a version adds to the jobs: one row of the table of columns is the migration of every SQL store, and the
// programs of the version before still use the store.
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { JOB_COLUMNS, type JobColumn } from "../../src/store/columns.ts";
import { type Migration, withAdded } from "../../src/store/migrations.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { migrationsWith as onPostgres } from "../../src/store/postgres/schema.ts";
import { SQLITE } from "../../src/store/sqlite/dialect.ts";
import { createInlineSqliteStore } from "../../src/store/sqlite/inline.ts";
import { MIGRATIONS, migrationsWith as onSqlite } from "../../src/store/sqlite/schema.ts";
import type { Store } from "../../src/store/store.ts";
import { reader, testPath } from "../support/database-file.ts";
import { newJob } from "../support/new-job.ts";
import { testSchema } from "../support/postgres-queue.ts";
import { sql } from "../support/postgres-world.ts";

const KNOWN = MIGRATIONS.length;

const column = (name: string, added: NonNullable<JobColumn["added"]>): JobColumn => {
  // A later release has fields that the type of this one does not.
  return { field: name as JobColumn["field"], sql: name, in: "j", plain: null, added };
};
const LATER: readonly JobColumn[] = [
  ...JOB_COLUMNS,
  column("quiet_ms", { version: KNOWN + 1, kind: "number", shown: true }),
  column("color", { version: KNOWN + 2, kind: "text" }),
  column("loud_ms", { version: KNOWN + 3, kind: "number", shown: true }),
];

interface Place {
  open(): Store;
  /** Opens it as a program of the later release. */
  openLater(): Store;
  rows(text: string): Promise<unknown[][]>;
  /** The type of a column of the table of jobs. */
  readonly typeOf: (name: string) => string;
}

const closing = (store: Store): Store => {
  onTestFinished(() => store.close());
  return store;
};

const PLACES: readonly (readonly [string, () => Place])[] = [
  [
    "sqlite",
    () => {
      const path = testPath();
      const options = { path, clock: Date.now };
      return {
        open: () => closing(createInlineSqliteStore(options)),
        openLater: () => closing(createInlineSqliteStore({ ...options, migrations: onSqlite(LATER) })),
        rows: async (text) => reader(path)(text.replaceAll("@.", "")),
        typeOf: (name) => `select lower(type) from pragma_table_info('job') where name = '${name}'`,
      };
    },
  ],
  [
    "postgres",
    () => {
      const server = inject("postgres18");
      const { schema } = testSchema(server);
      const options = { url: server, schema, maxConnections: 2 };
      return {
        open: () => closing(createPostgresStore(options)),
        openLater: () => closing(createPostgresStore(options, { migrations: onPostgres(LATER) })),
        rows: async (text) => (await sql(server, text.replaceAll("@", schema))).map((row) => Object.values(row)),
        typeOf: (name) => `select data_type::text from information_schema.columns
          where table_schema = '@' and table_name = 'job' and column_name = '${name}'`,
      };
    },
  ],
];

describe.each(PLACES)("on %s", (store, place) => {
  it("a row is the migration, which older programs may still use", async () => {
    const { open, openLater, rows, typeOf } = place();
    const older = open();
    await older.migrate();
    await older.enqueue([newJob({ id: "old" })]);
    await openLater().migrate();
    const steps = [1, 2, 3].map((further) => [KNOWN + further, MIGRATIONS.at(-1)?.readableBy]);
    expect(await rows("select version, readable_by from @.migration order by 1")).toEqual([
      ...MIGRATIONS.map(({ readableBy }, at) => [at + 1, readableBy]),
      ...steps,
    ]);
    const types = ["quiet_ms", "color", "loud_ms"].map(async (name) => (await rows(typeOf(name))).flat());
    const number = store === "sqlite" ? "integer" : "bigint";
    expect(await Promise.all(types)).toEqual([[number], ["text"], [number]]);
    await older.enqueue([newJob({ id: "new" })]);
    expect(await rows("select id, quiet_ms, color, loud_ms from @.job order by id desc")).toEqual([
      ["old", null, null, null],
      ["new", null, null, null],
    ]);
  });

  it("the view shows those that it is told to, after its own columns", async () => {
    const { open, openLater, rows } = place();
    const older = open();
    await older.migrate();
    await older.enqueue([newJob({ id: "one" })]);
    const before = await rows("select * from @.jobs");
    await openLater().migrate();
    expect(await rows("select * from @.jobs")).toEqual([[...(before[0] ?? []), null, null]]);
    expect(await rows("select id, quiet_ms, loud_ms from @.jobs")).toEqual([["one", null, null]]);
    await expect(rows("select color from @.jobs")).rejects.toThrow(/color/);
  });
});

describe("a migration", () => {
  const own: readonly Migration<string>[] = [
    { sql: "one;\n", readableBy: 1 },
    { sql: "two;\n", readableBy: 1 },
    { sql: "three;\n", readableBy: 2 },
  ];
  const stepsWith = (...columns: readonly JobColumn[]) =>
    withAdded(own, columns, (text = "", addition) => {
      const { tables, shown } = addition(SQLITE);
      return `${text}${tables}${shown?.join(" ") ?? ""}`;
    });

  it("is what its store writes, and then its columns", () => {
    const added = column("quiet_ms", { version: 2, kind: "number" });
    const add = "alter table job add column quiet_ms integer;\n";
    expect(stepsWith(added)).toEqual([own[0], { sql: `two;\n${add}`, readableBy: 1 }, own[2]]);
  });

  it("that only adds columns is readable by whom the one before was", () => {
    const added = column("color", { version: 4, kind: "text", shown: true });
    const add = "alter table job add column color text;\ncolor";
    expect(stepsWith(added).slice(3)).toEqual([{ sql: add, readableBy: 2 }]);
  });

  it("without columns is what its store writes", () => {
    expect(stepsWith(...JOB_COLUMNS.filter(({ added }) => added === undefined))).toEqual(own);
  });
});

describe("the table of columns", () => {
  it("has no added column that older programs would have to fill", () => {
    const bad = (columns: readonly JobColumn[]) => columns.filter(({ added, plain }) => added && plain !== null);
    expect(bad(JOB_COLUMNS)).toEqual([]);
    expect(bad([{ ...(LATER.at(-1) as JobColumn), plain: 0 }])).toHaveLength(1);
  });
});
