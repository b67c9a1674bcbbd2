// Whose files are run and written: nothing of another user in a folder that everybody may write to, nothing that everybody
// may write, and nothing that never ends.
import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createMemoryStore } from "../../src/store/memory/index.ts";
import { archiveTo } from "../../src/operate/archive.ts";
import { type Bench, createBench, JOBS_TS } from "../support/cli.ts";

const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;

/** A bench whose folder is like /tmp. */
function sharedBench(): Bench {
  const bench = createBench();
  chmodSync(bench.folder, 0o1777);
  return bench;
}

const CONFIG = `import { writeFileSync } from "node:fs"; writeFileSync(new URL("ran", import.meta.url), ""); export default {};`;
/** A folder of our own beside it, and every way in which a file can be named. */
const USES: readonly [what: string, file: string, text: string, args: readonly string[], code: number][] = [
  ["config", "redrive.config.mjs", CONFIG, ["stats"], 78],
  ["named config", "my.yaml", "defaults: {}", ["stats", "--config", "my.yaml"], 78],
  ["jobs", "jobs.ts", JOBS_TS, ["enqueue", "hello", "{}", "--jobs", "jobs.ts"], 2],
];

describe.skipIf(process.platform === "win32")("in a folder that everybody may write to", () => {
  it.skipIf(!isRoot).each(USES)("another user's %s file is refused", async (_what, name, text, args, code) => {
    const bench = sharedBench();
    const file = bench.write(name, text);
    chownSync(file, NOBODY, NOBODY);
    const outcome = await bench.run(args);
    expect(outcome).toMatchObject({ code, err: expect.stringContaining(`belongs to another user (${NOBODY})`) });
    expect(outcome.err).toContain(file);
    expect(() => readFileSync(join(bench.folder, "ran"))).toThrow();
  });

  it.each(USES)("a %s file behind a link is refused", async (_what, name, text, args, code) => {
    const bench = sharedBench();
    mkdirSync(join(bench.folder, "own"), 0o700);
    bench.write("own/file", text);
    symlinkSync("own/file", join(bench.folder, name));
    expect(await bench.run(args)).toMatchObject({ code, err: expect.stringContaining("is a link in") });
  });

  it("an archive that is a link is refused, at the start and when a letter is due for it", async () => {
    const bench = sharedBench();
    bench.write("jobs.ts", JOBS_TS);
    const drain = ["drain", "--jobs", "jobs.ts", "--archive", "dead.ndjson"];
    expect(await bench.run(drain)).toMatchObject({ code: 0 });
    symlinkSync(bench.write("victim", ""), join(bench.folder, "dead.ndjson"));
    expect(await bench.run(drain)).toMatchObject({ code: 2, err: expect.stringContaining("is a link in") });
    const late = archiveTo(join(bench.folder, "dead.ndjson"), createMemoryStore({ clock: () => 0 }));
    await expect(late([])).rejects.toThrow("is a link in");
  });

  it.skipIf(!isRoot)("an archive of another user is refused", async () => {
    const bench = sharedBench();
    bench.write("jobs.ts", JOBS_TS);
    chownSync(bench.write("dead.ndjson", ""), NOBODY, NOBODY);
    expect(await bench.run(["drain", "--jobs", "jobs.ts", "--archive", "dead.ndjson"])).toMatchObject({
      code: 2,
      err: expect.stringContaining(`belongs to another user (${NOBODY})`),
    });
  });

  it("files of our own are used", async () => {
    const bench = sharedBench();
    bench.write("jobs.ts", JOBS_TS);
    bench.write("redrive.config.mjs", CONFIG);
    expect(await bench.run(["enqueue", "hello", "{}", "--jobs", "jobs.ts"])).toMatchObject({ code: 0 });
    // Where it is not refused, the config leaves this trace.
    expect(readFileSync(join(bench.folder, "ran"), "utf8")).toBe("");
  });

  it.each(["", "-wal", "-shm"])("a database file%s that is a link is refused", async (ending) => {
    const bench = sharedBench();
    await bench.run(["migrate", "--store", "sqlite:other.db"]);
    const victim = bench.write("victim", "");
    if (ending !== "") await bench.run(["migrate"]);
    symlinkSync(ending === "" ? "other.db" : victim, join(bench.folder, `redrive.db${ending}`));
    expect(await bench.run(["enqueue", "hello", "{}"])).toMatchObject({
      code: 3,
      err: expect.stringContaining(`redrive.db${ending} is a link in`),
    });
    expect(readFileSync(victim, "utf8")).toBe("");
  });

  it.skipIf(!isRoot)("another user's database file is refused", async () => {
    const bench = sharedBench();
    await bench.run(["migrate"]);
    chownSync(join(bench.folder, "redrive.db"), NOBODY, NOBODY);
    expect(await bench.run(["stats"])).toMatchObject({ code: 3, err: expect.stringContaining("another user") });
  });
});

