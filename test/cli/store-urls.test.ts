// Places that cannot be used: folders nobody may write to, a full disk behind stdout, a store that belongs to somebody
// else, a driver without its native part. Each is refused with its path and with what to do; none is called a bug.
import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, openSync, readdirSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { builtModule } from "../support/built.ts";
import { type Bench, createBench, JOBS_TS } from "../support/cli.ts";

const SCRIPT = fileURLToPath(new URL("../support/cli-process.mjs", import.meta.url));
const BUILT = builtModule("cli/process.js").slice(0, -"cli/process.js".length);
const NOBODY = 65_534;

interface Call {
  readonly stdout?: number;
  /** The library, where it is not the one all tests use. */
  readonly built?: string;
  /** As a user without special rights; whoever runs the tests may be one already. */
  readonly asNobody?: boolean;
}

function call({ folder }: Bench, args: readonly string[], { stdout, asNobody = false, ...given }: Call = {}) {
  const built = given.built ?? (asNobody ? copiedLibrary({ binding: true }) : BUILT);
  const user = asNobody && process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  const { status, ...said } = spawnSync(process.execPath, [SCRIPT, ...args], {
    cwd: folder,
    env: { PATH: process.env.PATH, REDRIVE_BUILT: built },
    stdio: ["ignore", stdout ?? "pipe", "pipe"],
    encoding: "utf8",
    timeout: 30_000,
    ...user,
  });
  return { code: status, out: said.stdout, err: said.stderr };
}

describe("a folder that cannot be written", () => {
  it.each([["init"], ["demo"]])("is refused by %s with its path", (command) => {
    const bench = createBench();
    if (process.getuid?.() === 0) chownSync(bench.folder, NOBODY, NOBODY);
    chmodSync(bench.folder, 0o500);
    const { code, err } = call(bench, [command], { asNobody: true });
    expect({ code, err }).toEqual({
      code: 2,
      err: expect.stringMatching(/^error: .*can be written; .*EACCES.*; .+\n$/),
    });
    expect(err).toContain(bench.folder);
    expect(readdirSync(bench.folder)).toEqual([]);
  });

  it("is refused by demo --file, with a document for those who want JSON", async () => {
    const bench = createBench();
    const file = join(bench.write("notes", "mine"), "demo.db");
    const { code, document } = await bench.json(["demo", "--file", file]);
    expect({ code, document }).toMatchObject({ code: 2, document: { error: { code: "invalid_argument" } } });
    expect(document.error.message).toContain(file);
  });

  it("is not made for a store whose folder is not there, but by migrate", async () => {
    const bench = createBench();
    const store = ["--store", "sqlite:no/such/x.db"];
    const refused = await bench.run(["enqueue", "thing", "{}", ...store]);
    const folder = join(bench.folder, "no", "such");
    expect(refused).toMatchObject({
      code: 3,
      err: expect.stringContaining(`There is no folder ${folder} for the store`),
    });
    expect(existsSync(join(bench.folder, "no"))).toBe(false);
    expect((await bench.run(["migrate", ...store])).code).toBe(0);
    expect((await bench.run(["enqueue", "thing", "{}", ...store])).code).toBe(0);
  });

  it("is refused as the archive's before anything is opened", async () => {
    const bench = createBench();
    bench.write("jobs.ts", JOBS_TS);
    bench.write("notes", "mine");
    for (const archive of ["none/dead.ndjson", "notes/dead.ndjson", "."]) {
      for (const command of ["worker", "drain"]) {
        const { code, err } = await bench.run([command, "--jobs", "jobs.ts", "--archive", archive]);
        expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(join(bench.folder, archive)) });
      }
    }
    bench.write("redrive.config.yaml", "worker: { archive: none/dead.ndjson }");
    const { code, err } = await bench.run(["drain", "--jobs", "jobs.ts"]);
    expect({ code, err }).toEqual({ code: 78, err: expect.stringContaining("worker.archive: expected a file") });
    expect(existsSync(join(bench.folder, "redrive.db"))).toBe(false);
    expect(await bench.run(["drain", "--jobs", "jobs.ts", "--archive", "dead.ndjson"])).toMatchObject({ code: 0 });
  });
});

describe("stdout", () => {
  it.skipIf(!existsSync("/dev/full"))("that takes nothing ends with 3 and one line", async () => {
    const bench = createBench();
    bench.write("jobs.ts", JOBS_TS);
    await bench.run(["enqueue", "broken", "{}"]);
    await bench.run(["drain", "--jobs", "jobs.ts"]);
    for (const args of [["dlq", "export"], ["dlq", "export", "--json"], ["stats"]]) {
      const { code, err } = call(bench, args, { stdout: openSync("/dev/full", "w") });
      expect({ code, err }).toEqual({ code: 3, err: expect.stringMatching(/^error: stdout: .*ENOSPC.*\n$/) });
    }
  });
});

