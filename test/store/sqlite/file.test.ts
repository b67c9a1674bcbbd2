// Where a database file may live, with which rights, and what is said about files that cannot be used.
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { isSoundVersion } from "../../../src/store/sqlite/engine.ts";
import { prepareFile } from "../../../src/store/sqlite/file.ts";
import { createInlineSqliteStore } from "../../../src/store/sqlite/inline.ts";
import { connect, reader, testFolder, testPath } from "../../support/database-file.ts";
import { newJob } from "../../support/new-job.ts";
import { startProcess, threadedStore } from "../../support/store-processes.ts";

const rights = (path: string) => (statSync(path).mode & 0o7777).toString(8);

/** A process that takes away nothing from the rights of what it makes. */
function withoutMask() {
  const before = process.umask(0);
  onTestFinished(() => void process.umask(before));
}

/** The code and message a store answers its first request with. */
async function refusal(path: string): Promise<{ code: string; message: string }> {
  const store = await threadedStore(path);
  return store.enqueue([newJob()]).then(
    () => ({ code: "accepted", message: "" }),
    (error) => error as { code: string; message: string },
  );
}

describe("rights", () => {
  it("a new file, its log and its shared memory belong to their owner alone", async () => {
    withoutMask();
    const path = testPath();
    const store = await threadedStore(path);
    await store.enqueue([newJob()]);
    expect([path, `${path}-wal`, `${path}-shm`].map(rights)).toEqual(["600", "600", "600"]);
  });

  it("folders that are made belong to their owner alone", async () => {
    withoutMask();
    const top = join(testFolder(), "a");
    const store = await threadedStore(join(top, "b", "jobs.db"));
    await store.enqueue([newJob()]);
    expect([top, join(top, "b"), join(top, "b", "jobs.db")].map(rights)).toEqual(["700", "700", "600"]);
  });

  it("a folder that exists keeps its rights", async () => {
    const folder = testFolder();
    chmodSync(folder, 0o755);
    expect(await refusal(join(folder, "jobs.db"))).toMatchObject({ code: "accepted" });
    expect(rights(folder)).toBe("755");
  });

  it("a database in memory touches no file", () => {
    prepareFile(":memory:");
    expect(existsSync(":memory:")).toBe(false);
  });
});

describe("unsafe folders", () => {
  it("a symbolic link is refused, and nothing is made behind it", async () => {
    const folder = testFolder();
    mkdirSync(join(folder, "real"), { mode: 0o700 });
    symlinkSync(join(folder, "real"), join(folder, "link"));
    const said = await refusal(join(folder, "link", "jobs.db"));
    expect(said.code).toBe("store_unusable");
    expect(said.message).toBe(`The folder ${join(folder, "link")} is a symbolic link; name the folder it points to.`);
    expect(existsSync(join(folder, "real", "jobs.db"))).toBe(false);
  });

  it("one that everybody may write is refused, and nothing is made in it", async () => {
    const folder = testFolder();
    chmodSync(folder, 0o777);
    const said = await refusal(join(folder, "jobs.db"));
    expect(said.code).toBe("store_unusable");
    expect(said.message).toContain(`The folder ${folder} can be written by every user; remove that right (chmod o-w)`);
    expect(existsSync(join(folder, "jobs.db"))).toBe(false);
  });

  it("one that everybody may write is accepted where files belong to their makers", async () => {
    const folder = testFolder();
    chmodSync(folder, 0o1777);
    expect(await refusal(join(folder, "jobs.db"))).toMatchObject({ code: "accepted" });
  });

  it("works again without a restart once the folder is safe", async () => {
    const folder = testFolder();
    chmodSync(folder, 0o777);
    const store = await threadedStore(join(folder, "jobs.db"));
    await expect(store.count()).rejects.toMatchObject({ code: "store_unusable" });
    chmodSync(folder, 0o700);
    expect((await store.count()).queued).toBe(0);
  });
});