describe.skipIf(process.platform === "win32")("anywhere", () => {
  it.each(USES)("a %s file that everybody may write is refused", async (_what, name, text, args, code) => {
    const bench = createBench();
    chmodSync(bench.write(name, text), 0o666);
    expect(await bench.run(args)).toMatchObject({ code, err: expect.stringContaining("can be written by every user") });
  });

  it("a database file that everybody may write is refused", async () => {
    const bench = createBench();
    await bench.run(["migrate"]);
    chmodSync(join(bench.folder, "redrive.db"), 0o666);
    expect(await bench.run(["stats"])).toMatchObject({
      code: 3,
      err: expect.stringContaining("written by every user"),
    });
  });

  it("what the group may write, or another user owns, is used, and doctor says so", async () => {
    const bench = createBench();
    bench.write("jobs.ts", JOBS_TS);
    const config = bench.write("redrive.config.yaml", "jobs: jobs.ts");
    await bench.run(["migrate"]);
    chmodSync(join(bench.folder, "jobs.ts"), 0o664);
    if (isRoot) chownSync(config, NOBODY, NOBODY);
    const { code, out } = await bench.run(["doctor"]);
    expect(code).toBe(0);
    expect(out).toMatch(/warning +owners +\S+jobs\.ts can be written by its group\n +→ /);
    if (isRoot) expect(out).toMatch(/warning +owners +\S+redrive\.config\.yaml belongs to another user \(65534\)\n/);
  });
});

describe.skipIf(process.platform === "win32")("what is no regular file", () => {
  /** A call that waits for a pipe to be written would never end. */
  it.each([
    ["a pipe as config", ["stats"], 78, "redrive.config.yaml", /is a named pipe/],
    ["a pipe as a module", ["stats"], 78, "redrive.config.mjs", /is a named pipe/],
    ["a pipe as jobs", ["enqueue", "hello", "{}", "--jobs", "jobs.ts"], 2, "jobs.ts", /is a named pipe/],
    ["a pipe as the store", ["enqueue", "hello", "{}"], 3, "redrive.db", /is a named pipe/],
    ["a pipe as the store that doctor looks at", ["doctor"], 3, "redrive.db", /is a named pipe/],
    ["a pipe as the store to migrate", ["migrate", "--plan"], 3, "redrive.db", /is a named pipe/],
  ] as const)("%s is refused at once", async (_what, args, code, name, said) => {
    const bench = createBench();
    spawnSync("mkfifo", ["-m", "600", join(bench.folder, name)]);
    const outcome = await bench.run(args);
    expect({ code: outcome.code, said: outcome.out + outcome.err }).toEqual({
      code,
      said: expect.stringMatching(said),
    });
  });

  it.each([
    [["stats", "--config", "/dev/zero"], 78, /\/dev\/zero is a device/],
    [["enqueue", "hello", "{}", "--jobs", "/dev/zero"], 2, /\/dev\/zero is a device/],
    [["stats", "--store", "sqlite:/dev/zero"], 3, /\/dev\/zero is a device/],
  ] as const)("%j is refused at once", async (args, code, said) => {
    expect(await createBench().run(args)).toMatchObject({ code, err: expect.stringMatching(said) });
  });

  it.each([
    [["stats"], 78, "redrive.config.yaml"],
    [["stats", "--config", "loop.yaml"], 78, "loop.yaml"],
    [["enqueue", "hello", "{}", "--jobs", "jobs.ts"], 2, "jobs.ts"],
    [["enqueue", "hello", "{}"], 3, "redrive.db"],
  ] as const)("a link that leads back to itself is refused: %j", async (args, code, name) => {
    const bench = createBench();
    symlinkSync(name, join(bench.folder, name));
    expect(await bench.run(args)).toMatchObject({ code, err: expect.stringContaining("leads back to itself") });
  });

  it("12 MB of YAML are refused without being read", async () => {
    const bench = createBench();
    writeFileSync(join(bench.folder, "redrive.config.yaml"), "a: [[[\n".repeat(1_800_000));
    expect(await bench.run(["stats"])).toMatchObject({ code: 78, err: expect.stringMatching(/at most 1 MiB/) });
  });
});
