// Records of redrive runs and counts for tests, with what a test does not name at its simplest.
import type { CountedRun } from "../../../src/core/recovery/judge.ts";
import type { RedriveSums } from "../../../src/core/recovery/outcome.ts";
import { begunRun, type RedriveRun } from "../../../src/core/recovery/run.ts";

/** A run that began at 0, as far as not given otherwise. */
export function aRun(given: Partial<RedriveRun> = {}): RedriveRun {
  const run = begunRun({
    id: "r_1",
    plan: "p_1",
    selection: { through: 100 },
    count: 1_000,
    toSend: 1_000,
    by: "ada",
    why: null,
    startedAt: 0,
    steps: [5, 50],
    rate: 10,
    judgeWithinMs: 60_000,
    tolerate: 0,
    superseded: false,
    patch: null,
    misfits: [],
  });
  return { ...run, ...given };
}

/** Counts of a run; the newest are all, unless given. */
export function counted(given: Partial<RedriveSums> = {}, recent: Partial<RedriveSums> = given): CountedRun {
  return { ...NONE, ...given, recent: { ...NONE, ...recent } };
}

const NONE: RedriveSums = {
  sent: 0,
  good: 0,
  same: 0,
  other: 0,
  recovered: 0,
  dead: 0,
  cancelled: 0,
  gone: 0,
  recalled: 0,
};
