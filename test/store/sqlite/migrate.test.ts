// How a file comes to its schema: by the program, by hand from the printed plan, and not at all where a step fails or the
// file is older than the first release.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openDatabase, type SqliteDatabase } from "../../../src/store/sqlite/driver.ts";
import { createInlineSqliteStore } from "../../../src/store/sqlite/inline.ts";
import { checkOwner, findSchema, lookForSchema, migrate, migrationPlan } from "../../../src/store/sqlite/migrate.ts";
import { MIGRATIONS } from "../../../src/store/sqlite/schema.ts";
import { createBench } from "../../support/cli.ts";
import { connect, reader, testPath } from "../../support/database-file.ts";
import { newJob } from "../../support/new-job.ts";

const VERSION = MIGRATIONS.length;
const colored = [...MIGRATIONS, { sql: "alter table job add column color text;", readableBy: VERSION }];

/** Everything that a file is made of. */
function picture(path: string): unknown {
  const ask = reader(path);
  return {
    made: ask("select type, name, tbl_name, sql from sqlite_master order by 1, 2"),
    header: [ask("pragma user_version"), ask("pragma application_id")],
    migrations: ask("select version, readable_by from migration"),
    control: ask("select * from control"),
  };
}

function openAt(path: string, migrations = MIGRATIONS) {
  return createInlineSqliteStore({ path, clock: Date.now, migrations });
}

/** A file of this version with a job in it. */
async function filled(): Promise<string> {
  const path = testPath();
  const store = openAt(path);
  await store.enqueue([newJob()]);
  await store.close();
  return path;
}

/** Runs SQL by hand, on a connection that was made for it. */
function byHand<T>(path: string, work: (db: SqliteDatabase) => T): T {
  const db = openDatabase(path);
  try {
    return work(db);
  } finally {
    db.close();
  }
}

describe("the plan for a file", () => {
  it("that is not there makes by hand what the program makes, and looking at it makes nothing", async () => {
    const bench = createBench();
    const [hand, itself] = ["hand.db", "itself.db"].map((name) => join(bench.folder, name)) as [string, string];
    const { out, code } = await bench.run(["migrate", "--plan", "--store", `sqlite:${hand}`]);
    expect([code, existsSync(hand)]).toEqual([0, false]);
    expect(out).toMatch(
      new RegExp(`^-- .*hand\\.db: schema version 0 to ${VERSION}, then readable by version 1 and newer\n`),
    );
    byHand(hand, (db) => db.exec(out));
    await bench.run(["migrate", "--store", `sqlite:${itself}`]);
    expect(picture(hand)).toEqual(picture(itself));
    const again = await bench.json(["migrate", "--plan", "--store", `sqlite:${hand}`]);
    expect(again.document).toEqual({ from: VERSION, to: VERSION, readableBy: 1, statements: [] });
    expect((await bench.run(["enqueue", "thing", "{}", "--store", `sqlite:${hand}`])).code).toBe(0);
  });

  it("is one document with --json", async () => {
    const bench = createBench();
    const { document } = await bench.json(["migrate", "--plan"]);
    expect(document).toMatchObject({ from: 0, to: VERSION, readableBy: 1 });
    byHand(join(bench.folder, "redrive.db"), (db) => db.exec(document.statements.join("")));
    expect((await bench.run(["migrate"])).out).toContain(`has schema version ${VERSION}: nothing to do`);
  });

  it("of this version leads by hand to the next, as the program does it", async () => {
    const [hand, itself] = [await filled(), await filled()];
    const plan = byHand(hand, (db) => migrationPlan(findSchema(db), colored));
    expect(plan).toMatchObject({ from: VERSION, to: VERSION + 1, readableBy: VERSION });
    byHand(hand, (db) => db.exec(plan.statements.join("")));
    await openAt(itself, colored).close();
    expect(picture(hand)).toEqual(picture(itself));
    expect(reader(hand)("select count(*), max(color) from job")).toEqual([[1, null]]);
    expect(byHand(hand, (db) => migrationPlan(findSchema(db), colored)).statements).toEqual([]);
  });

  it("of a newer file that this program may use has nothing to do, and the doctor says so", async () => {
    const bench = createBench();
    await openAt(join(bench.folder, "redrive.db"), colored).close();
    const { document } = await bench.json(["migrate", "--plan"]);
    expect(document).toEqual({ from: VERSION + 1, to: VERSION + 1, readableBy: VERSION, statements: [] });
    expect((await bench.run(["migrate"])).out).toContain(`has schema version ${VERSION + 1}: nothing to do`);
    const { code, out } = await bench.run(["doctor"]);
    expect([code, out]).toEqual([
      0,
      expect.stringMatching(
        /warning +schema +version 4, newer than version 3 of this redrive, which may use it\n +→ update/,
      ),
    ]);
  });
});