describe("files that cannot be used", () => {
  it("a folder in the place of the file is named", async () => {
    const path = testPath();
    mkdirSync(path);
    const said = await refusal(path);
    expect(said.code).toMatch(/^store_un(available|usable)$/);
    expect(said.message).toContain(path);
  });

  it("a folder below a file is named", async () => {
    const path = testPath();
    writeFileSync(path, "");
    const said = await refusal(join(path, "jobs.db"));
    expect(said.code).toMatch(/^store_un(available|usable)$/);
    expect(said.message).toContain(path);
  });

  it("a file that is not SQLite is refused and stays as it is", async () => {
    const path = testPath();
    const text = "This is a diary.\n".repeat(500);
    writeFileSync(path, text, { mode: 0o600 });
    const said = await refusal(path);
    expect(said.code).toBe("store_unusable");
    expect(said.message).toContain("damaged or not SQLite");
    expect(readFileSync(path, "utf8")).toBe(text);
  });

  it("an empty file becomes a database", async () => {
    const path = testPath();
    writeFileSync(path, "", { mode: 0o600 });
    expect(await refusal(path)).toMatchObject({ code: "accepted" });
  });

  it("a file that may only be read is answered with store_unavailable", async () => {
    const folder = testFolder();
    const path = join(folder, "jobs.db");
    const store = createInlineSqliteStore({ path, clock: Date.now });
    await store.enqueue([newJob()]);
    await store.close();
    chmodSync(path, 0o444);
    chmodSync(folder, 0o555);
    const { output } = await startProcess("readonly", path).ended;
    expect(JSON.parse(output)).toMatchObject({
      code: "store_unavailable",
      message: expect.stringContaining("belongs to another user (0), and you may not write it"),
    });
    chmodSync(folder, 0o700);
  });

  it("a database of another program is refused", async () => {
    const path = testPath();
    const db = connect(path);
    db.exec("create table song (title text); pragma user_version = 1");
    const said = await refusal(path);
    expect(said.code).toBe("store_unusable");
    expect(db.prepare("select name from sqlite_schema").all()).toEqual([["song"]]);
  });
});

describe("versions", () => {
  it.each([
    ["3.53.2", true],
    ["3.52.0", true],
    ["3.51.3", true],
    ["3.51.10", true],
    ["3.51.2", false],
    ["3.51.0", false],
    ["3.50.7", true],
    ["3.50.8", true],
    ["3.50.6", false],
    ["3.49.9", false],
    ["3.45.1", false],
    ["3.44.6", true],
    ["3.44.5", false],
    ["3.43.9", false],
    ["3.7.0", false],
    ["4.0.0", true],
    ["2.8.17", false],
    ["", false],
    ["unknown", false],
  ])("SQLite %s is sound: %s", (text, sound) => {
    expect(isSoundVersion(text)).toBe(sound);
  });

  it("the SQLite we run on is sound", () => {
    const db = connect(":memory:");
    expect(isSoundVersion(String(db.prepare("select sqlite_version()").all()[0]?.[0]))).toBe(true);
  });

  it("a newer schema is refused with both versions and what to do, and nothing in it is changed", async () => {
    const path = testPath();
    const ours = 0x52656472;
    connect(path).exec(`create table job (later text); pragma application_id = ${ours}; pragma user_version = 999`);
    const said = await refusal(path);
    expect(said.code).toBe("store_unusable");
    expect(said.message).toMatch(/schema version 999, .*; this Redrive knows versions up to \d+\. Update redrive/);
    const ask = reader(path);
    expect(ask("pragma user_version")).toEqual([[999]]);
    expect(ask("select name from sqlite_schema")).toEqual([["job"]]);
  });

  it("a file opened twice is migrated once", async () => {
    const path = testPath();
    const first = await threadedStore(path);
    const second = await threadedStore(path);
    await Promise.all([first.migrate(), second.migrate(), first.migrate()]);
    const ask = reader(path);
    const schema = () => [
      ask("pragma schema_version"),
      ask("select count(*) from control"),
      ask("pragma user_version"),
    ];
    const before = schema();
    await first.enqueue([newJob()]);
    await first.close();
    const third = await threadedStore(path);
    await third.migrate();
    expect((await third.count()).queued).toBe(1);
    expect(schema()).toEqual(before);
  });
});
