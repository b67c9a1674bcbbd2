// The package as users get it: what is in it, and that it runs and type-checks from a folder of its own. The dependencies
// are those of the checkout; `npm run prove -- package` installs them anew on several versions of Node.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { VERSION } from "../src/core/version.ts";
import { INITIAL, oddities, pack, tryOut, typeCheck } from "../scripts/package.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));

describe("the package", () => {
  const folder = mkdtempSync(join(tmpdir(), "redrive-package-"));
  const project = join(folder, "project");
  let files: readonly string[] = [];

  beforeAll(() => {
    const packed = pack(folder);
    files = packed.files;
    const modules = join(project, "node_modules");
    mkdirSync(join(modules, "redrive"), { recursive: true });
    writeFileSync(join(project, "package.json"), INITIAL);
    spawnSync("tar", ["xzf", packed.tarball, "-C", join(modules, "redrive"), "--strip-components=1"]);
    const { dependencies, optionalDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
      dependencies: object;
      optionalDependencies: object;
    };
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
      // The folder of a scope, where a package has one.
      mkdirSync(dirname(join(modules, name)), { recursive: true });
      symlinkSync(join(root, "node_modules", name), join(modules, name));
    }
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("has what is needed and nothing else", () => expect(oddities(files)).toEqual([]));
  it("has everything that its README links to, and every page that its pages link to", () => {
    const pages = files.filter((path) => path.endsWith(".md"));
    const links = pages.flatMap((page) =>
      [...readFileSync(join(root, page), "utf8").matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)]
        .filter(([, link]) => !/^[a-z]+:/.test(link as string))
        .map(([, link]) => ({ page, to: posix.join(posix.dirname(page), link as string) }))
        .filter(({ to }) => page === "README.md" || to.endsWith(".md")),
    );
    expect(links.length).toBeGreaterThan(50);
    expect(links.filter(({ to }) => !files.includes(to))).toEqual([]);
  });
  it("names its repository", () => {
    expect(JSON.parse(readFileSync(join(root, "package.json"), "utf8"))).toMatchObject({
      repository: expect.stringMatching(/^github:/),
    });
  });
  it("has the version that the program names", () => {
    expect(JSON.parse(readFileSync(join(root, "package.json"), "utf8"))).toMatchObject({ version: VERSION });
  });
  it("notices what need not be there, and what is missing", () => {
    expect(oddities(["src/index.ts", "dist/index.js"])).toContain("src/index.ts need not be in the package");
    expect(oddities(["dist/index.js"])).toContain("bin/redrive.js is missing");
  });
  it("runs as a library and as a command line where `npm init` made the project", { timeout: 120_000 }, () =>
    expect(tryOut(project)).toBeNull(),
  );
  it("answers a bad number with a message and exit code 2, as a real process", () => {
    const cli = join(project, "node_modules/redrive/bin/redrive.js");
    const { status, stderr } = spawnSync(process.execPath, [cli, "jobs", "list", "--limit", "0"], {
      cwd: project,
      encoding: "utf8",
    });
    expect([status, stderr]).toEqual([2, expect.stringContaining("limit: expected a whole number from 1 to 200")]);
  });
  it("has types for Node and for bundlers", () => expect(typeCheck(project)).toBeNull());
});
