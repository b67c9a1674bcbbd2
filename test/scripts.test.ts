// The scripts of the checkout that nothing else runs: what they say, and what they refuse.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { DEFECTS } from "../scripts/planted-defects.mjs";

const script = (name: string, ...args: string[]) => {
  const path = fileURLToPath(new URL(`../scripts/${name}.mjs`, import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, [path, ...args], { encoding: "utf8" });
  return { status, stdout, stderr };
};

describe("prepare", () => {
  it("says of each tool in a line whether it is here, and fetches nothing, with --check", () => {
    const { status, stdout } = script("prepare", "--check");
    expect(status).toBe(0);
    const lines = stdout.trimEnd().split("\n");
    expect(lines.map((line) => line.replace(/: .*/, ""))).toEqual(
      expect.arrayContaining(["Postgres 15", "chromium", "Redis", "Spark"]),
    );
    for (const line of lines) expect(line).toMatch(/: is (not )?here$/);
  });

  it("refuses what it does not know", () => {
    const { status, stderr } = script("prepare", "--brwoser");
    expect([status, stderr]).toEqual([2, expect.stringContaining("Usage: node scripts/prepare.mjs")]);
  });
});

describe("npm run prove", () => {
  it.each([
    [["steady", "--runs", "none"], "--runs must be a whole number from 1 to 99; got none."],
    [["simulate", "--store", "postgres", "--seed", "5"], "takes neither --seed nor --seeds"],
    [["upgrade", "--from", "3"], "--from must be 1 or 2; got 3."],
    [["upgrade", "--store", "memory"], "--store must be sqlite or postgres; got memory."],
    [["upgrade", "--jobs", "10", "--letters", "10"], "--letters must be fewer than the jobs, 10; got 10."],
    [["tiemd"], 'There is nothing to prove called "tiemd".'],
    [["corpus", "--maek"], "Unknown option '--maek'"],
    [["mutate", "--mutants", "many"], "--mutants must be a whole number"],
  ])("refuses %j", (args, message) => {
    const { status, stderr } = script("prove", ...args);
    expect([status, stderr]).toEqual([2, expect.stringContaining(message)]);
  });

  it("names only tests that are there: vitest plays the others of a list and says nothing", () => {
    const root = new URL("../", import.meta.url);
    const text = readFileSync(new URL("scripts/prove.mjs", root), "utf8");
    const named = [...text.matchAll(/"(test\/[^"*]+)"/g)].map(([, path = ""]) => path);
    expect(named.length).toBeGreaterThan(10);
    expect(named.filter((path) => !existsSync(new URL(path, root)))).toEqual([]);
  });
});

describe("the planted defects", () => {
  const root = new URL("../", import.meta.url);

  it.each(DEFECTS)("$name: can still be planted", ({ file, was, tests }) => {
    expect(readFileSync(new URL(file, root), "utf8").split(was)).toHaveLength(2);
    expect(tests.filter((path) => !existsSync(new URL(path, root)))).toEqual([]);
  });

  it("have names of their own", () => {
    expect(new Set(DEFECTS.map(({ name }) => name)).size).toBe(DEFECTS.length);
  });
});

describe("the tests", () => {
  it("run without `__proto__`", () => expect("__proto__" in {}).toBe(false));
});
