// examples/api-client as a user runs it, at its small size, on SQLite, and on Postgres where it is to be proven: judged by its exit code, by its own
// books, and by what is in the store it leaves.
import { join } from "node:path";
import { beforeAll, describe, expect, inject, it } from "vitest";
import { reader } from "../support/database-file.ts";
import { type Ended, openExample, STORES } from "../support/example.ts";
import { freshSchema } from "../support/postgres-world.ts";

const { folder, typeErrors, ...example } = openExample("api-client");
const run = (...args: string[]): Promise<Ended> => example.run(args);

describe.skipIf(process.platform === "win32")("examples/api-client", () => {
  const file = join(folder, "prices.db");
  const ended: Record<string, Ended> = {};
  beforeAll(async () => {
    const stores = { SQLite: `sqlite:${file}`, Postgres: `${inject("postgres18")}?schema=${freshSchema()}` };
    const runs = Object.entries(stores).map(async ([name, store]) => {
      if (!STORES.includes(name)) return;
      ended[name] = await run("--small", "--store", store);
    });
    await Promise.all(runs);
  }, 120_000);

  it.each(STORES)("ends well on %s, with balanced books", (name) => {
    const { code, stdout, stderr } = ended[name] ?? { code: null, stdout: "", stderr: "" };
    expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: "" });
    const books = stdout.split("The books\n")[1]?.trimEnd().split("\n") ?? [];
    expect(books).toHaveLength(10);
    expect(books.filter((line) => !line.startsWith("  ✓ "))).toEqual([]);
    expect(books[0]).toContain("130 requests = 128 completed + 2 dead (no such item); none lost");
  });

  it("tells the outage and the way back, in plain lines where nobody watches", () => {
    const { stdout = "" } = ended["SQLite"] ?? {};
    expect(stdout).toMatch(
      /429 with Retry-After 1[^]*goes down[^]*the breaker opens[^]*the breaker closes[^]*redriven/,
    );
    expect(stdout).toMatch(/redrive health[^]*dead letters 35[^]*redrive health[^]*dead letters 2\b/);
    expect(stdout).not.toContain("\u001b");
  });

  it("leaves dead letters of the expired key that were redriven and completed", () => {
    const ask = (sql: string) => reader(file)(sql);
    const letters = "select failure_type, reason, status, count(*) from dead_letters group by 1, 2, 3 order by 1";
    expect(ask(letters)).toEqual([
      ["authentication", "permanent", "redriven", 33],
      ["permanent", "permanent", "dead", 2],
    ]);
    expect(ask("select status, count(*) from jobs where generation = 2 group by 1")).toEqual([["completed", 33]]);
  });

  it("refuses an unknown option and changes nothing", async () => {
    const { code, stdout, stderr } = await run("--smal");
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(/--smal[\s\S]*Usage: node examples/);
  });

  it("says in one line what it cannot open", async () => {
    const { code, stderr } = await run("--small", "--store", "mysql://localhost/shop");
    expect(code).toBe(1);
    expect(stderr).toMatch(/store/);
    expect(stderr).not.toMatch(/\n +at /);
  });

  it("fits its types", () => {
    expect(typeErrors()).toBe("");
  });
});
