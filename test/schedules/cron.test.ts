// The ticks of schedules: what croner makes of expressions and zones, and what is refused.
import { describe, expect, it } from "vitest";
import { ticksOf } from "../../src/schedules/cron.ts";

const START = Date.parse("2027-01-01T00:00:00Z");
const cron = (expression: string, timezone = "UTC") => ticksOf({ cron: expression, timezone, everyMs: null }, 0);

describe("a cron expression", () => {
  it.each([
    ["*/5 * * * *", "UTC", "2027-01-01T00:05:00.000Z"],
    ["*/10 * * * * *", "UTC", "2027-01-01T00:00:10.000Z"],
    ["0 30 8 * * MON-FRI", "Europe/Berlin", "2027-01-01T07:30:00.000Z"],
    ["@daily", "America/New_York", "2027-01-01T05:00:00.000Z"],
    ["0 0 L * *", "UTC", "2027-01-31T00:00:00.000Z"],
  ])("%s in %s ticks next at %s", async (expression, zone, expected) => {
    const next = await cron(expression, zone);
    expect(new Date(next(START) ?? 0).toISOString()).toBe(expected);
  });

  it("gives the same next tick for every instant before it, also where clocks change", async () => {
    for (const zone of ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
      for (const day of ["2027-03-14", "2027-03-28", "2027-04-04", "2027-10-03", "2027-10-31", "2027-11-07"])
        for (const expression of ["30 2 * * *", "30 1-4 * * *", "*/20 * * * *"]) {
          const next = await cron(expression, zone);
          const from = Date.parse(`${day}T00:00:00Z`) - 12 * 3_600_000;
          let upcoming = next(from) as number;
          for (let at = from; at < from + 24 * 3_600_000; at += 1_234_567) {
            while (at >= upcoming) upcoming = next(upcoming) as number;
            expect(next(at)).toBe(upcoming);
          }
        }
  });

  it.each([
    ["", /expected a cron expression of 5 fields/],
    ["* * *", /expected a cron expression of 5 fields/],
    ["61 * * * *", /got "61 \* \* \* \*"; correct it \(Invalid value for minute: 61\)/],
    ["? * * * *", /write one of these/],
    ["2027-01-01T00:00:00Z", /write one of these/],
    ["0 0 0 1 1 * 2030", /write one of these/],
    ["@reboot", /correct it/],
    ["0 0 30 2 *", /expected an expression that ticks at some time; got "0 0 30 2 \*"; choose a day that exists/],
  ])("is refused: %j", async (expression, message) => {
    await expect(cron(expression)).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringMatching(message),
    });
  });

  it.each(["Mars/Base", "", "+02:00", "UTC+2"])("is refused in the zone %j", async (zone) => {
    await expect(cron("* * * * *", zone)).rejects.toMatchObject({
      message: expect.stringMatching(/^timezone: expected the IANA name/),
    });
  });
});

describe("an interval", () => {
  it("is counted from its anchor", async () => {
    const next = await ticksOf({ cron: null, timezone: null, everyMs: 250 }, 1_000);
    expect([0, 999, 1_000, 1_249, 1_250, 9_999].map(next)).toEqual([250, 1_000, 1_250, 1_250, 1_500, 10_000]);
  });
});
