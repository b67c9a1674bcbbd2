// examples/records as a user runs it, with few records, on SQLite, and on Postgres where it is to be proven: judged by its exit code, by its own books,
// and by what is in the store it leaves.
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, inject, it } from "vitest";
import { reader } from "../support/database-file.ts";
import { type Ended, openExample, STORES } from "../support/example.ts";
import { freshSchema } from "../support/postgres-world.ts";

const { folder, typeErrors, ...example } = openExample("records");
const run = (files: string, ...args: string[]): Promise<Ended> => example.run(args, { RECORDS_FOLDER: files });

describe.skipIf(process.platform === "win32")("examples/records", () => {
  const files = { SQLite: join(folder, "sqlite"), Postgres: join(folder, "postgres") };
  const ended: Record<string, Ended> = {};
  beforeAll(async () => {
    const server = `${inject("postgres18")}?schema=${freshSchema()}`;
    const runs = Object.entries(files).map(async ([name, own]) => {
      if (!STORES.includes(name)) return;
      ended[name] = await run(own, "--records", "150", ...(name === "Postgres" ? ["--store", server] : []));
    });
    await Promise.all(runs);
  }, 180_000);

  it.each(STORES)("ends well on %s, with balanced books", (name) => {
    const { code, stdout, stderr } = ended[name] ?? { code: null, stdout: "", stderr: "" };
    expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: "" });
    const books = stdout.split("The books\n")[1]?.split("\n\n")[0]?.split("\n") ?? [];
    expect(books).toHaveLength(9);
    expect(books.filter((line) => !line.startsWith("  ✓ "))).toEqual([]);
    expect(books[0]).toContain("150 records = 138 results + 0 waiting + 12 dead letters; none lost, none twice");
    expect(stdout).toContain("kill -9 after ");
    expect(stdout).not.toContain("\u001b");
  });

  it("leaves a store, an input and a whole output, and no retry that waits", () => {
    const ask = (sql: string) => reader(join(files.SQLite, "redrive.db"))(sql);
    expect(ask("select status, count(*) from jobs group by 1 order by 1")).toEqual([
      ["completed", 138],
      ["failed", 12],
    ]);
    // On a busy machine the last answer of the API may come after the timeout.
    const late = "The run took longer than 800ms.";
    const letters = `select reason, replace(last_error, '${late}', '503 try again later'), count(*) from dead_letters
      group by 1, 2 order by 1`;
    expect(ask(letters)).toEqual([
      ["exhausted", "503 try again later", 4],
      ["permanent", "404 no such customer", 8],
    ]);
    expect(ask("select * from retry_queue")).toEqual([]);
    expect(existsSync(join(files.SQLite, "results.ndjson.part"))).toBe(false);
  });

  it("refuses what it does not understand and changes nothing", async () => {
    for (const args of [
      ["--record", "5"],
      ["--records", "5"],
      ["--records", "many"],
    ]) {
      const { code, stdout, stderr } = await run(join(folder, "none"), ...args);
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      expect(stderr).toMatch(/--record[\s\S]*Usage: node examples/);
    }
    expect(existsSync(join(folder, "none"))).toBe(false);
  });

  it("keeps its hands off a folder with other files", async () => {
    writeFileSync(join(folder, "mine.txt"), "");
    const { code, stderr } = await run(folder, "--records", "100");
    expect(code).toBe(1);
    expect(stderr).toMatch(/files that this example did not make/);
    expect(stderr).not.toMatch(/\n +at /);
  });

  it("fits its types", () => {
    expect(typeErrors()).toBe("");
  });
});