describe("a store that may only be read", () => {
  it("is named, with the way to open it up, by commands and by the doctor", async () => {
    const bench = createBench();
    await bench.run(["enqueue", "thing", "{}"]);
    const path = join(bench.folder, "redrive.db");
    if (process.getuid?.() === 0) for (const each of [bench.folder, path]) chownSync(each, NOBODY, NOBODY);
    chmodSync(path, 0o400);
    for (const args of [["enqueue", "thing", "{}"], ["stats"]]) {
      const { code, err } = call(bench, args, { asNobody: true });
      expect({ code, err }).toEqual({ code: 3, err: expect.stringContaining(path) });
      expect(err).toContain("`chmod u+w`, or run as their owner");
    }
    const doctor = call(bench, ["doctor"], { asNobody: true });
    const locked = ["", "-wal", "-shm"].map((end) => path + end).filter((each) => existsSync(each));
    expect(doctor.out).toContain(`you may not read and write ${locked.join(", ")} (owner`);
    expect(doctor.out).toContain(`→ chmod u+rw ${locked.join(" ")}, or run as the owner`);
    expect(doctor.out).not.toContain("backup");
    for (const name of readdirSync(bench.folder)) chmodSync(join(bench.folder, name), 0o600);
    expect(call(bench, ["enqueue", "thing", "{}"], { asNobody: true })).toMatchObject({ code: 0, err: "" });
  });
});

describe("a store of another user", () => {
  it.skipIf(process.getuid?.() !== 0).each([
    ["may only be read", 0o644],
    ["may not even be read", 0o600],
  ])("that %s is named in one line, with its owner and what to do", async (_name, mode) => {
    const bench = createBench();
    await bench.run(["enqueue", "thing", "{}"]);
    const path = join(bench.folder, "redrive.db");
    chmodSync(bench.folder, 0o755);
    chmodSync(path, mode);
    for (const args of [["enqueue", "thing", "{}"], ["stats"]]) {
      const { code, err } = call(bench, args, { asNobody: true });
      expect({ code, err }).toEqual({
        code: 3,
        err: `error: The database file ${path} belongs to another user (0), and you may not write it. Nothing was written; run as that user, or have it give you the right to read and write the file, those beside it (-wal, -shm) and their folder.\n`,
      });
    }
  });
});

describe("a URL behind sqlite:", () => {
  it.each([["stats"], ["enqueue", "t", "{}"], ["doctor"], ["migrate"]])(
    "is refused by %s without its password",
    async (...args) => {
      const bench = createBench();
      for (const url of ["sqlite:postgres://u:pw-77@h", "sqlite:postgresql://u:pw-77@h/db?sync=full"]) {
        const { code, out, err } = await bench.run([...args, "--store", url]);
        expect(code).not.toBe(0);
        expect(out + err).toContain("leave out sqlite:");
        expect(out + err).not.toContain("pw-77");
      }
      expect(readdirSync(bench.folder)).toEqual([]);
    },
  );
});

describe("better-sqlite3 without its native part", () => {
  it("is said to be in need of a rebuild, and the file is not blamed", async () => {
    const bench = createBench();
    await bench.run(["enqueue", "thing", "{}"]);
    const built = copiedLibrary({ binding: false });
    const [stats, doctor] = [call(bench, ["stats"], { built }), call(bench, ["doctor"], { built })];
    // From Node 24 on the package is not used.
    const isUsed = Number(process.versions.node.split(".")[0]) < 24;
    const needed = isUsed
      ? { code: 3, err: expect.stringContaining("`npm rebuild better-sqlite3`") }
      : { code: 0, err: "" };
    expect({ code: stats.code, err: stats.err }).toEqual(needed);
    expect(doctor.out.includes("→ run `npm install better-sqlite3`")).toBe(isUsed);
    expect(doctor.out).not.toContain("backup");
  });
});

/** A copy of the library that anybody may read, beside packages of which better-sqlite3 may lack its native part. */
function copiedLibrary({ binding }: { readonly binding: boolean }): string {
  const { folder } = createBench();
  const packages = join(dirname(fileURLToPath(import.meta.url)), "../../node_modules");
  const own = join(folder, "node_modules");
  mkdirSync(own);
  for (const name of readdirSync(packages).filter((each) => binding || each !== "better-sqlite3"))
    symlinkSync(join(packages, name), join(own, name));
  if (!binding)
    for (const part of ["lib", "package.json"])
      cpSync(join(packages, "better-sqlite3", part), join(own, "better-sqlite3", part), { recursive: true });
  cpSync(fileURLToPath(BUILT), join(folder, "dist"), { recursive: true });
  cpSync(join(packages, "../package.json"), join(folder, "package.json"));
  for (const each of [folder, join(folder, "dist")]) chmodSync(each, 0o755);
  return `${pathToFileURL(join(folder, "dist")).href}/`;
}
