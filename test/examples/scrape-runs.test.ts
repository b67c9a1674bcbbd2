// examples/scrape-runs as a user runs it, at its small size, on SQLite, and on Postgres where it is to be proven: judged by its exit code, by its own
// books, and by what is in the store it leaves.
import { join } from "node:path";
import { beforeAll, describe, expect, inject, it } from "vitest";
import { reader } from "../support/database-file.ts";
import { type Ended, openExample, STORES } from "../support/example.ts";
import { freshSchema } from "../support/postgres-world.ts";

const { folder, typeErrors, ...example } = openExample("scrape-runs");
const run = (place: string, ...args: string[]): Promise<Ended> =>
  example.run(args, { SCRAPE_FOLDER: join(folder, place) });

describe.skipIf(process.platform === "win32")("examples/scrape-runs", () => {
  const file = join(folder, "runs.db");
  const ended: Record<string, Ended> = {};
  beforeAll(async () => {
    const stores = { SQLite: `sqlite:${file}`, Postgres: `${inject("postgres18")}?schema=${freshSchema()}` };
    const runs = Object.entries(stores).map(async ([name, store]) => {
      if (!STORES.includes(name)) return;
      ended[name] = await run(name, "--small", "--store", store);
    });
    await Promise.all(runs);
  }, 240_000);

  it.each(STORES)("ends well on %s, with balanced books", (name) => {
    const { code, stdout, stderr } = ended[name] ?? { code: null, stdout: "", stderr: "" };
    expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: "" });
    const books = stdout.split("The books\n")[1]?.trimEnd().split("\n") ?? [];
    expect(books).toHaveLength(8);
    expect(books.filter((line) => !line.startsWith("  ✓ "))).toEqual([]);
  });

  it("shows the words and the links of a run that always hangs, in plain lines where nobody watches", () => {
    const { stdout = "" } = ended["SQLite"] ?? {};
    expect(stdout).toMatch(/original +failed .* Run stuck for 1\.\ds - retry 1\/4 scheduled/);
    expect(stdout).toMatch(/\[RETRY 4\/4\] +failed .* permanently failed after 4 attempts/);
    expect(stdout).toMatch(/1 run would be ended; nothing was changed\./);
    expect(stdout).not.toContain("\u001b");
  });

  it("leaves one dead letter, and runs that SQL finds by their original", () => {
    const ask = (sql: string) => reader(file)(sql);
    expect(ask("select reason, attempts from dead_letters")).toEqual([["stuck", 5]]);
    const linked = `select max(retry_count), count(*), count(distinct original_run_id) from runs
      where original_run_id = (select job_id from dead_letters)`;
    expect(ask(linked)).toEqual([[4, 4, 1]]);
  });

  it("refuses an unknown option and changes nothing", async () => {
    const { code, stdout, stderr } = await run("none", "--smal");
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(/--smal[\s\S]*Usage: node examples/);
  });

  it("fits its types", () => {
    expect(typeErrors()).toBe("");
  });
});
