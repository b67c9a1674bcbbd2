// examples/video-extraction as a user runs it, with few videos, on SQLite, and on Postgres where it is to be proven: judged by its exit code, by its own
// books, and by what is in the store it leaves. Where ffmpeg or Python is missing it is left out, and its name says so.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { beforeAll, describe, expect, inject, it } from "vitest";
import { reader } from "../support/database-file.ts";
import { type Ended, openExample, STORES } from "../support/example.ts";
import { freshSchema } from "../support/postgres-world.ts";

const { folder, typeErrors, ...example } = openExample("video-extraction");
const run = (place: string, ...args: string[]): Promise<Ended> =>
  example.run(args, { VIDEO_FOLDER: join(folder, place) });
const missing = [["ffmpeg", "-version"] as const, ["python3", "--version"] as const]
  .filter(([tool, flag]) => spawnSync(tool, [flag]).status !== 0)
  .map(([tool]) => tool);
const title = `examples/video-extraction${missing.length > 0 ? ` (left out: no ${missing.join(", no ")})` : ""}`;

describe.skipIf(missing.length > 0)(title, () => {
  const ended: Record<string, Ended> = {};
  beforeAll(async () => {
    ended["SQLite"] = await run("sqlite", "--videos", "15");
    if (!STORES.includes("Postgres")) return;
    ended["Postgres"] = await run(
      "postgres",
      "--videos",
      "15",
      "--store",
      `${inject("postgres18")}?schema=${freshSchema()}`,
    );
  }, 240_000);

  it.each(STORES)("ends well on %s, with balanced books", (name) => {
    const { code, stdout, stderr } = ended[name] ?? { code: null, stdout: "", stderr: "" };
    expect(code, stdout + stderr).toBe(0);
    const books = stdout.split("The books\n")[1]?.trimEnd().split("\n") ?? [];
    expect(books).toHaveLength(6);
    expect(books.filter((line) => !line.startsWith("  ✓ "))).toEqual([]);
    expect(stderr).toContain("resuming run 1 of python-");
    expect(stdout + stderr).not.toContain("\u001b");
  });

  it("leaves a row of item_errors for every failed try", () => {
    const ask = reader(join(folder, "sqlite", "redrive.db"));
    const sql = "select count(distinct item_id), count(*) from item_errors where run_name like 'node-%'";
    expect(ask(sql)).toEqual([[3, 5]]);
  });

  it("refuses wrong options and changes nothing", async () => {
    for (const args of [["--video"], ["--videos", "3"], ["--videos", "x"]]) {
      const { code, stdout, stderr } = await run("none", ...args);
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      expect(stderr).toMatch(/--video[\s\S]*Usage: node examples/);
    }
  });

  it("fits its types", () => {
    expect(typeErrors()).toBe("");
  });
});
