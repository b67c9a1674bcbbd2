// The commands about the house itself: stats, health, migrate, doctor, init, help.
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openDatabase } from "../../src/store/sqlite/driver.ts";
import { MIGRATIONS } from "../../src/store/sqlite/schema.ts";
import { createBench, JOBS_TS } from "../support/cli.ts";

describe("stats", () => {
  it("counts jobs in every state, workers and dead letters", async () => {
    const bench = createBench();
    await bench.run(["enqueue", "thing", "-"], { stdin: "1\n2\n" });
    expect((await bench.json(["stats"])).document).toEqual({
      jobs: { queued: 2, running: 0, completed: 0, dead: 0, cancelled: 0 },
      countedTo: 10_000,
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
    expect(document).toMatchObject({ successRate: null });
    expect(document.reasons).toEqual([
      {
        text: expect.stringContaining("no worker is alive"),
        since: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
        subject: null,
        help: "redrive worker --jobs FILE",
      },
    ]);
    expect((await bench.run(["health"])).out).toMatch(/  - no worker is alive and .* \(since .*\): redrive worker/);
  });

  it("judges one type, by the limits of the config file", async () => {
    const bench = createBench();
    bench.write("redrive.config.yaml", "health: { late: 1h, drains: { every: 5m } }\n");
    await bench.run(["enqueue", "thing", "{}"]);
    expect((await bench.json(["health", "--type", "other"])).document).toMatchObject({ score: 1, type: "other" });
    expect((await bench.json(["health", "--type", "thing"])).document).toMatchObject({ score: 0.7 });
    expect(await bench.run(["health", "--type", "a b"])).toMatchObject({ code: 2 });
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

describe("a store that is another file", () => {
  it.each([
    ["jobs.ts", "export const x = 1;\n".repeat(100), "a text file (TypeScript)"],
    ["notes", "x".repeat(5_000), "a text file"],
    ["picture", "\u0089PNG\0\0".repeat(200), "a binary file of another kind"],
  ])("is named with what it seems to be: %s", async (name, text, kind) => {
    const bench = createBench();
    const path = bench.write(name, text);
    for (const args of [["stats"], ["migrate"], ["enqueue", "thing", "{}"]]) {
      const { code, err } = await bench.run([...args, "--store", `sqlite:${name}`]);
      expect({ code, err }).toEqual({ code: 3, err: expect.stringContaining(`${path} seems to be ${kind};`) });
    }
    expect((await bench.run(["doctor", "--store", `sqlite:${name}`])).out).toContain(`seems to be ${kind};`);
    expect(readFileSync(path, "utf8")).toBe(text);
  });
});

describe("doctor", () => {
  it("says what is missing for the traces that the config file asks for", async () => {
    const bench = createBench();
    await bench.run(["migrate"]);
    expect((await bench.run(["doctor"])).out).not.toContain("traces");
    writeFileSync(join(bench.folder, "redrive.config.yaml"), "traces: link\n", { mode: 0o600 });
    const { code, out } = await bench.run(["doctor"]);
    expect(code).toBe(0);
    expect(out).toMatch(/^warning +traces +@opentelemetry\/api 1\.\S+, but no SDK is registered in this process/m);
    writeFileSync(join(bench.folder, "redrive.config.yaml"), "traces: maybe\n", { mode: 0o600 });
    expect(await bench.run(["doctor"])).toMatchObject({
      code: 78,
      err: expect.stringContaining('traces: expected true, false or "link"; got "maybe"') as string,
    });
  });

  it("says whether answered writes are on disk, and so does a worker that starts", async () => {
    const bench = createBench();
    const durable = async (store: string): Promise<unknown> => {
      const { document } = await bench.json(["doctor", "--store", store]);
      return document.checks.find(({ check }: { check: string }) => check === "durable").level;
    };
    const jobs = bench.write("jobs.ts", JOBS_TS);
    expect((await bench.run(["enqueue", "note", "{}", "--store", "sqlite:a.db?sync=normal"])).code).toBe(0);
    expect(await durable("sqlite:a.db")).toBe("ok");
    expect(await durable("sqlite:a.db?sync=normal")).toBe("warning");
    const drained = await bench.run(["drain", "--jobs", jobs, "--store", "sqlite:a.db?sync=normal"]);
    expect(drained.err).toContain("sync=normal: writes are answered before they are on disk");
    expect((await bench.run(["stats", "--store", "sqlite:a.db?sync=off"])).code).toBe(2);
    expect((await bench.run(["enqueue", "note", "{}", "--store", "sqlite:what?.db?sync=full"])).code).toBe(0);
  });

  it("finds nothing wrong with a new store", async () => {
    const bench = createBench();
    await bench.run(["migrate"]);
    const { code, document } = await bench.json(["doctor"]);
    expect(code).toBe(0);
    expect(document.checks.map(({ check, level }: { check: string; level: string }) => [check, level])).toEqual(
      [
        "node",
        "sqlite",
        "config",
        "rights",
        "folder",
        "disk",
        "clock",
        "schema",
        "integrity",
        "durable",
        "workers",
        "work",
        "upkeep",
      ].map((check) => [check, "ok"]),
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
    db.exec("insert into migration values (99, 99, 0); pragma user_version = 99");
    db.close();
    const newer = await bench.run(["doctor"]);
    expect(newer).toMatchObject({ code: 3, out: expect.stringContaining("Update redrive") });
  });

  it("names due work that nobody does, and due types that the config file's jobs do not define", async () => {
    const bench = createBench();
    await bench.run(["enqueue", "ghost", "{}"]);
    await bench.run(["enqueue", "hello", "{}"]);
    const alone = await bench.run(["doctor"]);
    expect(alone.out).toMatch(/warning +work +due for \S+ while no worker is alive: ghost, hello\n +→ run `worker`/);
    expect(alone.out).not.toMatch(/ types /);
    bench.write("jobs.ts", JOBS_TS);
    bench.write("redrive.config.yaml", "jobs: jobs.ts");
    const { code, out } = await bench.run(["doctor"]);
    expect(code).toBe(0);
    expect(out).toMatch(/warning +types +due, and not defined in jobs.ts: ghost\n +→ define them there/);
    bench.write("bad.ts", "export const {");
    bench.write("redrive.config.yaml", "jobs: bad.ts");
    expect(await bench.run(["doctor"])).toMatchObject({
      code: 1,
      out: expect.stringMatching(/problem +jobs +.*bad.ts/),
    });
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
  const commands = [
    "demo",
    "init",
    "enqueue",
    "worker",
    "drain",
    "limits",
    "stats",
    "health",
    "migrate",
    "doctor",
    "completion",
  ];
  const groups = [
    ...["list", "show", "explain", "history", "cancel", "retry", "reschedule"].map((name) => `jobs ${name}`),
    ...["list", "open", "close", "reset"].map((name) => `breakers ${name}`),
    ...["list", "pause", "resume"].map((name) => `queues ${name}`),
    ...["list", "fix"].map((name) => `stuck ${name}`),
  ];
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
    expect(out).toContain("75   worker: replace this process");
    for (const name of [...commands, "jobs", "dlq", "stuck", "breakers", "queues"])
      expect(out).toContain(`\n  ${name} `);
    expect(Math.max(...out.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  it("is shown on stderr with exit 2 where the command is missing", async () => {
    for (const args of [[], ["jobs"], ["dlq"]]) {
      const { code, out, err } = await createBench().run(args);
      expect({ code, out }).toEqual({ code: 2, out: "" });
      expect(err).toContain("Usage:");
    }
  });

  it("names the commands of a group where one is missing or unknown, also in JSON", async () => {
    const bench = createBench();
    const commands = "of dlq: list, show, stats, causes, triage, edit, repair, retry, remove, export";
    const missing = await bench.json(["dlq"]);
    expect(missing).toMatchObject({ code: 2, err: expect.stringContaining(commands) });
    const message = `expected a command ${commands}; got none`;
    expect(missing.document).toEqual({ error: { code: "invalid_argument", message } });
    const unknown = await bench.json(["dlq", "foo"]);
    expect(unknown).toMatchObject({ code: 2, document: { error: { message: expect.stringContaining(commands) } } });
    expect((await bench.run(["jobs", "lst"])).err).toMatch(/Did you mean list\?\); commands of jobs: .*list/);
    expect((await bench.json(["nosuch"])).document.error.message).toContain("commands: demo, init, enqueue");
  });

  it.each([
    [
      "enqueue",
      [/debounce {2}as replace/, /--key-field <name> .*(\n +)?.*payload\s+keeps it/, /`jobs` in the config file/],
    ],
    ["worker", [/default 50/, /Only `drain` and `batch`\s+read MAX_RETRIES/, /within 0\.2s counts\s+once/]],
    ["drain", [/"unserved"/, /MAX_RETRIES \(attempts after the first\)/]],
    ["demo", [/ignores\s+--store\s+and --config/]],
    ["dlq export", [/with --json as one\s+document/]],
  ])("of %s says what people asked about", async (name, texts) => {
    const { out } = await createBench().run([...name.split(" "), "--help"]);
    for (const text of texts) expect(out).toMatch(text);
  });

  it("is the same by word and by flag", async () => {
    const bench = createBench();
    for (const words of [["dlq", "retry"], ["dlq"], ["enqueue"]]) {
      const byFlag = await bench.run([...words, "--help"]);
      expect(await bench.run(["help", ...words])).toEqual(byFlag);
      expect(byFlag.out).toContain(`redrive ${words.join(" ")} [options]`);
    }
  });
});
