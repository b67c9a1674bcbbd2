// Random verdicts for the model test.
import fc from "fast-check";
import { type DeathReason, FAILURE_CLASSES, USUAL_TERMS } from "../../src/core/job.ts";
import { LANE_KINDS } from "../../src/core/lane.ts";
import type { Verdict } from "../../src/core/verdict.ts";
import { failure } from "../support/verdicts.ts";

/** A wait, mostly none. */
export const anyDelay = fc.constantFrom(0, 0, 0, 0, 1, 1_000, 60_000);

const charge = fc.record({
  attempts: fc.constantFrom(0 as const, 1 as const),
  crashes: fc.constantFrom(0 as const, 1 as const),
});
const bad = fc
  .record({
    class: fc.constantFrom(...FAILURE_CLASSES),
    message: fc.constantFrom("m", "\0\ud800", "😀"),
    fingerprint: fc.constantFrom("f1", "f2", "f3"),
  })
  .map(failure);
/** The reasons of death that are drawn. */
export const reasons: DeathReason[] = ["exhausted", "permanent", "stuck"];

/** Any verdict, those that leave something behind more often. */
const verdict: fc.Arbitrary<Verdict> = fc.oneof(
  fc.record({ kind: fc.constant("complete" as const), result: fc.constantFrom("1", null) }),
  fc.constant({ kind: "complete" as const, result: "1", keep: false as const }),
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("retry" as const),
      delayMs: anyDelay,
      lane: fc.constantFrom(...LANE_KINDS),
      charge,
      failure: bad,
    }),
  },
  fc.record({
    kind: fc.constant("retry" as const),
    delayMs: anyDelay,
    lane: fc.constantFrom(...LANE_KINDS),
    charge,
    failure: bad,
    batchMost: fc.constantFrom(1, 5),
  }),
  fc.record({ kind: fc.constant("release" as const), delayMs: anyDelay, reason: fc.constant("shutdown" as const) }),
  fc.record({
    kind: fc.constant("release" as const),
    delayMs: anyDelay,
    reason: fc.constant("split" as const),
    batchMost: fc.constantFrom(1, 5),
  }),
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("dead" as const),
      reason: fc.constantFrom(...reasons),
      charge,
      failure: bad,
    }),
  },
  fc.record({ kind: fc.constant("cancel" as const) }),
);

const terms = fc.record({
  maxAttempts: fc.constantFrom(2, 4),
  // As every job of the model has it: by how many crashes are left, a job is in one lane or in another.
  maxCrashes: fc.constant(2),
  deadlineMs: fc.constantFrom(null, 60_000),
  stuckMs: fc.constantFrom(null, 1_000),
  stuckRetryMs: fc.constantFrom(null, 5),
  stuckLimit: fc.constantFrom(null, 2),
  keepFinishedMs: fc.constantFrom(0, 1_000, 60_000),
  keepDeadMs: fc.constantFrom(0, 1_000, 60_000),
});

/** The same, now and then with what its run was judged by. */
export const anyVerdict: fc.Arbitrary<Verdict> = fc
  .tuple(verdict, fc.oneof(fc.constant(null), fc.constant(null), terms))
  .map(([each, said]) =>
    said === null || each.kind === "release" ? each : { ...each, said: { ...USUAL_TERMS, ...said } },
  );
