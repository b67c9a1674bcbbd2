// The documentation keeps its word: SQL in it runs, TypeScript in it compiles and runs, error codes in it are those
// of the program, links lead somewhere.
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { openDatabase } from "../src/store/sqlite/driver.ts";
import { migrate } from "../src/store/sqlite/migrate.ts";
import { openWorkshop } from "./support/compiled.ts";
import { freshSchema } from "./support/postgres-world.ts";

const root = new URL("..", import.meta.url).pathname;
const pages = [
  "README.md",
  "CONTRIBUTING.md",
  ...readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => join("docs", name)),
];
const read = (page: string): string => readFileSync(join(root, page), "utf8");

function blocks(page: string, language: string): string[] {
  return [...read(page).matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, "g"))].map(
    (match) => match[1] ?? "",
  );
}

describe("SQL in the documentation", () => {
  const statements = pages.flatMap((page) =>
    blocks(page, "sql").flatMap((block) => block.split(";").map((sql) => [page, sql.trim()] as const)),
  );

  it.each(statements.filter(([, sql]) => sql !== ""))("of %s runs: %s", (_page, sql) => {
    const db = openDatabase(":memory:");
    migrate(db);
    expect(db.prepare(sql).all()).toBeInstanceOf(Array);
    db.close();
  });

  it("is there at all", () => expect(statements.length).toBeGreaterThan(5));
});

describe("TypeScript in the documentation", () => {
  const workshop = openWorkshop();
  const home = process.cwd();
  const own = join(workshop.folder, "stores");
  const examples = pages
    .flatMap((page) => blocks(page, "ts").map((text, n) => ({ page, text, n: n + 1 })))
    .map(({ page, text, n }) => ({ page, n, file: workshop.write(`${page.replaceAll(/\W/g, "-")}-${n}.ts`, text) }));
  let problems: string[] = [];

  beforeAll(() => {
    // Where the pages say that a database is.
    process.env.DATABASE_URL = `${inject("postgres18")}?schema=${freshSchema()}`;
    problems = workshop.compile(examples.map(({ file }) => file));
    // Stores that the pages name by a relative path belong to nobody after the test.
    mkdirSync(own, { mode: 0o700 });
    process.chdir(own);
  });
  afterAll(() => {
    process.chdir(home);
    workshop.remove();
  });

  it("compiles", () => expect(problems).toEqual([]));
  // Each is a module of its own and checks itself what it claims.
  it.each(examples)("of $page, block $n, runs", ({ file }) => workshop.load(file));
  it("has its stores in a folder of its own, not in the checkout", () =>
    expect(readdirSync(own)).toEqual(expect.arrayContaining(["jobs.db", "redrive.db"])));
  it("is there at all", () => expect(examples.length).toBeGreaterThan(5));
});

describe("the documentation", () => {
  it("lists every error code and no other", () => {
    const source = readFileSync(join(root, "src/core/errors.ts"), "utf8");
    const codes = [...source.matchAll(/^ {2}\| "(\w+)"/gm)].map((match) => match[1]);
    const listed = [...read("docs/reference/errors.md").matchAll(/^\| `(\w+)` \|/gm)].map((match) => match[1]);
    expect(listed).toEqual(codes);
  });

  it.each(pages)("%s links only to what is there", (page) => {
    const links = [...read(page).matchAll(/\]\((?!https?:)([^)]+)\)/g)].map((match) => match[1] ?? "");
    const lost = links.filter((link) => {
      const [path = "", anchor] = link.split("#");
      const target = path === "" ? page : join(dirname(page), path);
      if (!existsSync(join(root, target))) return true;
      return anchor !== undefined && target.endsWith(".md") && !anchors(target).includes(anchor);
    });
    expect(lost).toEqual([]);
  });
});

/** The names under which GitHub knows the headings of a page. */
function anchors(page: string): string[] {
  return [...read(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-"),
  );
}
