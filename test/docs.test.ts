// The documentation keeps its word: SQL in it runs, error codes in it are those of the program, links lead somewhere.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { openDatabase } from "../src/store/sqlite/driver.ts";
import { MIGRATIONS } from "../src/store/sqlite/schema.ts";

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
    for (const migration of MIGRATIONS) db.exec(migration);
    expect(db.prepare(sql).all()).toBeInstanceOf(Array);
    db.close();
  });

  it("is there at all", () => expect(statements.length).toBeGreaterThan(5));

  it("names the columns of every view as they are", () => {
    const db = openDatabase(":memory:");
    for (const migration of MIGRATIONS) db.exec(migration);
    for (const [, view, columns] of read("docs/stores/sqlite.md").matchAll(/^\| `(\w+)` \| `([^`]+)` \|$/gm)) {
      const actual = db.prepare(`select name from pragma_table_info('${view}')`).all();
      expect([view, actual.flat().join(", ")]).toEqual([view, columns]);
    }
    db.close();
  });
});

describe("the documentation", () => {
  it("lists every error code and no other", () => {
    const source = readFileSync(join(root, "src/core/errors.ts"), "utf8");
    const codes = [...source.matchAll(/^ {2}\| "(\w+)"/gm)].map((match) => match[1]);
    const listed = [...read("docs/reference/errors.md").matchAll(/^\| `(\w+)` \|/gm)].map((match) => match[1]);
    expect(listed).toEqual(codes);
  });

  it.each(pages)("%s links only to what is there", (page) => {
    const links = [...read(page).matchAll(/\]\((?!https?:)([^)#]+)/g)].map((match) => match[1] ?? "");
    const lost = links.filter((link) => !existsSync(join(root, dirname(page), link)));
    expect(lost).toEqual([]);
  });
});
