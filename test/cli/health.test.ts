// `redrive health` as scripts rely on it: its document, its exit codes, and the config that it refuses.
import { describe, expect, it } from "vitest";
import { type Bench, createBench } from "../support/cli.ts";

const KEEP = `
import { defineJob, permanent } from "redrive";
const keep = { finished: 0, dead: "7d" } as const;
export const mail = defineJob("mail", { keep, run: (n: number) => (n < 2 ? permanent("no such address") : n) });
`;

/** The fields that are fixed, and nothing wrong with their types. */
const shapeOf = ({ status, score, successRate, reasons }: Record<string, unknown>) => ({
  status,
  score,
  successRate,
  reasons,
});

async function health(bench: Bench, ...args: string[]) {
  const { code, document } = await bench.json(["health", ...args]);
  return { code, ...shapeOf(document) };
}

describe("redrive health", () => {
  it("answers 3 without a store, and healthy on an empty one", async () => {
    const bench = createBench();
    expect((await bench.run(["health"])).code).toBe(3);
    await bench.run(["migrate"]);
    expect(await health(bench)).toEqual({ code: 0, status: "healthy", score: 1, successRate: null, reasons: [] });
    expect(await health(bench, "--type", "mail")).toEqual({
      code: 0,
      status: "healthy",
      score: 1,
      successRate: null,
      reasons: [],
    });
  });

  it("says how many jobs wait", async () => {
    const bench = createBench();
    const stdin = `${[...Array(150).keys()].join("\n")}\n`;
    expect(await bench.run(["enqueue", "mail", "-"], { stdin })).toMatchObject({ code: 0 });
    expect((await bench.json(["health"])).document).toMatchObject({ jobs: { queued: 150 } });
    expect((await bench.run(["health"])).out).toContain("waiting 150, running 0");
  });

  it("counts 1,000 successes that are not kept beside 2 deaths", { timeout: 120_000 }, async () => {
    const bench = createBench();
    bench.write("jobs.ts", KEEP);
    const stdin = `${[...Array(1_002).keys()].join("\n")}\n`;
    expect(await bench.run(["enqueue", "mail", "-", "--jobs", "jobs.ts"], { stdin })).toMatchObject({ code: 0 });
    expect((await bench.json(["drain", "--jobs", "jobs.ts"])).document).toMatchObject({ completed: 1_000, dead: 2 });
    const expected = { code: 0, status: "healthy", score: 1, successRate: 1_000 / 1_002, reasons: [] };
    expect(await health(bench)).toEqual(expected);
    expect(await health(bench, "--type", "mail")).toEqual(expected);
    expect(await health(bench, "--type", "other")).toEqual({ ...expected, successRate: null });
  });

  it("exits with 1 where it is unhealthy, with a reason of four fields", { timeout: 120_000 }, async () => {
    const bench = createBench();
    await bench.run(["enqueue", "mail", "1"]);
    expect(await health(bench)).toMatchObject({ code: 0, status: "degraded", score: 0.7 });
    bench.write("redrive.config.yaml", "health: { late: 1s }\n");
    const unhealthy = {
      code: 1,
      status: "unhealthy",
      score: 0.4,
      successRate: null,
      reasons: [
        {
          text: expect.stringMatching(/^no worker is alive and a job has been due for /),
          since: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
          subject: "type:mail",
          help: "redrive worker --jobs FILE",
        },
      ],
    };
    await expect.poll(() => health(bench), { timeout: 60_000 }).toEqual(unhealthy);
    expect((await bench.run(["health"])).code).toBe(1);
    expect(await health(bench, "--type", "mail")).toEqual(unhealthy);
    expect(await health(bench, "--type", "other")).toMatchObject({ code: 0, status: "healthy" });
  });
});

describe("limits that are refused with 78, with the legal names and the range", () => {
  const NAMES = "errorRate, deadLetters, backlog, late, drains";
  const WHOLE = "expected a whole number from 0 to 1000000000";
  const cases: [string, string][] = [
    ["errorRate: .nan", "health.errorRate: expected a number from 0 to 1; got NaN"],
    ["errorRate: -0.1", "health.errorRate: expected a number from 0 to 1; got -0.1"],
    ["errorRate: 1.01", "health.errorRate: expected a number from 0 to 1; got 1.01"],
    ["errorRate: .inf", "health.errorRate: expected a number from 0 to 1; got Infinity"],
    ['errorRate: "0.1"', "health.errorRate: expected a number from 0 to 1; got "],
    ["deadLetters: .nan", `health.deadLetters: ${WHOLE}; got NaN`],
    ["deadLetters: 1.5", `health.deadLetters: ${WHOLE}; got 1.5`],
    ["deadLetters: 1000000001", `health.deadLetters: ${WHOLE}; got 1000000001`],
    ["backlog: -1", `health.backlog: ${WHOLE}; got -1`],
    ["backlog: .nan", `health.backlog: ${WHOLE}; got NaN`],
    ["late: 0s", "health.late: expected a duration"],
    ["late: 31d", "health.late: expected a duration"],
    ["late: -1m", "health.late: expected a duration"],
    ["late: .nan", "health.late: expected a duration"],
    ["drains: { every: 0s }", "health.drains.every: expected a duration"],
    ["drains: {}", "health.drains.every: expected a duration"],
    ["drains: { evry: 5m }", 'health.drains: expected an object with every; got "evry"'],
    ["drains: 5m", "health.drains: expected an object"],
    ["errorrate: 0.1", `health: expected an object with ${NAMES}; got "errorrate"`],
  ];

  it.each(cases)("health: { %s }", async (field, message) => {
    const bench = createBench();
    bench.write("redrive.config.yaml", `health: { ${field} }\n`);
    for (const command of ["health", "metrics"]) {
      const { code, err, out } = await bench.run([command]);
      expect({ code, err, out }).toEqual({ code: 78, err: expect.stringContaining(message), out: "" });
    }
  });

  it("says the range of durations", async () => {
    const bench = createBench();
    bench.write("redrive.config.yaml", "health: { late: 31d }\n");
    expect((await bench.run(["health"])).err).toMatch(/from 1s to 30d/);
  });
});
