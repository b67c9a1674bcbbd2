// Schedules on the fake clock of a test.
import { expect, it, onTestFinished } from "vitest";
import { defineJob } from "../../src/index.ts";
import { createTestRedrive } from "../../src/testing/index.ts";

async function open() {
  const ran: string[] = [];
  const report = defineJob("report", { run: (_input, { job }) => void ran.push((job.key ?? "by hand").slice(-24)) });
  const test = await createTestRedrive({ jobs: [report], now: "2027-01-31T12:00:00Z" });
  onTestFinished(() => test.close());
  return { test, ran, report };
}

it("make their jobs as time passes, each at its tick", async () => {
  const { test, ran, report } = await open();
  await test.schedules.set("daily", { cron: "0 8 * * *", timezone: "Europe/Berlin", job: report });
  await test.clock.advance("18h");
  expect(ran).toEqual([]);
  await test.clock.advance("2d");
  expect(ran).toEqual(["2027-02-01T07:00:00.000Z", "2027-02-02T07:00:00.000Z"]);
  expect(await test.schedules.get("daily")).toMatchObject({ fired: 2, skipped: 0, result: "completed" });
});

it("make up for a jump as they were told to, in the next drain", async () => {
  const { test, ran, report } = await open();
  await test.schedules.set("hourly", { every: "1h", job: report, catchUp: { all: 2 } });
  test.clock.set("2027-01-31T16:30:00Z");
  await test.drain();
  expect(ran).toEqual(["2027-01-31T15:00:00.000Z", "2027-01-31T16:00:00.000Z"]);
});

it("do not keep a drain until idle from its end, nor fire while they are paused", async () => {
  const { test, ran, report } = await open();
  await test.schedules.set("hourly", { every: "1h", job: report });
  expect(await test.drain({ until: "idle" })).toMatchObject({ completed: 0 });
  await test.schedules.run("hourly");
  expect(await test.drain({ until: "idle" })).toMatchObject({ completed: 1 });
  await test.schedules.pause("hourly");
  await test.clock.advance("5h");
  expect(ran).toEqual(["by hand"]);
});
