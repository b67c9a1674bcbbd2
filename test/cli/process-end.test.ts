// Calls that user code ends, and calls that a signal ends: the caller hears so, in one line without secrets.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Bench, createBench } from "../support/cli.ts";
import { type Running, startCli, until } from "../support/cli-processes.ts";

const SECRET = "postgres://user:hunter2@db/x";

const JOBS = `
import { defineJob } from "redrive";
export const leaver = defineJob("leaver", { run() { process.exit(0); } });
export const sweeper = defineJob("sweeper", { run() { process.removeAllListeners(); process.exit(0); } });
export const stray = defineJob("stray", { async run() {
  void Promise.reject(new Error("no route to ${SECRET}"));
  await new Promise((resolve) => setTimeout(resolve, 60_000));
} });
export const bare = defineJob("bare", { async run() {
  void Promise.reject("just words");
  await new Promise((resolve) => setTimeout(resolve, 60_000));
} });
export const thrower = defineJob("thrower", { async run() {
  setTimeout(() => { throw new Error("no route to ${SECRET}"); }, 1);
  await new Promise((resolve) => setTimeout(resolve, 60_000));
} });
export const chatty = defineJob("chatty", { run() {
  console.log("a line of the handler");
  process.stdout.write("another one\\n");
  return 1;
} });
`;

describe("user code that ends the process", () => {
  it.each([
    ["leaver", "user code ended the process with process.exit(0)"],
    ["sweeper", "user code ended the process with process.exit(0)"],
    ["stray", "a promise was rejected and not handled (Error: no route to postgres://"],
    ["bare", "a promise was rejected and not handled (just words)"],
    ["thrower", "an error was not caught (Error: no route to postgres://"],
  ])("as %s does is told in one line with exit code 5", async (type, said) => {
    const bench = createBench();
    bench.write("jobs.mjs", JOBS);
    await bench.run(["enqueue", type, "{}"]);
    const running = startCli(bench, ["drain", "--jobs", "jobs.mjs", "--json", "--quiet"]);
    expect(await running.ended).toMatchObject({ code: 5 });
    expect(running.text.err).toContain(said);
    expect(running.text.err).not.toContain("hunter2");
    expect(running.text.err.trimEnd().split("\n")).toHaveLength(1);
    expect(JSON.parse(running.text.out)).toMatchObject({ error: { code: "user_code" } });
  });

  it("is shown with its place where the log is asked for it, also without secrets", async () => {
    const bench = createBench();
    bench.write("jobs.mjs", JOBS);
    await bench.run(["enqueue", "stray", "{}"]);
    const running = startCli(bench, ["drain", "--jobs", "jobs.mjs"], { REDRIVE_LOG: "debug" });
    expect(await running.ended).toMatchObject({ code: 5 });
    expect(running.text.err).toContain("jobs.mjs:");
    expect(running.text.err).not.toContain("hunter2");
  });

  it("by an await at the top of its file that never settles does not end in silence", async () => {
    const bench = createBench();
    bench.write("jobs.mjs", `${JOBS}\nawait new Promise(() => undefined);`);
    const running = startCli(bench, ["drain", "--jobs", "jobs.mjs"]);
    expect(await running.ended).toMatchObject({ code: 5 });
    expect(running.text.err).toContain("never settles");
    expect(running.text.err.trimEnd().split("\n")).toHaveLength(1);
  });

  it("does not count where the code listens to such errors itself", async () => {
    const bench = createBench();
    bench.write("jobs.mjs", `${JOBS.replaceAll("60_000", "100")}\nprocess.on("uncaughtException", () => undefined);`);
    await bench.run(["enqueue", "stray", "{}"]);
    const running = startCli(bench, ["drain", "--jobs", "jobs.mjs", "--json", "--quiet"]);
    expect(await running.ended).toMatchObject({ code: 0 });
    expect(JSON.parse(running.text.out)).toMatchObject({ completed: 1 });
  });
});

describe("what user code prints", () => {
  it("goes to stderr where stdout is for JSON or for results", async () => {
    const bench = createBench();
    bench.write("jobs.mjs", JOBS);
    bench.write("redrive.config.mjs", `console.log("a line of the config"); export default {};`);
    bench.write("in.ndjson", '{"id":"a"}\n');
    await bench.run(["enqueue", "chatty", "{}"]);
    const drain = startCli(bench, ["drain", "--jobs", "jobs.mjs", "--json"]);
    expect(await drain.ended).toMatchObject({ code: 0 });
    expect(JSON.parse(drain.text.out)).toMatchObject({ completed: 1 });
    expect(drain.text.err).toMatch(/a line of the config[^]*a line of the handler[^]*another one/);
    const flags = ["--type", "chatty", "--input", "in.ndjson", "--output", "-"];
    const results = startCli(bench, ["drain", "--jobs", "jobs.mjs", ...flags]);
    expect(await results.ended).toMatchObject({ code: 0 });
    expect(results.text.out).toBe('{"id":"a","result":1,"attempts":1}\n');
  });
});

describe("a closed terminal", () => {
  it("stops a worker as SIGTERM does: no job is charged", async () => {
    const bench = createBench();
    bench.write(
      "jobs.mjs",
      `import { defineJob } from "redrive";
      export const nap = defineJob("nap", { async run() {
        console.error("asleep");
        await new Promise((resolve) => setTimeout(resolve, 500));
      } });`,
    );
    await bench.run(["enqueue", "nap", "{}"]);
    const worker = startCli(bench, ["worker", "--jobs", "jobs.mjs"]);
    await worker.says("asleep");
    worker.child.kill("SIGHUP");
    expect(await worker.ended).toMatchObject({ code: 143, signal: null });
    expect(bench.sql("select state, attempts, crashes from job")).toEqual([["completed", 0, 0]]);
  });
});

/** Waits until the process has stored so many jobs. */
function stored(bench: Bench, count: number, { text }: Running): Promise<void> {
  const jobs = (): number => {
    if (!existsSync(join(bench.folder, "redrive.db"))) return 0;
    try {
      return bench.sql("select count(*) from job")[0]?.[0] as number;
    } catch {
      return 0; // Its tables are not there yet.
    }
  };
  return until(
    () => jobs() === count,
    () => text.err,
  );
}

describe("a stream into the queue that is interrupted", () => {
  it.each(["SIGINT", "SIGTERM"] as const)("by %s is told as far as it came, in one document", async (signal) => {
    const bench = createBench();
    const running = startCli(bench, ["enqueue", "mail", "-", "--json"]);
    running.child.stdin?.write('{"n":1}\n{"n":2}\n{"n":3}\n{"n":');
    await stored(bench, 3, running);
    running.child.kill(signal);
    expect(await running.ended).toMatchObject({ code: signal === "SIGINT" ? 130 : 143 });
    const document = JSON.parse(running.text.out) as { ids: string[] };
    expect(document).toMatchObject({ enqueued: 3, duplicates: 0, interrupted: true });
    expect(document.ids).toHaveLength(3);
    expect(bench.sql("select count(*) from job")).toEqual([[3]]);
  });

  it("says so in words", async () => {
    const bench = createBench();
    const running = startCli(bench, ["enqueue", "mail", "-"]);
    running.child.stdin?.write('{"n":1}\n');
    await stored(bench, 1, running);
    running.child.kill("SIGINT");
    expect(await running.ended).toMatchObject({ code: 130 });
    expect(running.text.out).toBe("1 job enqueued\n");
    expect(running.text.err).toContain("interrupted");
  });
});
