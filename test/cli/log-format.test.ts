// Log lines of the command line: their severity, and one JSON object a line where that is asked for.
import { describe, expect, it } from "vitest";
import { createBench } from "../support/cli.ts";

const JOBS = `
import { defineJob, fixed, PermanentError } from "redrive";
export const flaky = defineJob("flaky", {
  backoff: fixed(1),
  run(_input: unknown, { attempt, log }) {
    log.info({ size: 3n, token: "hunter2", time: "noon" }, "at work");
    (log.warn as (text: string) => void)("a text alone");
    if (attempt === 1) throw new Error("postgres://user:hunter2@db/x \\u001b[31m is\\naway");
    return null;
  },
});
export const broken = defineJob("broken", {
  onDead() { throw new Error("hook"); },
  run() { throw new PermanentError("no such file"); },
});
`;
const lines = (text: string): Record<string, unknown>[] =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe("log lines as JSON", () => {
  it.each([
    [["--log", "json"], {}],
    [["--log=json"], { REDRIVE_LOG_FORMAT: "text" }],
    [[], { REDRIVE_LOG_FORMAT: "JSON" }],
  ])("every line is an object in the shape of pino's, with the job it is about (%j %j)", async (flags, env) => {
    const bench = createBench();
    bench.write("jobs.ts", JOBS);
    await bench.run(["enqueue", "flaky", "{}"]);
    await bench.run(["enqueue", "broken", "{}"]);
    const { err } = await bench.run(["drain", "--jobs", "jobs.ts", ...flags], { env, columns: 80 });
    const all = lines(err);
    for (const line of all)
      expect(line).toMatchObject({
        level: expect.any(Number),
        time: expect.any(Number),
        pid: process.pid,
        hostname: expect.any(String),
        msg: expect.any(String),
      });
    const about = all.filter(({ job }) => job !== undefined);
    const texts = ["processing", "at work", "a text alone", "requeueing", "moved to the dead letter", "onDead of"];
    for (const text of texts)
      expect(about.filter(({ msg }) => String(msg).includes(text)).length, text).toBeGreaterThan(0);
    const levelOf = (text: string) => all.find(({ msg }) => String(msg).includes(text))?.level;
    expect([levelOf("requeueing"), levelOf("moved to the dead letter")]).toEqual([40, 50]);
    expect(about.find(({ msg }) => msg === "at work")).toMatchObject({
      type: "flaky",
      size: "3",
      token: "***",
      time_: "noon",
    });
    expect(err).not.toContain("hunter2");
    expect(err).not.toContain("\u001b");
  });

  it("says errors of a call in the same form", async () => {
    const bench = createBench();
    for (const args of [
      ["--log", "json", "stats"],
      ["jobs", "--log", "json", "nonsense"],
    ]) {
      const { code, err } = await bench.run(args);
      const [line, ...others] = lines(err);
      expect(others).toEqual([]);
      expect(line).toMatchObject({ level: 50, exit: code, code: expect.any(String) });
    }
  });

  it("refuses another format: a flag with 2, a variable with 78", async () => {
    const bench = createBench();
    expect(await bench.run(["stats", "--log", "xml"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("--log: expected text, json; got"),
    });
    expect(await bench.run(["stats"], { env: { REDRIVE_LOG_FORMAT: "xml" } })).toMatchObject({
      code: 78,
      err: expect.stringContaining("REDRIVE_LOG_FORMAT: expected text, json; got"),
    });
  });
});
