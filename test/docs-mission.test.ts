// docs/mission.md has every line of the mission, and claims nothing without a test that shows it and a page that says it.
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

const page = new URL("../docs/mission.md", import.meta.url);

/** The ids of the mission: a letter for each of the five systems, and how many lines it has. */
const LINES = { B: 9, W: 9, H: 11, S: 6, R: 9 } as const;

interface Row {
  readonly id: string;
  readonly what: string;
  readonly status: string;
  readonly tests: readonly string[];
  readonly pages: readonly string[];
}

const links = (cell = ""): string[] => [...cell.matchAll(/\]\(([^)]+)\)/g)].map(([, link]) => link ?? "");

const rows: Row[] = readFileSync(page, "utf8")
  .split("\n")
  .filter((line) => /^\| [A-Z]\d+ \|/.test(line))
  .map((line) => {
    const [id = "", what = "", status = "", tests, pages] = line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim());
    return { id, what, status, tests: links(tests), pages: links(pages) };
  });

describe("the mission page", () => {
  it("has every line of the mission once, in its order", () => {
    const ids = Object.entries(LINES).flatMap(([face, lines]) => {
      const own = Array.from({ length: lines }, (_, i) => `${face}${i + 1}`);
      // A guarantee that only batches have.
      return face === "B" ? [...own, "G10"] : own;
    });
    expect(rows.map(({ id }) => id)).toEqual(ids);
  });

  it.each(rows)("$id says what it is and how it stands", ({ what, status }) => {
    expect(what).not.toBe("");
    expect(status).toMatch(/^(works|later|partly: .+)$/);
  });

  it.each(rows)("$id names files that exist", ({ tests, pages }) => {
    const lost = [...tests, ...pages].filter((link) => !existsSync(new URL(link, page)));
    expect(lost).toEqual([]);
    expect(tests.filter((link) => !link.startsWith("../test/"))).toEqual([]);
    expect(pages.filter((link) => !/^(?!\.).*\.md$/.test(link))).toEqual([]);
  });

  it.each(rows.filter(({ status }) => status !== "later"))("$id has a test and a page to show", ({ tests, pages }) => {
    expect(tests.length).toBeGreaterThan(0);
    expect(pages.length).toBeGreaterThan(0);
  });
});
