// The house rules as a test: the tree keeps them, and each rule proves on a bad sample that it still catches what it is
// for. The rules themselves are in support/tidy-rules.ts.

import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { countActorless, MOST_ACTORLESS } from "../scripts/words.mjs";
import { readSource, type Source } from "./support/source.ts";
import {
  bannedUses,
  changeLog,
  documentedExports,
  exampleReaches,
  fileNames,
  loadsAlone,
  lockfileGaps,
  lockfileHosts,
  type Longer,
  machinePaths,
  oneDoor,
  openingComment,
  plainWords,
  roomOrder,
  type Rule,
  sizes,
  type TextRule,
  typesDeclaredOnce,
} from "./support/tidy-rules.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** The only exceptions from the sizes. They may shrink, not grow, and no new one comes without a reason. */
const LONGER: Longer = {};

function trackedFiles(): string[] {
  try {
    const command = ["ls-files", "-co", "--exclude-standard"];
    const listed = execFileSync("git", command, { cwd: ROOT, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    const paths = listed.trim().split("\n");
    return paths.filter((path) => existsSync(join(ROOT, path)));
  } catch {
    // An unpacked archive: everything but what was installed or built.
    return readdirSync(ROOT, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)).replaceAll(sep, "/"))
      .filter(
        (path) => !/^(dist|coverage|bench\/results|\.git|\.redrive|examples\/\w+\/data)\/|\.db(-wal|-shm)?$/.test(path),
      )
      .filter((path) => !/(^|\/)node_modules\//.test(path));
  }
}

describe("the tree", () => {
  const read = (path: string) => ({ path, text: readFileSync(join(ROOT, path), "utf8") });
  const files = trackedFiles().map(read);
  const code = files.filter(({ path }) => /\.(ts|mjs|js)$/.test(path));
  let parsed: Source[] | undefined;
  const sources = (): Source[] =>
    (parsed ??= code.filter(({ path }) => /^(src|scripts|bin)\//.test(path)).map((f) => readSource(f.path, f.text)));
  const none = (problems: string[]): void => expect(problems.join("\n")).toBe("");

  it("keeps the rooms in their order", () => none(code.flatMap(roomOrder)));
  it("lets examples use the package alone", () => none(code.flatMap(exampleReaches)));
  it("gives every exported type a name of its own", () => none(typesDeclaredOnce(code)));
  it("touches clock, dice, threads, console and environment only where they live", () =>
    none(sources().flatMap(bannedUses)));
  it("writes to terminals and logs through one door", () => none(sources().flatMap(oneDoor)));
  it("keeps files and functions short", () => none(sources().flatMap(sizes(LONGER))));
  it("documents every export", () => none(sources().flatMap(documentedExports)));
  it("opens every code file with a comment", () => none(code.flatMap(openingComment)));
  it("names files for their subject", () => none(files.flatMap(fileNames)));
  it("names no folder of one machine", () => none(files.flatMap(machinePaths)));
  it("keeps download hosts out of the lockfile", () => none(lockfileHosts(read("package-lock.json"))));
  it("keeps the packages of every platform in the lockfile", () => none(lockfileGaps(read("package-lock.json"))));
  it("has an unreleased section in the change log", () => none(changeLog(read("CHANGELOG.md"))));
  it("writes docs, comments and messages in plain words", () => none(files.flatMap(plainWords)));
  it("names the actor in nearly every sentence of docs and comments", () => {
    const { sentences, share } = countActorless(files.filter(({ path }) => !/^(SECURITY|CHANGELOG)/.test(path)));
    expect(sentences).toBeGreaterThan(1_000);
    expect(share).toBeLessThanOrEqual(MOST_ACTORLESS);
  });
  it("excuses only what still exists", () => {
    const names = sources().flatMap(({ path, functions }) => [path, ...functions.map(({ name }) => `${path}#${name}`)]);
    none(Object.keys(LONGER).filter((key) => !names.includes(key)));
  });
  it("loads only Node built-ins when redrive is imported", (test) => {
    if (!existsSync(join(ROOT, "dist/index.js"))) test.skip("dist/index.js does not exist; run npm run build");
    none(loadsAlone(join(ROOT, "dist")));
  });
});

describe("the rules", () => {
  const blank = (count: number): string => "\n".repeat(count);
  const excused = sizes({ "src/core/a.ts": { lines: 310, reason: "Sample." } });

  const samples: [rule: Rule, path: string, bad: string, expected: RegExp][] = [
    [bannedUses, "src/core/a.ts", "\nDate.now();", /a\.ts:2: Date\.now is only for src\/system; use `now`/],
    [bannedUses, "src/cli/a.ts", "new Date();", /new Date\(\)/],
    [bannedUses, "src/enqueue/a.ts", "setTimeout(f, 1);", /setTimeout .* use the timers/],
    [bannedUses, "src/enqueue/a.ts", "globalThis.setInterval(f, 1);", /setInterval/],
    [bannedUses, "src/enqueue/a.ts", "const wait = { setImmediate };", /setImmediate/],
    [bannedUses, "src/enqueue/a.ts", 'import { setTimeout as sleep } from "node:timers/promises";', /node:timers/],
    [bannedUses, "src/enqueue/a.ts", "Math.random();", /Math\.random/],
    [bannedUses, "src/enqueue/a.ts", "crypto.getRandomValues(a);", /crypto\.getRandomValues/],
    [bannedUses, "src/enqueue/a.ts", 'import { randomUUID } from "node:crypto";', /node:crypto\.randomUUID/],
    [bannedUses, "src/enqueue/a.ts", 'import * as c from "node:crypto"; c.randomBytes(1);', /node:crypto\.randomBytes/],
    [bannedUses, "src/enqueue/a.ts", "AbortSignal.timeout(1);", /AbortSignal\.timeout/],
    [bannedUses, "src/store/sqlite/a.ts", "new Worker(url);", /new Worker is only for src\/system/],
    [bannedUses, "src/worker/a.ts", 'import { spawn } from "node:child_process";', /the processes of src\/system/],
    [bannedUses, "src/system/a.ts", "console.log(1);", /console is only for src\/cli/],
    [bannedUses, "src/system/a.ts", "process.env.HOME;", /process\.env is only for src\/cli/],
    [bannedUses, "src/system/a.ts", "const { env } = process;", /process\.env is only for src\/cli/],
    [oneDoor, "src/cli/a.ts", "io.stdout.write(text);", /io\.stdout\.write writes past the door; use `put`/],
    [oneDoor, "src/cli/a.ts", "(await open()).write(text);", /\.write writes past the door/],
    [oneDoor, "src/worker/a.ts", "console.error(text);", /console.* writes past the door/],
    [oneDoor, "src/system/a.ts", "const { stderr } = process;", /process\.stderr writes past the door/],
    [oneDoor, "src/system/a.ts", 'import { writeSync } from "node:fs";', /node:fs\.writeSync writes past/],
    [oneDoor, "src/system/a.ts", "fs.writeFileSync(2, text);", /a\.ts:1: writes past the door/],
    [sizes({}), "src/core/a.ts", `${blank(400)}f();`, /has 401 lines, at most 400/],
    [sizes({}), "src/core/a.ts", `const f = () => {${blank(60)}};`, /a\.ts#f has 61 lines, at most 60/],
    [sizes({}), "src/core/a.ts", `class A { run() {${blank(60)}} }`, /a\.ts#run has 61 lines/],
    [excused, "src/core/a.ts", `${blank(319)}f();`, /grew from 310 to 320/],
    [excused, "src/core/a.ts", `${blank(304)}f();`, /shrank to 305/],
    [documentedExports, "src/core/a.ts", "// Not a doc comment.\nexport const a = 1;", /a\.ts:2: export a has no doc/],
    [documentedExports, "src/core/a.ts", "/** Yes. */\nexport type A = 1;\nexport class B {}", /a\.ts:3: export B/],
  ];
  for (const [rule, path, bad, expected] of samples) {
    it(`catch in ${path}: ${bad.replace(/\s+/g, " ").trim()}`, () => {
      expect(rule(readSource(path, bad))).toEqual([expect.stringMatching(expected)]);
    });
  }

  const textSamples: [rule: TextRule, path: string, bad: string, expected: RegExp][] = [
    [
      roomOrder,
      "src/core/a.ts",
      'import { b } from "../store/store.ts";',
      /core must not use store, which comes after/,
    ],
    [roomOrder, "src/core/a.ts", '\nexport * from "node:fs";', /a\.ts:2: core is pure .* node:fs/],
    [roomOrder, "src/system/a.ts", 'import type { B } from "../jobs/b.ts";', /system must not use jobs/],
    [roomOrder, "src/store/sqlite/a.ts", 'import "../memory/b.ts";', /sqlite must not use store\/memory/],
    [roomOrder, "src/store/a.ts", 'import "./memory/b.ts";', /store must not use store\/memory/],
    [roomOrder, "src/worker/a.ts", 'await import("../store/sqlite/b.ts");', /worker must not use store\/sqlite/],
    [roomOrder, "src/upkeep/a.ts", 'type B = import("../cli/b.ts").B;', /upkeep must not use cli/],
    [roomOrder, "src/worker/a.ts", 'new URL("../isolated-child.js", import.meta.url);', /worker must not use redrive/],
    [roomOrder, "src/index.ts", 'export { b } from "./cli/b.ts";', /redrive must not use cli/],
    [roomOrder, "src/index.ts", 'export type { B } from "./testing/b.ts";', /redrive must not use testing/],
    [roomOrder, "src/enqueue/a.ts", 'import z from "zod";', /enqueue must not import zod; packages belong to/],
    [roomOrder, "src/enqueue/a.ts", 'import "../../test/b.ts";', /enqueue must not use test\/b\.ts/],
    [roomOrder, "src/enqueue/a.ts", 'import "fs";', /write node:fs/],
    [roomOrder, "src/extra/a.ts", "", /unknown room extra/],
    [
      roomOrder,
      "src/worker/a.ts",
      'new URL("../examples/b/c.js", import.meta.url);',
      /worker must not use examples\/b/,
    ],
    [exampleReaches, "examples/a/b.ts", 'import "../../src/redrive.ts";', /examples\/a must not use src\/redrive\.ts/],
    [
      exampleReaches,
      "examples/a/b.ts",
      'import { c } from "../c/d.ts";',
      /examples\/a must not use examples\/c\/d\.ts/,
    ],
    [openingComment, "src/a.ts", 'import "a";', /opens without a comment/],
    [fileNames, "src/helpers/a.ts", "", /helpers says nothing; name it/],
    [fileNames, "src/core/job-utils.test.ts", "", /job-utils\.test\.ts says nothing/],
    [machinePaths, "docs/a.md", `\nRun ${["", "home", "me"].join("/")}.`, /a\.md:2: names a folder/],
    [lockfileHosts, "package-lock.json", '\n"resolved": "https://host/a.tgz"', /json:2: names a download host/],
    [
      lockfileGaps,
      "package-lock.json",
      '{ "packages": { "node_modules/a": { "optionalDependencies": { "a-darwin": "1.0.0" } } } }',
      /json: node_modules\/a wants a-darwin; add its entry/,
    ],
    [plainWords, "docs/guides/a.md", "\nIt waits for nobody.", /a\.md:2: says "nobody"; write name the actor/],
    [
      plainWords,
      "README.md",
      "It is run\nover its\nhead.",
      /README\.md:2: says "over its head"; write without waiting/,
    ],
    [plainWords, "CONTRIBUTING.md", "| It ends | for good |", /says "for good"; write permanently/],
    [plainWords, "src/core/a.ts", "\n// Charged to\n// nobody.", /a\.ts:3: says "nobody"; write name the actor/],
    [plainWords, "src/core/a.ts", "/**\n * It ends for\n * good.\n */", /a\.ts:2: says "for good"; write permanently/],
    [plainWords, "src/cli/a.ts", 'log.info("given up by somebody");', /a\.ts:1: says "somebody"; write name/],
    [plainWords, "src/cli/a.ts", "const HELP = `\nIt begins\nanew.`;", /a\.ts:3: says "anew"; write again/],
    [plainWords, "src/store/sqlite/schema.ts", "// Nobody writes it.", /schema\.ts:1: says "nobody"/],
    [changeLog, "CHANGELOG.md", "# Change log\n\n## 0.1.0\n", /no Unreleased section; add/],
  ];
  for (const [rule, path, text, expected] of textSamples) {
    it(`catch in ${path}: ${text.replace(/\s+/g, " ").trim()}`, () => {
      expect(rule({ path, text })).toEqual([expect.stringMatching(expected)]);
    });
  }

  it("catch a package loaded by the entry point", () => {
    const dist = mkdtempSync(join(tmpdir(), "redrive-sample-"));
    writeFileSync(join(dist, "index.js"), 'import "better-sqlite3";\n');
    const problems = loadsAlone(dist);
    rmSync(dist, { recursive: true });
    expect(problems).toEqual([expect.stringMatching(/better-sqlite3.*; load packages only in/)]);
  });

  it("leave code blocks, code in a line and pages made from source to their words", () => {
    const text = "Plain `nobody` words.\n\n```text\ncharged to nobody\n```\n";
    expect(plainWords({ path: "docs/a.md", text })).toEqual([]);
    expect(plainWords({ path: "docs/reference/cli.md", text: "for nobody" })).toEqual([]);
    expect(plainWords({ path: "test/a.test.ts", text: "// for nobody" })).toEqual([]);
  });

  it("judge the words of examples as those of src", () => {
    for (const path of ["examples/shop/a.ts", "examples/video/a.mjs", "src/core/a.ts"])
      expect(plainWords({ path, text: "// for nobody" })).toHaveLength(1);
  });

  it("leave names, code in a comment, values in a string and the SQL of a schema to their words", () => {
    const text = [
      'const NOBODY = names["x"];',
      "const quotes = /[\"'`]/; nobody();",
      "// The holder `nobody` is empty.",
      "say(`${nobody} waits`);",
      'join("for", "good");',
    ].join("\n");
    expect(plainWords({ path: "src/core/a.ts", text })).toEqual([]);
    const schema = "const TABLES = `create table job (seq int) -- nobody's\n`;";
    expect(plainWords({ path: "src/store/sqlite/schema.ts", text: schema })).toEqual([]);
  });

  it("count sentences without an actor", () => {
    const text =
      "# A title of words\n\nOne is good. It is told\nto nobody. `nobody` is code here.\n\n- Whoever comes first\n";
    const { sentences, found, share } = countActorless([{ path: "docs/a.md", text }]);
    expect([sentences, found.map(({ sentence }) => sentence), share]).toEqual([
      5,
      ["It is told to nobody.", "- Whoever comes first"],
      0.4,
    ]);
    const code = '// It is told\n// to nobody. It ends well and soon.\nsay("whoever it may be");\n';
    const inCode = countActorless([{ path: "src/core/a.ts", text: code }]);
    expect([inCode.sentences, inCode.found.map(({ sentence }) => sentence)]).toEqual([2, ["It is told to nobody."]]);
  });

  it("leave a tidy file alone", () => {
    const text = `// A tidy file.
import type { ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { claim } from "../store/store.ts";
/** Waits through what it is given, at a time it is given. */
export function wait(timers: { setTimeout(ms: number): void; console: string }, now: number): Date;
export function wait(timers: { setTimeout(ms: number): void }, now: number): unknown {
  timers.setTimeout(1); // Date.now() and setTimeout in a comment or a "setTimeout(" string are no use.
  return [new Date(now), timers.console, { console: 1 }, "Math.random()", claim, readFileSync];
}
export { claim };
`;
    const source = readSource("src/enqueue/wait.ts", text);
    const rules = [
      roomOrder,
      bannedUses,
      oneDoor,
      sizes({}),
      documentedExports,
      openingComment,
      fileNames,
      machinePaths,
    ];
    expect(rules.flatMap((rule) => rule(source))).toEqual([]);
  });
});
