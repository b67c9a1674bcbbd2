// The log on disk before the answer: what waits for it and what does not, and which file it is.
import { pbkdf2 } from "node:crypto";
import { readdirSync, readlinkSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { openDatabase } from "../../../src/store/sqlite/driver.ts";
import { openWalSync } from "../../../src/store/sqlite/wal-sync.ts";
import { connect, reader, testFolder, testPath } from "../../support/database-file.ts";
import { newJob } from "../../support/new-job.ts";
import { threadedStore } from "../../support/store-processes.ts";

const crowd = () => Array.from({ length: 100 }, () => newJob());
const cell = (kind: string) => ({ kind, name: "a", holder: "", version: null, value: "{}" });
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** What the descriptors of this process point to. */
function openFiles(): string[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)];
    } catch {
      return [];
    }
  });
}

describe("the threads that sync beside, all busy with something else", () => {
  it("hold up neither reads nor, for long, what has to be on disk", async () => {
    const store = await threadedStore(testPath());
    await store.migrate();
    const order: string[] = [];
    const note = (name: string) => () => void order.push(name);
    // Four at a time: a sync that waits for its turn comes after the eighth.
    let done = 0;
    const busy = Array.from({ length: 12 }, async () => {
      await promisify(pbkdf2)("a", "b", 200_000, 32, "sha512");
      if (++done === 6) order.push("half the work done");
    });
    await Promise.all([
      ...busy,
      store.enqueue(crowd()).then(note("enqueued")),
      store.get(["none"]).then(note("read")),
      store.register({ id: "w", leaseMs: 1_000, pid: 1, host: "h", release: null }).then(note("registered")),
      store.setCells([cell("load")]).then(note("load said")),
      store.setCells([cell("schedule")]).then(note("schedule set")),
      store.setCells([cell("load"), cell("batch")]).then(note("batch begun")),
    ]);
    const promised = ["enqueued", "schedule set", "batch begun"];
    expect(order).toEqual(["read", "registered", "load said", ...promised, "half the work done"]);
  });
});

describe("the log", () => {
  it("of a linked database is found beside the real file", () => {
    const path = testPath();
    connect(path).exec("pragma journal_mode = wal; create table t (a)");
    const link = join(testFolder(), "link.db");
    symlinkSync(path, link);
    const log = openWalSync(link);
    expect(openFiles()).toContain(`${path}-wal`);
    expect(log.isCurrent()).toBe(true);
    log.close();
  });

  it("that was deleted or replaced is not current", () => {
    const path = testPath();
    const db = openDatabase(path);
    db.exec("pragma journal_mode = wal; create table t (a)");
    const log = openWalSync(path);
    log.now();
    renameSync(`${path}-wal`, join(dirname(path), "away"));
    expect(log.isCurrent()).toBe(false);
    writeFileSync(`${path}-wal`, "");
    expect(log.isCurrent()).toBe(false);
    log.close();
    db.close();
  });

  it("is let go of when a sync under way has ended", async () => {
    const path = testPath();
    connect(path).exec("pragma journal_mode = wal; create table t (a)");
    const ours = () => openFiles().filter((file) => file === `${path}-wal`).length;
    const before = ours();
    const log = openWalSync(path);
    const done = new Promise<Error | null>((resolve) => log.begin(resolve));
    log.close();
    expect(ours()).toBe(before + 1);
    expect(await done).toBeNull();
    expect(ours()).toBe(before);
  });

  it("that cannot be opened is told with its path", () => {
    const path = testPath();
    expect(() => openWalSync(path)).toThrow(expect.objectContaining({ code: "store_unavailable" }));
    expect(() => openWalSync(path)).toThrow(path);
  });

  it("is opened anew by the store when it was deleted, and the jobs before and after are there", async () => {
    const path = testPath();
    const store = await threadedStore(path);
    await store.enqueue([newJob({ id: "before" })]);
    expect(openFiles().filter((file) => file.startsWith(`${path}-wal`)).length).toBeGreaterThan(1);
    rmSync(`${path}-wal`);
    await pause(1_200);
    await store.enqueue([newJob({ id: "after" })]);
    const logs = openFiles().filter((file) => file.startsWith(`${path}-wal`));
    expect(new Set(logs)).toEqual(new Set([`${path}-wal`]));
    expect(logs.length).toBeGreaterThan(1);
    expect(reader(path)("select id from job order by seq")).toEqual([["before"], ["after"]]);
  });

  it("is not needed by a database in memory", async () => {
    const store = await threadedStore(":memory:");
    await store.enqueue(crowd());
    expect((await store.count()).queued).toBe(100);
  });
});
