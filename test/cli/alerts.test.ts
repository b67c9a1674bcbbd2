// `redrive alerts` as people and scripts use it, what a drain tells, and the config that is refused.
import { describe, expect, it } from "vitest";
import { type Bench, createBench } from "../support/cli.ts";

const JOBS = `
import { defineJob, permanent } from "redrive";
export const mail = defineJob("mail", { letters: { objective: "1h" }, run: () => permanent("no such address") });
`;

/** A bench whose jobs die, with this config. */
function withJobs(config: string): Bench {
  const bench = createBench();
  bench.write("jobs.ts", JOBS);
  bench.write("redrive.config.yaml", `jobs: jobs.ts\n${config}`);
  return bench;
}

const drain = async (bench: Bench) => {
  await bench.run(["enqueue", "mail", "1"]);
  return bench.run(["drain", "--jobs", "jobs.ts"]);
};

describe("redrive alerts", () => {
  it("tells what a drain saw, once, in the log; lists, mutes and unmutes it", { timeout: 120_000 }, async () => {
    const bench = withJobs("alerts: { rules: { deadLetters: { limit: 0 } } }\n");
    const { code, err } = await drain(bench);
    expect(code).toBe(1);
    expect(err).toContain("alert (deadLetters): 1 dead letters wait");
    expect(err).toContain("alert (newCause): a new cause of failures, with 1 dead letter: string: no such address");
    expect((await bench.run(["drain", "--jobs", "jobs.ts"])).err).not.toContain("alert (");
    const { document } = await bench.json(["alerts", "list"]);
    const { items, ...rest } = document as { readonly items: readonly { readonly rule: string }[] };
    // The list begins with what has lasted longest, and these two began within a moment.
    expect({ items: items.toSorted((a, b) => (a.rule < b.rule ? -1 : 1)), ...rest }).toMatchObject({
      items: [
        { rule: "deadLetters", state: "raised", severity: "warning", value: 1, limit: 0, subject: null, muted: null },
        { rule: "newCause", subject: expect.stringMatching(/^cause:/), raisedAt: expect.stringMatching(/^\d{4}-.*Z$/) },
      ],
      mutes: [],
      sinks: [{ name: "event log", failing: null }, { name: "log" }],
      next: null,
    });
    const mute = ["alerts", "mute", "deadLetters", "--for", "2h", "--why", "known"];
    expect(await bench.run(mute)).toMatchObject({
      code: 0,
      out: expect.stringContaining("Muted deadLetters, until in 2h, by "),
    });
    expect((await bench.run(["alerts", "list"])).out).toMatch(
      /raised +deadLetters .*muted[^]*Muted: deadLetters, .*: known/,
    );
    expect(await bench.json(["alerts", "unmute", "deadLetters"])).toMatchObject({ document: { unmuted: true } });
    expect(await bench.run(["alerts", "unmute", "deadLetters"])).toMatchObject({
      code: 0,
      out: "deadLetters was not muted.\n",
    });
    const { document: events } = await bench.json(["events", "--limit", "50"]);
    const kinds = (events as { items: { kind: string }[] }).items.map(({ kind }) => kind);
    for (const kind of ["alert.raised", "alert.muted", "alert.unmuted"]) expect(kinds).toContain(kind);
  });

  it("says that there are none, and refuses a rule that it does not know", async () => {
    const bench = createBench();
    expect((await bench.run(["alerts", "list"])).code).toBe(3);
    await bench.run(["migrate"]);
    const { out, err } = await bench.run(["alerts", "list"]);
    expect([out, err]).toEqual(["No alert is raised.\n", expect.stringContaining("`alerts: {}`")]);
    expect(await bench.run(["alerts", "mute", "errorate"])).toMatchObject({
      code: 2,
      err: expect.stringContaining('did you mean "errorRate"?'),
    });
    expect(await bench.run(["alerts", "mute", "score", "--for", "1x"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("for: expected a duration"),
    });
    expect(await bench.run(["alerts", "test"])).toMatchObject({ code: 78, err: expect.stringContaining("alerts: {}") });
  });

  it("tests every sink, and exits with 1 where one fails", { timeout: 120_000 }, async () => {
    const bench = createBench();
    await bench.run(["migrate"]);
    const page = JSON.stringify([process.execPath, "-e", "process.exit(1)"]);
    bench.write(
      "redrive.config.yaml",
      `alerts: { sinks: { command: { run: ${page} }, webhook: { url: "https://127.0.0.1:1/s3cret" } } }\n`,
    );
    const { code, out, err } = await bench.run(["alerts", "test"]);
    expect(code).toBe(1);
    expect(out).toContain("log: told\n");
    expect(out).toContain("webhook 127.0.0.1:1: 127.0.0.1 leads to 127.0.0.1, which is not a public address");
    expect(out).toContain(": it exited with 1\n");
    expect(out + err).not.toContain("s3cret");
    expect(err).toContain("This is a test");
  });
});

describe("a config with alerts", () => {
  it.each([
    ["alerts: { rules: { errorate: {} } }", 'did you mean "errorRate"?'],
    [
      "alerts:\n  rules:\n    deadLetters: { limit: -1 }",
      "line 3: alerts.rules.deadLetters.limit: expected a whole number from 0 to 1000000000",
    ],
    ["alerts: { rules: { score: { limit: .nan } } }", "a number from 0 to 1; got NaN"],
    ["alerts: { rules: { score: { severity: grave } } }", "info, warning, error, critical"],
    ["alerts: { sinks: { webhook: { url: 'http://a.example' } } }", "an https URL"],
    ["alerts: { sinks: { mail: {} } }", "log, call, webhook, slack, command"],
    ["alerts: { rule: {} }", 'did you mean "rules"?'],
    ["alerts: 5", "an object with minSuccessRate"],
  ])("is refused with 78: %s", async (config, message) => {
    const bench = createBench();
    bench.write("redrive.config.yaml", `${config}\n`);
    expect(await bench.run(["alerts", "list"])).toMatchObject({ code: 78, err: expect.stringContaining(message) });
  });

  it("that has only limits of a drain has no alerts of the fleet", { timeout: 120_000 }, async () => {
    const bench = withJobs("alerts: { maxDeadLetters: 5 }\n");
    expect((await drain(bench)).err).not.toContain("alert (");
  });
});
