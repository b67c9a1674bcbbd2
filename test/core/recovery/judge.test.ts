// When a step of a redrive run passes, stops the run, or stays undecided.
import { describe, expect, it } from "vitest";
import { judgeStep } from "../../../src/core/recovery/judge.ts";
import type { RedriveSums } from "../../../src/core/recovery/outcome.ts";
import type { RedriveRun } from "../../../src/core/recovery/run.ts";
import { aRun, counted } from "./runs.ts";

type Row = [says: string, run: Partial<RedriveRun>, counts: Partial<RedriveSums>, verdict: string];

const MINUTE = 60_000;

const CANARY: Row[] = [
  ["waits before anything was sent", {}, {}, "wait"],
  ["waits while one has not run", {}, { sent: 5, good: 4 }, "wait"],
  ["waits while one of the step was not sent", {}, { sent: 4, good: 4 }, "wait"],
  ["passes when all have run well", {}, { sent: 5, good: 5 }, "pass"],
  ["stops at the first that fails the same way", {}, { sent: 5, same: 1 }, "stop"],
  ["stops before the others have run", {}, { sent: 5, good: 1, same: 1 }, "stop"],
  ["passes with one of five that failed otherwise", {}, { sent: 5, good: 4, other: 1 }, "pass"],
  ["stops when more than 20 % fail otherwise", {}, { sent: 5, other: 2 }, "stop"],
  ["waits for a replacement of a cancelled one", {}, { sent: 5, good: 4, cancelled: 1 }, "wait"],
  ["passes with the replacement", {}, { sent: 6, good: 5, cancelled: 1 }, "pass"],
  ["waits for a replacement of a deleted one", {}, { sent: 5, good: 4, gone: 1 }, "wait"],
  ["passes without one where no letter is left", { walked: true }, { sent: 5, good: 4, cancelled: 1 }, "pass"],
  ["judges the second step on both", { step: 1 }, { sent: 55, good: 54, same: 1 }, "stop"],
  ["waits in the second step for 55", { step: 1 }, { sent: 5, good: 5 }, "wait"],
  ["passes the second step", { step: 1 }, { sent: 55, good: 55 }, "pass"],
  ["tolerates 2 % of the step", { step: 1, tolerate: 0.02 }, { sent: 55, good: 54, same: 1 }, "pass"],
  ["tolerates no more than that", { step: 1, tolerate: 0.02 }, { sent: 55, good: 53, same: 2 }, "stop"],
  ["tolerates 2 % of five as none", { tolerate: 0.02 }, { sent: 5, good: 4, same: 1 }, "stop"],
  ["counts a failure that recovered as one", {}, { sent: 5, good: 4, same: 1, recovered: 1 }, "stop"],
];

const REST: Row[] = [
  ["waits while letters are left", {}, { sent: 100, good: 100 }, "wait"],
  ["passes when everything was sent and has run", { walked: true }, { sent: 100, good: 100 }, "pass"],
  ["waits for the last one", { walked: true }, { sent: 100, good: 99 }, "wait"],
  ["goes on with four that failed the same way", {}, { sent: 20, good: 16, same: 4 }, "wait"],
  ["stops at five and 10 %", {}, { sent: 50, good: 45, same: 5 }, "stop"],
  ["goes on with five below 10 %", {}, { sent: 100, good: 95, same: 5 }, "wait"],
  ["stops at 20 % of any kind", {}, { sent: 100, good: 80, same: 1, other: 19 }, "stop"],
  ["goes on with 19 % of any kind", {}, { sent: 100, good: 81, other: 19 }, "wait"],
  ["stops although everything was sent", { walked: true }, { sent: 10, good: 5, same: 5 }, "stop"],
  ["tolerates what the operator tolerates", { tolerate: 0.3 }, { sent: 100, good: 75, same: 25 }, "wait"],
  ["stops beyond it", { tolerate: 0.3 }, { sent: 100, good: 69, same: 31 }, "stop"],
];

describe("a canary step", () => {
  it.each(CANARY)("%s", (_, run, counts, verdict) => {
    expect(judgeStep(aRun(run), counted(counts), 0).kind).toBe(verdict);
  });
});

describe("the rest", () => {
  it.each(REST)("%s", (_, run, counts, verdict) => {
    expect(judgeStep(aRun({ step: 2, ...run }), counted(counts), 0).kind).toBe(verdict);
  });

  it("is judged on the newest first runs, not on all", () => {
    const all = { sent: 10_000, good: 9_990, same: 10 };
    expect(judgeStep(aRun({ step: 2 }), counted(all, { good: 90, same: 10 }), 0).kind).toBe("stop");
  });
});

describe("the clock of a step", () => {
  const pending = counted({ sent: 5, good: 3 });

  it.each<[string, Partial<RedriveRun>, number, string]>([
    ["leaves the step undecided when it is over", {}, MINUTE, "undecided"],
    ["waits until then", {}, MINUTE - 1, "wait"],
    ["does not count the time in which the jobs were held", { heldMs: 1_000 }, MINUTE, "wait"],
    ["goes on after it", { heldMs: 1_000 }, MINUTE + 1_000, "undecided"],
    ["stands still while they are held", { heldSince: 10_000 }, 100 * MINUTE, "wait"],
    ["begins with the step", { stepSince: MINUTE }, MINUTE, "wait"],
    ["counts in the rest while its window is full, too", { step: 2 }, MINUTE, "undecided"],
    ["counts in the rest once everything was sent", { step: 2, walked: true }, MINUTE, "undecided"],
  ])("%s", (_, run, now, verdict) => {
    expect(judgeStep(aRun(run), pending, now).kind).toBe(verdict);
  });

  it("is not asked where none is pending: nothing was sent yet", () => {
    expect(judgeStep(aRun(), counted(), 100 * MINUTE).kind).toBe("wait");
  });
});