describe("the next version of a file", () => {
  it("is not reached, and nothing is changed, where a step of it fails", async () => {
    const path = await filled();
    const before = picture(path);
    const failing = [
      ...colored,
      { sql: "alter table job add column color2 text; select * from nowhere;", readableBy: 2 },
    ];
    expect(() => openAt(path, failing)).toThrow("nowhere");
    expect(picture(path)).toEqual(before);
  });

  it("keeps what is in it", async () => {
    const path = await filled();
    const store = openAt(path, colored);
    expect(await store.count()).toMatchObject({ queued: 1 });
    await store.close();
    expect(picture(path)).toMatchObject({ header: [[[VERSION + 1]], [[0x52656472]]] });
  });
});

describe("a file from before the first release", () => {
  it.each([
    ["has no table of migrations", "drop table migration"],
    ["has none in it", "delete from migration"],
  ])("that %s is refused, and left as it was", async (_what, change) => {
    const path = await filled();
    byHand(path, (db) => db.exec(change));
    const before = reader(path)("select sql from sqlite_master order by name");
    expect(() => openAt(path)).toThrow("has a schema from before Redrive 0.1.0, from which no migration leads");
    expect(connect(path).prepare("select sql from sqlite_master order by name").all()).toEqual(before);
  });
});

describe("a file that names two versions of its schema", () => {
  it.each([
    ["0", "pragma user_version = 0", `0 in its header (user_version), ${VERSION} in its table migration`],
    ["a negative one", "pragma user_version = -1", `-1 in its header (user_version), ${VERSION} in its table`],
    ["a newer one", `insert into migration values (${VERSION + 1}, 1, 0)`, `${VERSION + 1} in its table migration`],
  ])("%s beside its own is refused with both, and left as it was", async (_what, change, said) => {
    const path = await filled();
    byHand(path, (db) => db.exec(change));
    const before = picture(path);
    const { code, out, err } = await createBench().run(["migrate", "--plan", "--store", `sqlite:${path}`]);
    expect({ code, out, err }).toEqual({ code: 3, out: "", err: expect.stringContaining(said) });
    expect(() => openAt(path)).toThrow(said);
    expect(picture(path)).toEqual(before);
  });
});

describe("a file that another process migrates", () => {
  /** Runs `check` on an empty file, which another process migrates right after the statement `first` was read. */
  function between(first: string, check: (db: SqliteDatabase) => void): unknown {
    const path = testPath();
    byHand(path, (db) => db.exec("pragma journal_mode = wal"));
    return byHand(path, (db) => {
      const prepare = (sql: string) => {
        const statement = db.prepare(sql);
        if (sql !== first) return statement;
        return {
          ...statement,
          all: () => {
            const rows = statement.all();
            byHand(path, (other) => migrate(other));
            return rows;
          },
        };
      };
      check({ ...db, prepare });
      return db.prepare("pragma user_version").all()[0]?.[0];
    });
  }

  it("between the two reads of its version names one version", () => {
    expect(between("pragma user_version", (db) => migrationPlan(lookForSchema(db)))).toBe(VERSION);
  });

  it("between the two reads of its owner is not another program's", () => {
    expect(between("pragma application_id", checkOwner)).toBe(VERSION);
  });
});
