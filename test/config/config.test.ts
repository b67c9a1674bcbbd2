// The config file: found or named, checked as a whole, refused with its field and line.
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createBench, JOBS_TS } from "../support/cli.ts";

describe("a config file", () => {
  it("in YAML says where the store is, what the jobs are and what is the default", async () => {
    const bench = createBench();
    bench.write("jobs.ts", JOBS_TS);
    bench.write(
      "redrive.config.yaml",
      `store: sqlite:./other.db
jobs: ./jobs.ts
defaults:
  maxAttempts: 2
  backoff: { kind: fixed, delay: 5ms }
worker: { concurrency: 3, queues: [default] }
`,
    );
    await bench.run(["enqueue", "stubborn", "{}"]);
    const { code, err } = await bench.run(["drain"]);
    expect(code).toBe(1);
    expect(err).toContain("(attempt 1/2), requeueing for attempt 2 in 5ms");
    expect((await bench.json(["stats", "--store", "sqlite:other.db"])).document.jobs.dead).toBe(1);
  });

  it("in TypeScript and JavaScript does the same", async () => {
    for (const name of ["redrive.config.ts", "redrive.config.mjs"]) {
      const bench = createBench();
      bench.write("jobs.ts", JOBS_TS);
      bench.write(
        name,
        `import { exponential } from "redrive";
export default { jobs: ["jobs.ts"], defaults: { maxRetries: 1, backoff: exponential({ initial: 2, jitter: "none" }) } };`,
      );
      await bench.run(["enqueue", "stubborn", "{}"]);
      const { err } = await bench.run(["drain"]);
      expect(err).toContain("(attempt 1/2), requeueing for attempt 2 in 2ms");
    }
  });

  it("finds every part of the library where none is installed", async () => {
    const bench = createBench();
    bench.write(
      "redrive.config.ts",
      `import { createPostgresStore } from "redrive/postgres";
import { createSqliteStore } from "redrive/sqlite";
import { createTestRedrive } from "redrive/testing";
const all = [createPostgresStore, createSqliteStore, createTestRedrive].every((part) => typeof part === "function");
export default { store: all ? "sqlite:all.db" : "sqlite:some.db" };`,
    );
    expect((await bench.run(["migrate"])).err).toBe("");
    expect(existsSync(join(bench.folder, "all.db"))).toBe(true);
  });

  it("is beaten by the environment, and that by flags", async () => {
    const bench = createBench();
    bench.write("redrive.config.yaml", "store: sqlite:config.db\ndefaults: { maxRetries: 8 }");
    await bench.run(["enqueue", "thing", "{}"]);
    const env = { REDRIVE_STORE: "sqlite:env.db" };
    await bench.run(["enqueue", "thing", "{}"], { env });
    await bench.run(["enqueue", "thing", "{}", "--store", "sqlite:flag.db", "--max-attempts", "7"], { env });
    for (const [name, attempts] of [
      ["config", 9],
      ["env", 9],
      ["flag", 7],
    ]) {
      const { document } = await bench.json(["jobs", "list", "--store", `sqlite:${name}.db`]);
      expect([name, document.items.map((job: { maxAttempts: number }) => job.maxAttempts)]).toEqual([name, [attempts]]);
    }
  });

  it("that is named has its paths beside it", async () => {
    const bench = createBench();
    mkdirSync(join(bench.folder, "conf"));
    bench.write("conf/prod.yaml", "store: sqlite:prod.db");
    await bench.run(["enqueue", "thing", "{}", "--config", "conf/prod.yaml"]);
    expect((await bench.json(["stats", "--store", "sqlite:conf/prod.db"])).document.jobs.queued).toBe(1);
  });

  it.each([
    ["stroe: sqlite:a.db", /yaml line 1: .*did you mean "store"/],
    ["maxRetris: 3", /yaml line 1: .*got "maxRetris"; did you mean "defaults.maxRetries"\?/],
    ["concurrency: 3", /yaml line 1: .*got "concurrency"; did you mean "worker.concurrency"\?/],
    ["colour: blue", /yaml line 1: .*got "colour"; use one of these, or leave it out/],
    ["store: sqlite:a.db\nstore: sqlite:b.db", /line 2: .*unique/],
    ["store: 5", /line 1: store: expected sqlite:PATH or postgres:.*; got 5/],
    ["store: mysql://a:hunter2@b/c", /store: expected sqlite:PATH or postgres:/],
    ["\njobs: 7", /line 2: jobs: expected a file/],
    ["defaults:\n  maxAttempts: 0", /line 2: defaults.maxAttempts: expected a whole number/],
    ["defaults:\n  maxAttempt: 1", /line 2: defaults: .*did you mean "maxAttempts"/],
    [
      "defaults: { backoff: { kind: exponential, initial: soon } }",
      /line 1: defaults.backoff.initial: expected a duration/,
    ],
    [
      "defaults: { backoff: { kind: exponentiel } }",
      /line 1: defaults.backoff.kind: expected one of exponential, linear, fixed, immediate; got "exponentiel"; did you mean "exponential"\?/,
    ],
    [
      "defaults:\n  backoff: { kind: exponential, intial: 2m }",
      /line 2: defaults.backoff: expected an object with initial.*; got "intial"; did you mean "initial"\?/,
    ],
    ["defaults: { backoff: { kind: fixed, delay: soon } }", /defaults.backoff.delay: expected a duration/],
    ["defaults: { preset: recods }", /line 1: defaults.preset: .*did you mean "records"\?/],
    ["defaults: { backoff: { kind: 3 } }", /got 3; for example \{ kind: exponential/],
    ["defaults: { backoff: fast }", /defaults.backoff: expected an object with kind/],
    ["worker:\n  concurrency: 1\n  lease: 1y", /line 3: worker.lease: expected a duration/],
    ["worker: { health: { prot: 1 } }", /did you mean "port"/],
    ["__proto__: { store: x }", /expected no field called __proto__/],
    ["worker: { constructor: 1 }", /line 1: .*expected no field called constructor; got one in worker/],
    ["store: !!js/function 'x'", /tag/],
    ["{ a: [", /line 1/],
    ["[]", /expected an object/],
    ["just text", /expected an object/],
  ])("%j is refused with exit 78", async (text, message) => {
    const bench = createBench();
    bench.write("redrive.config.yaml", text);
    const { code, out, err } = await bench.run(["stats"]);
    expect({ code, out }).toEqual({ code: 78, out: "" });
    expect(err).toMatch(message);
    expect(err).not.toMatch(/\n\s+at |hunter2/);
  });

  it.each([
    ["{ defaults: { maxRetrys: 5 } }", /config\.ts: defaults: .*; got "maxRetrys"; did you mean "maxRetries"\?/],
    ["{ worker: { concurency: 5 } }", /did you mean "concurrency"\?/],
    ["{ stroe: 'sqlite:a.db' }", /did you mean "store"\?/],
    ["{ defaults: { backoff: { kind: 'exponential', intial: 1 } } }", /did you mean "initial"\?/],
  ])("in TypeScript is checked by the same rules: %s", async (text, message) => {
    const bench = createBench();
    bench.write("redrive.config.ts", `export default ${text};`);
    const { code, err } = await bench.run(["stats"]);
    expect({ code, err }).toEqual({ code: 78, err: expect.stringMatching(message) });
  });

  it("is refused where there are two, none of that name, or no default export", async () => {
    const bench = createBench();
    expect(await bench.run(["stats", "--config", "none.yaml"])).toMatchObject({ code: 78 });
    bench.write("redrive.config.mjs", "export const store = 1;");
    expect(await bench.run(["stats"])).toMatchObject({ code: 78, err: expect.stringContaining("default export") });
    bench.write("redrive.config.yml", "");
    const both = await bench.run(["stats"]);
    expect(both).toMatchObject({ code: 78, err: expect.stringContaining("redrive.config.mjs and redrive.config.yml") });
  });

  it("whose jobs cannot be loaded is the config's fault", async () => {
    const bench = createBench();
    bench.write("redrive.config.yaml", "jobs: none.ts");
    expect(await bench.run(["drain"])).toMatchObject({ code: 78, err: expect.stringContaining("none.ts") });
  });
});
