// The commands about the house itself: stats, health, migrate, doctor, init, help.
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openDatabase } from "../../src/store/sqlite/driver.ts";
import { MIGRATIONS } from "../../src/store/sqlite/schema.ts";
import { createBench } from "../support/cli.ts";

describe("stats", () => {
  it("counts jobs in every state, workers and dead letters", async () => {
    const bench = createBench();
    await bench.run(["enqueue", "thing", "-"], { stdin: "1\n2\n" });
    expect((await bench.json(["stats"])).document).toEqual({
      jobs: { queued: 2, running: 0, completed: 0, dead: 0, cancelled: 0 },
      workers: 0,
      deadLetters: { total: 0, byClass: {}, byType: {}, byReason: {} },
    });
    // What was asked for is shown to those who want quiet, too.
    expect((await bench.run(["stats", "--quiet"])).out).toMatch(/^JOBS +COUNT\nqueued +2\nrunning +0\n/);
  });
});

describe("health", () => {
  it("is healthy without work, degraded with work and nobody to do it", async () => {
    const bench = createBench();
    await bench.run(["migrate"]);
    expect(await bench.run(["health"])).toMatchObject({ code: 0, out: expect.stringMatching(/^healthy \(1\.00\)\n/) });
    await bench.run(["enqueue", "thing", "{}"]);
    const { code, document } = await bench.json(["health"]);
    expect(code).toBe(0);
    expect(document).toMatchObject({ status: "degraded", score: 0.7, workers: 0 });
    expect(document.reasons[0]).toContain("no worker is alive");
  });
});

describe("migrate", () => {
  it("makes the store once and says so", async () => {
    const bench = createBench();
    expect((await bench.json(["migrate"])).document).toEqual({ from: 0, to: MIGRATIONS.length });
    expect((await bench.run(["migrate"])).out).toContain("nothing to do");
  });

  it("with --plan prints SQL that runs, and changes nothing", async () => {
    const bench = createBench();
    const { out } = await bench.run(["migrate", "--plan"]);
    expect(existsSync(join(bench.folder, "redrive.db"))).toBe(false);
    const db = openDatabase(":memory:");
    db.exec(out);
    expect(db.prepare("select count(*) from jobs").all()).toEqual([[0]]);
    db.close();
    await bench.run(["migrate"]);
    expect((await bench.json(["migrate", "--plan"])).document.statements).toEqual([]);
  });

  it.each([["a folder"], ["not a database"]])("ends with 3 where the file is %s", async (what) => {
    const bench = createBench();
    const path = join(bench.folder, "redrive.db");
    if (what === "not a database") writeFileSync(path, "x".repeat(5_000));
    const { code, err } = await bench.run(["migrate", ...(what === "a folder" ? ["--store", "sqlite:."] : [])]);
    expect(code).toBe(3);
    expect(err).not.toMatch(/\n\s+at /);
  });
});

describe("doctor", () => {
  it("finds nothing wrong with a new store", async () => {
    const bench = createBench();
    await bench.run(["migrate"]);
    const { code, document } = await bench.json(["doctor"]);
    expect(code).toBe(0);
    expect(document.checks.map(({ check, level }: { check: string; level: string }) => [check, level])).toEqual(
      ["node", "sqlite", "config", "rights", "folder", "disk", "clock", "schema", "integrity", "workers", "work"].map(
        (check) => [check, "ok"],
      ),
    );
  });

  it("warns about rights, names problems, and says what to do", async () => {
    const bench = createBench();
    await bench.run(["migrate"]);
    const path = join(bench.folder, "redrive.db");
    chmodSync(path, 0o644);
    const warned = await bench.run(["doctor"]);
    expect(warned).toMatchObject({ code: 0, out: expect.stringContaining(`→ chmod 600 ${path}`) });
    chmodSync(bench.folder, 0o777);
    const refused = await bench.run(["doctor"]);
    expect(refused.out).toMatch(/problem +folder/);
    expect(refused.code).toBe(0 + 3);
    chmodSync(bench.folder, 0o700);
    bench.sql("select 1");
    const db = openDatabase(path);
    db.exec("pragma user_version = 99");
    db.close();
    const newer = await bench.run(["doctor"]);
    expect(newer).toMatchObject({ code: 3, out: expect.stringContaining("update Redrive") });
  });

  it("ends with 3 without a store, and makes none", async () => {
    const bench = createBench();
    expect(await bench.run(["doctor"])).toMatchObject({ code: 3, out: expect.stringMatching(/problem +store/) });
    expect(existsSync(join(bench.folder, "redrive.db"))).toBe(false);
  });
});

describe("init", () => {
  it.each([[[]], [["--js"]]])("with %j writes a starter whose next steps work as typed", async (args) => {
    const bench = createBench();
    const { document } = await bench.json(["init", ...args]);
    expect(document.files).toHaveLength(2);
    const codes: number[] = [];
    for (const step of document.next as string[]) {
      const words = step.replace("redrive ", "").split(" ");
      codes.push((await bench.run(words.map((word) => word.replaceAll("'", "")))).code);
    }
    expect(codes).toEqual([0, 0, 1, 0]);
    expect((await bench.json(["stats"])).document.jobs).toMatchObject({ completed: 1, dead: 1 });
  });

  it("never overwrites", async () => {
    const bench = createBench();
    bench.write("jobs.ts", "mine");
    const { code, err } = await bench.run(["init"]);
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining("jobs.ts") });
    expect(readFileSync(join(bench.folder, "jobs.ts"), "utf8")).toBe("mine");
    expect(existsSync(join(bench.folder, "redrive.config.yaml"))).toBe(false);
  });
});

describe("help", () => {
  const commands = ["demo", "init", "enqueue", "worker", "drain", "stats", "health", "migrate", "doctor"];
  const groups = ["list", "show", "cancel", "retry", "reschedule"].map((name) => `jobs ${name}`);
  const letters = ["list", "show", "stats", "retry", "remove", "export"].map((name) => `dlq ${name}`);

  it.each([...commands, ...groups, ...letters])("%s has one with an example, within 80 columns", async (name) => {
    const { code, out } = await createBench().run([...name.split(" "), "--help"]);
    expect(code).toBe(0);
    expect(out).toMatch(new RegExp(`Examples?:\n  redrive ${name}`));
    expect(out).toContain("--store");
    const [before = ""] = out.split(/Examples?:/);
    expect(Math.max(...before.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  it("lists commands and exit codes", async () => {
    const { code, out } = await createBench().run(["--help"]);
    expect(code).toBe(0);
    expect(out).toContain("75   worker: replace me");
    for (const name of [...commands, "jobs", "dlq"]) expect(out).toContain(`\n  ${name} `);
    expect(Math.max(...out.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  it("is shown on stderr with exit 2 where the command is missing", async () => {
    for (const args of [[], ["jobs"], ["dlq"]]) {
      const { code, out, err } = await createBench().run(args);
      expect({ code, out }).toEqual({ code: 2, out: "" });
      expect(err).toContain("Usage:");
    }
  });
});
