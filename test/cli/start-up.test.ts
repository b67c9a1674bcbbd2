// What a call loads: its own command and nothing else. Counted in modules, because each costs about as much as the next,
// and a count is the same on a busy machine; `npm run bench -- startup` measures the time.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Help } from "commander";
import { describe, expect, it } from "vitest";
import { COMMANDS } from "../../src/cli/commands.ts";
import type { Io } from "../../src/cli/io.ts";
import { addCommands, emptyProgram } from "../../src/cli/program.ts";
import { builtModule } from "../support/built.ts";
import { createBench } from "../support/cli.ts";
import { openBeside, testFolder } from "../support/database-file.ts";

const COUNT = new URL("../support/count-modules.mjs", import.meta.url).href;
const PROGRAM = fileURLToPath(new URL("../support/cli-process.mjs", import.meta.url));

/** The modules of the library that a call loads, by their paths below dist. */
function loadedBy(...args: string[]): string[] {
  const cwd = testFolder();
  const list = join(cwd, "modules.txt");
  const built = builtModule("cli/process.js").slice(0, -"cli/process.js".length);
  const { status, stderr } = spawnSync(process.execPath, ["--import", COUNT, PROGRAM, ...args], {
    cwd,
    encoding: "utf8",
    env: { ...process.env, REDRIVE_BUILT: built, REDRIVE_MODULES: list },
    input: "{}\n",
    timeout: 60_000,
  });
  expect(status, stderr).toBe(0);
  expect(existsSync(list)).toBe(true);
  const lines = readFileSync(list, "utf8").split("\n");
  return lines.filter((line) => line.startsWith(built)).map((line) => line.slice(built.length));
}

describe("a call of the command line", () => {
  it.each(["--help", "--version", "help"])("loads no command, no store and no worker for %s", (flag) => {
    const loaded = loadedBy(flag);
    expect(loaded).toContain("cli/main.js");
    expect(loaded.length).toBeLessThanOrEqual(27);
    expect(loaded.filter((path) => /^(store|worker|config|enqueue|redrive)\b/.test(path))).toEqual([]);
  });

  it("loads for one job only the way in, and starts no store thread", () => {
    const loaded = loadedBy("enqueue", "hello", "{}");
    expect(loaded).toContain("store/sqlite/engine.js");
    expect(loaded.length).toBeLessThanOrEqual(130);
    expect(loaded).not.toContain("redrive.js");
    expect(loaded).not.toContain("store/sqlite/thread-client.js");
    expect(new Set(loaded).size).toBe(loaded.length);
  });

  it("starts the store thread for a stream of jobs", () => {
    expect(loadedBy("enqueue", "hello", "-")).toContain("store/sqlite/thread-client.js");
  });
});

describe("the list of commands", () => {
  it("says of each what its module says", async () => {
    const nothing = { write: () => true };
    const io = { stdout: nothing, stderr: nothing, stdin: [], env: {}, cwd: "/", program: "redrive" };
    const whole = { ...io, onSignal: () => () => undefined } as unknown as Io;
    const program = emptyProgram(whole);
    await addCommands(program, whole, { isLoaded: () => true, done: () => undefined });
    const terms = program.commands.map((command) => new Help().subcommandTerm(command));
    expect(COMMANDS.map(({ name, takes }) => [name, takes].filter(Boolean).join(" "))).toEqual(terms);
  });
});

describe("one job from the command line", () => {
  it("is refused in words, not lost, while another process holds the file", async () => {
    const bench = createBench();
    await bench.run(["enqueue", "hello", "{}"]);
    const other = openBeside(join(bench.folder, "redrive.db"));
    try {
      other.exec("begin immediate");
      const { code, err } = await bench.run(["enqueue", "hello", "{}"]);
      expect({ code, err }).toEqual({ code: 3, err: expect.stringContaining("is locked by another process") });
    } finally {
      other.close();
    }
    expect((await bench.run(["enqueue", "hello", "{}"])).code).toBe(0);
    expect(bench.sql("select count(*) from jobs")).toEqual([[2]]);
  });

  it("makes a file that only its owner reads", async () => {
    const bench = createBench();
    await bench.run(["enqueue", "hello", "{}"]);
    expect(statSync(join(bench.folder, "redrive.db")).mode & 0o777).toBe(0o600);
  });
});
