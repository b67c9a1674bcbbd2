// `schedules` on the command line, and what `health` and `doctor` say of upkeep.
import { describe, expect, inject, it } from "vitest";
import { type Bench, createBench } from "../support/cli.ts";
import { testSchema } from "../support/postgres-queue.ts";

const ISO = /^\d{4}-\d\d-\d\dT.*Z$/;
const JOBS = `
import { defineJob } from "redrive";
export const report = defineJob("report", { run: () => "done" });
`;

function withJobs(): Bench {
  const bench = createBench();
  bench.write("jobs.mjs", JOBS);
  return bench;
}

describe.each<[string, () => readonly string[]]>([
  ["sqlite", () => []],
  ["postgres 18", () => ["--store", testSchema(inject("postgres18")).url]],
])("schedules on %s", (_name, place) => {
  it("are added, listed, paused, resumed, run and removed", async () => {
    const bench = withJobs();
    const store = place();
    const call = (...args: string[]) => bench.run(["schedules", ...args, ...store]);
    const added = await call(
      "add",
      "nightly",
      "report",
      '{"full":true}',
      "--cron",
      "0 2 * * *",
      "--timezone",
      "Asia/Tokyo",
    );
    expect(added).toMatchObject({ code: 0, err: "" });
    expect(added.out).toMatch(/^The schedule nightly runs next in [\d.]+h?m?, at \d{4}-\d\d-\d\d 02:00:00 GMT\+9\.\n$/);
    await call("add", "poll", "report", "--every", "1h", "--overlap", "skip", "--catch-up", "5", "--priority", "3");
    const { document } = await bench.json(["schedules", "list", ...store]);
    expect(document).toEqual({ items: [expect.any(Object), expect.any(Object)], next: null });
    expect(document.items[0]).toMatchObject({
      kind: "schedule",
      name: "nightly",
      cron: "0 2 * * *",
      timezone: "Asia/Tokyo",
      job: "report",
      input: { full: true },
      paused: false,
      lastAt: null,
      nextAt: expect.stringMatching(ISO),
    });
    expect(document.items[1]).toMatchObject({
      name: "poll",
      everyMs: 3_600_000,
      overlap: "skip",
      catchUp: { all: 5 },
      options: { priority: 3 },
    });
    expect((await call("pause", "poll")).out).toBe("The schedule poll is paused until it is resumed.\n");
    expect((await call("list")).out).toMatch(/^poll +every 1h +paused/m);
    expect((await call("resume", "poll")).out).toMatch(/^The schedule poll runs next in (?:1h|59\.\dm), at /);
    const { document: ran } = await bench.json(["schedules", "run", "poll", ...store]);
    const { document: job } = await bench.json(["jobs", "show", ran.id, ...store]);
    expect(job).toMatchObject({ type: "report", state: "queued", priority: 3 });
    expect((await bench.json(["schedules", "list", ...store])).document.items[1]).toMatchObject({
      lastJob: ran.id,
      result: "queued",
      fired: 0,
    });
    expect((await call("remove", "poll")).out).toBe("The schedule poll is removed.\n");
    expect(await call("remove", "nightl")).toMatchObject({
      code: 1,
      out: 'There was no schedule nightl (did you mean "nightly"?).\n',
    });
  });

  it("fire in a drain, stand beside upkeep, and are missed when nobody works", async () => {
    const bench = withJobs();
    const store = place();
    await bench.run(["schedules", "add", "soon", "report", "--every", "1s", ...store]);
    const health = await bench.run(["health", ...store]);
    expect(health.out).toContain("no worker runs upkeep, which is needed for a schedule");
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    const { document } = await bench.json(["drain", "--jobs", "jobs.mjs", "--grace", "0s", ...store]);
    expect(document.completed).toBeGreaterThanOrEqual(1);
    // It may have ticked again as the drain ended; when no more ticks come, a drain leaves none of its jobs.
    await bench.run(["schedules", "pause", "soon", ...store]);
    await bench.run(["drain", "--jobs", "jobs.mjs", "--grace", "0s", ...store]);
    const { document: list } = await bench.json(["schedules", "list", ...store]);
    expect(list.items.find(({ name }: { name: string }) => name === "soon")).toMatchObject({
      result: "completed",
      lastMs: expect.any(Number),
      lastAt: expect.stringMatching(ISO),
    });
    const upkeep = list.items.filter(({ kind }: { kind: string }) => kind === "upkeep");
    expect(upkeep.map(({ name }: { name: string }) => name)).toEqual(
      expect.arrayContaining(["retention", "schedules"]),
    );
    expect(upkeep.find(({ name }: { name: string }) => name === "schedules")).toMatchObject({
      result: "ok",
      nextAt: null,
      lastMs: expect.any(Number),
    });
    await bench.run(["schedules", "resume", "soon", ...store]);
    const doctor = await bench.run(["doctor", ...store]);
    expect(doctor.out).toMatch(/^warning +upkeep +no worker runs upkeep, which is needed for a schedule/m);
    expect(doctor.out).toContain("start a worker: each of them runs upkeep");
  });
});

describe("what schedules refuse", () => {
  it.each<[string[], RegExp]>([
    [["add", "a", "report"], /^error: times: expected --cron EXPRESSION or --every DURATION; got "neither"/],
    [["add", "a", "report", "--every", "1s", "--cron", "* * * * *"], /got "both"; give one of them/],
    [
      ["add", "a", "report", "--cron", "61 * * * *"],
      /^error: cron: expected a cron expression .*Invalid value for minute: 61/,
    ],
    [["add", "a", "report", "--cron", "0 0 31 2 *"], /an expression that ticks at some time/],
    [
      ["add", "a", "report", "--cron", "* * * * *", "--timezone", "Mars/Base"],
      /^error: timezone: expected the IANA name/,
    ],
    [["add", "a", "report", "--every", "1s", "--timezone", "UTC"], /leave it out for an interval/],
    [["add", "a", "report", "--every", "10ms"], /^error: every: expected a duration/],
    [["add", "a", "report", "--every", "1s", "--catch-up", "some"], /^error: catchUp: expected "none", "one"/],
    [["add", "a", "report", "--every", "1s", "--catch-up", "0"], /whole number from 1 to 1000; got 0/],
    [["add", "a", "report", "--every", "1s", "--overlap", "both"], /one of queue, skip, replace/],
    [["add", "a", "report", "{", "--every", "1s"], /^error: payload: expected JSON/],
    [["add", "a b", "report", "--every", "1s"], /^error: schedule: expected 1 to 128 letters/],
    [["add", "a", "report", "--every", "1s", "--priority", "10"], /whole number from 0 to 9; got 10/],
    [["add", "a", "report", JSON.stringify("x".repeat(70_000)), "--every", "1s"], /at most 65536 bytes/],
  ])("%j", async (args, message) => {
    const bench = createBench();
    const { code, out, err } = await bench.run(["schedules", ...args]);
    expect([code, out]).toEqual([2, ""]);
    expect(err).toMatch(message);
    expect(err).not.toContain("\n    at ");
    // Nothing was made.
    expect((await bench.run(["schedules", "list"])).code).toBe(3);
  });

  it("names that are not there", async () => {
    const bench = createBench();
    await bench.run(["schedules", "add", "nightly", "report", "--every", "1h"]);
    for (const verb of ["pause", "resume", "run"])
      expect((await bench.run(["schedules", verb, "nightli"])).err).toBe(
        'error: There is no schedule "nightli"; did you mean "nightly"?\n',
      );
  });
});
