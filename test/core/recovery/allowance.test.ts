// How many letters may be sent at a time: never more than the rate in any second, of sends and of due times.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { allowance, rhythmOf, CHUNK, spreadMs, windowOf } from "../../../src/core/recovery/allowance.ts";
import { aRun, counted } from "./runs.ts";

describe("a beat", () => {
  it.each([
    [0.5, 1, 2_000],
    [1, 1, 1_000],
    [20, 20, 1_000],
    [200, 200, 1_000],
    [300, 150, 500],
    [1_200, 200, 167],
    [10_000, 200, 20],
  ])("of %d a second sends at most %d every %d ms", (rate, most, everyMs) => {
    expect(rhythmOf(rate)).toEqual({ most, everyMs });
  });

  it("has no second with more sends or due times than the rate, however late the driver is", () => {
    const rates = fc.oneof(fc.integer({ min: 1, max: 10_000 }), fc.double({ min: 0.01, max: 5, noNaN: true }));
    const lates = fc.array(fc.integer({ min: 0, max: 700 }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(rates, lates, (rate, late) => {
        const { most, everyMs } = rhythmOf(rate);
        const sends: number[] = [];
        const dues: number[] = [];
        for (let [now, beat] = [0, 0]; beat < 120; beat++) {
          const at = now + (late[beat % late.length] as number);
          for (let place = 0; place < most; place++) {
            sends.push(at);
            dues.push(at + spreadMs(rate, place));
          }
          now = at + everyMs;
        }
        expect(most).toBeLessThanOrEqual(CHUNK);
        for (const times of [sends, dues]) expect(mostInASecond(times)).toBeLessThanOrEqual(Math.ceil(rate));
      }),
      { numRuns: 60 },
    );
  });
});

function mostInASecond(times: readonly number[]): number {
  let [most, first] = [0, 0];
  for (let last = 0; last < times.length; last++) {
    while ((times[last] as number) - (times[first] as number) >= 1_000) first++;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

describe("the allowance", () => {
  it.each([
    ["is a beat", {}, {}, 0, 10],
    ["is nothing before the next beat", { nextAt: 1 }, {}, 0, 0],
    ["is nothing while the window is full", {}, { sent: 100 }, 0, 0],
    ["is what is left of the window", {}, { sent: 97, good: 2, cancelled: 1 }, 0, 6],
    [
      "is no more than the limit leaves",
      { selection: { through: 1, limit: 12 }, toSend: 12 },
      { sent: 9, good: 9 },
      0,
      3,
    ],
    ["is nothing beyond the limit", { selection: { through: 1, limit: 12 }, toSend: 12 }, { sent: 13, good: 13 }, 0, 0],
  ])("%s", (_, run, counts, now, n) => {
    expect(allowance(aRun(run), counted(counts), now)).toBe(n);
  });

  it("keeps ten seconds of the rate on their way, from 10 to 1,000", () => {
    expect([0.1, 1, 20, 500].map(windowOf)).toEqual([10, 10, 200, 1_000]);
  });
});
