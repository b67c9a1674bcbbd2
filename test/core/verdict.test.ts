// Every outcome against every policy: what a finished run deserves.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Backoff, custom, exponential, fixed, immediate, linear, MAX_DELAY_MS } from "../../src/core/backoff.ts";
import { isRetryable } from "../../src/core/classify-rules.ts";
import { FAILURE_CLASSES, USUAL_TERMS } from "../../src/core/job.ts";
import {
  type JudgedJob,
  type Outcome,
  pastDeadline,
  RELEASE_REASONS,
  type RetryPolicy,
  runtimeFailure,
  type Verdict,
  verdict,
  refusedVerdict,
  unreadableVerdict,
  unstartedVerdict,
} from "../../src/core/verdict.ts";
import { failure } from "../support/verdicts.ts";

const NOW = 1_767_225_600_000;
const HOUR = 3_600_000;
const middle = () => 0.5;

function job(overrides: Partial<JudgedJob> = {}): JudgedJob {
  const clean = { attempts: 0, crashes: 0, lastDelayMs: 0, cancelRequested: false, failure: null, generation: 1 };
  return {
    ...clean,
    ...USUAL_TERMS,
    maxAttempts: 3,
    dueAt: NOW,
    ...overrides,
  };
}

const policy = (overrides: Partial<RetryPolicy> = {}): RetryPolicy => ({
  backoff: fixed(5_000),
  keepFinishedMs: 24 * HOUR,
  ...overrides,
});

const failed = (overrides = {}): Outcome => ({ kind: "failed", failure: failure(overrides) });
const stuck = (ranMs = 1.2 * HOUR): Outcome => ({ kind: "stuck", ranMs });
const lost = (started: boolean): Outcome => ({ kind: "lost", started, worker: "w1" });
const judge = (given: JudgedJob, outcome: Outcome, rules = policy()): Verdict =>
  verdict(given, outcome, rules, NOW, middle);

describe("a run that was not let through", () => {
  it.each([
    ["late", "deadline"],
    ["blocked", "breaker"],
  ] as const)("because it was %s dies of its %s and is charged nothing", (kind, reason) => {
    const why = failure();
    expect(judge(job(), { kind, failure: why })).toEqual({
      kind: "dead",
      reason,
      charge: { attempts: 0, crashes: 0 },
      failure: why,
    });
  });
});

describe("a completed run", () => {
  it.each(["1", null])("completes with its result %s", (result) => {
    expect(judge(job(), { kind: "completed", result })).toEqual({ kind: "complete", result });
  });

  it("completes although a cancel was asked for, its deadline passed and its attempts are used up", () => {
    const spent = job({ cancelRequested: true, attempts: 9, crashes: 9, deadlineMs: 1, dueAt: 0 });
    expect(judge(spent, { kind: "completed", result: "1" })).toEqual({ kind: "complete", result: "1" });
  });

  it("leaves nothing where nothing is kept, unless the job has ever failed", () => {
    const rules = policy({ keepFinishedMs: 0 });
    const outcome = { kind: "completed", result: "1" } as const;
    expect(judge(job(), outcome, rules)).toEqual({ kind: "complete", result: "1", keep: false });
    expect(judge(job({ failure: failure() }), outcome, rules)).toEqual({ kind: "complete", result: "1" });
    expect(judge(job({ generation: 2 }), outcome, rules)).toEqual({ kind: "complete", result: "1" });
    expect(judge(job(), outcome, policy({ keepFinishedMs: 1 }))).toEqual({ kind: "complete", result: "1" });
  });
});

describe("a cancel", () => {
  it("ends a run that stopped", () => {
    expect(judge(job(), { kind: "cancelled" })).toEqual({ kind: "cancel" });
  });

  const outcomes: Outcome[] = [
    failed(),
    failed({ class: "permanent" }),
    { kind: "released", reason: "shutdown", delayMs: 0 },
    stuck(),
    lost(true),
    lost(false),
  ];
  it.each(outcomes.map((outcome) => [outcome.kind, outcome] as const))(
    "that was asked for ends a %s run uncharged",
    (_kind, outcome) => {
      expect(judge(job({ cancelRequested: true, attempts: 2, crashes: 2 }), outcome)).toEqual({ kind: "cancel" });
    },
  );
});

describe("a released run", () => {
  it.each(RELEASE_REASONS)("goes back uncharged when the reason is %s", (reason) => {
    const outcome: Outcome = { kind: "released", reason, delayMs: 1_234 };
    expect(judge(job({ attempts: 2, crashes: 2 }), outcome)).toEqual({ kind: "release", reason, delayMs: 1_234 });
  });
});

describe("a failed run", () => {
  const rows = FAILURE_CLASSES.flatMap((each) => [0, 1, 2, 5].map((attempts) => [each, attempts] as const));
  it.each(rows)("of class %s after %i attempts of 3 is charged one attempt", (each, attempts) => {
    const why = failure({ class: each });
    const answer = judge(job({ attempts }), { kind: "failed", failure: why });
    const charge = { attempts: 1, crashes: 0 };
    if (!isRetryable(each)) expect(answer).toEqual({ kind: "dead", reason: "permanent", charge, failure: why });
    else if (attempts >= 2) expect(answer).toEqual({ kind: "dead", reason: "exhausted", charge, failure: why });
    else expect(answer).toEqual({ kind: "retry", delayMs: 5_000, lane: "retry", charge, failure: why });
  });

  it("is retried for every class but permanent, validation and authentication", () => {
    const final = FAILURE_CLASSES.filter((each) => judge(job(), failed({ class: each })).kind === "dead");
    expect(final).toEqual(["permanent", "validation", "authentication"]);
  });

  it("dies at once where one attempt is all there is", () => {
    expect(judge(job({ maxAttempts: 1 }), failed())).toMatchObject({ kind: "dead", reason: "exhausted" });
  });

  it("stays a suspect once a worker died with it", () => {
    expect(judge(job({ crashes: 1 }), failed())).toMatchObject({ kind: "retry", lane: "suspect" });
    expect(judge(job({ crashes: 2 }), failed())).toMatchObject({ kind: "retry", lane: "last" });
  });

  it("waits as long as the other side asked", () => {
    const why = { class: "rate_limited", retryAfterMs: 90_000 } as const;
    expect(judge(job(), failed(why))).toMatchObject({ kind: "retry", delayMs: 90_000 });
  });

  const delays: [name: string, backoff: Backoff, delays: number[]][] = [
    [
      "exponential 2 min × 2",
      exponential({ initial: "2m", multiplier: 2, max: "32m", jitter: "none" }),
      [2, 4, 8, 16, 32, 32].map((min) => min * 60_000),
    ],
    ["linear", linear({ jitter: "none" }), [1_000, 2_500, 4_000, 5_500]],
    ["fixed", fixed("4h"), [4 * HOUR, 4 * HOUR]],
    ["immediate", immediate(), [0, 0, 0]],
    ["custom", custom((attempt) => attempt * 7), [7, 14, 21]],
  ];
  it.each(delays)("waits by its policy: %s", (_name, backoff, expected) => {
    const waits = expected.map((_, attempts) =>
      judge(job({ attempts, maxAttempts: 99 }), failed(), policy({ backoff })),
    );
    expect(waits.map((answer) => (answer.kind === "retry" ? answer.delayMs : answer.kind))).toEqual(expected);
  });

  it("continues the previous delay with decorrelated jitter", () => {
    const rules = policy({ backoff: exponential({ initial: "1s", max: "1h", jitter: "decorrelated" }) });
    const answer = verdict(job({ attempts: 1, lastDelayMs: 10_000 }), failed(), rules, NOW, () => 0.999_999);
    expect(answer).toMatchObject({ kind: "retry", delayMs: 30_000 });
  });
});

describe("a deadline", () => {
  it("kills a job whose next try would come after it", () => {
    const late = job({ deadlineMs: 4_999 });
    expect(judge(late, failed())).toEqual({
      kind: "dead",
      reason: "deadline",
      charge: { attempts: 1, crashes: 0 },
      failure: failure(),
    });
    expect(judge(late, stuck())).toMatchObject({ kind: "dead", reason: "deadline" });
  });

  it("lets the next try come right at it", () => {
    expect(judge(job({ deadlineMs: 5_000 }), failed())).toMatchObject({ kind: "retry" });
  });

  it("counts from the first due time", () => {
    expect(judge(job({ deadlineMs: HOUR, dueAt: NOW - HOUR }), failed())).toMatchObject({ reason: "deadline" });
    expect(judge(job({ deadlineMs: HOUR, dueAt: NOW - HOUR + 5_000 }), failed())).toMatchObject({ kind: "retry" });
  });

  it("does not count the time held", () => {
    const old = job({ deadlineMs: 10_000, dueAt: NOW - HOUR });
    expect(verdict(old, failed(), policy(), NOW, middle, HOUR - 5_000)).toMatchObject({ kind: "retry" });
    expect(verdict(old, failed(), policy(), NOW, middle, HOUR - 5_001)).toMatchObject({ reason: "deadline" });
  });

  it("gives way to the better reason", () => {
    const late = job({ deadlineMs: 1, dueAt: 0, attempts: 2 });
    expect(judge(late, failed())).toMatchObject({ reason: "exhausted" });
    expect(judge(late, failed({ class: "validation" }))).toMatchObject({ reason: "permanent" });
    expect(judge(late, stuck())).toMatchObject({ reason: "stuck" });
  });

  it("has passed only after its last millisecond", () => {
    const given = { deadlineMs: 100, dueAt: NOW };
    expect([99, 100, 101].map((ms) => pastDeadline(given, NOW + ms))).toEqual([false, false, true]);
    expect(pastDeadline(given, NOW + 150, 50)).toBe(false);
    expect(pastDeadline({ ...given, deadlineMs: null }, Number.MAX_SAFE_INTEGER)).toBe(false);
  });
});

describe("a stuck run", () => {
  it("is retried after its own delay, with the words people know", () => {
    const answer = judge(job({ maxAttempts: 5, stuckRetryMs: 4 * HOUR }), stuck());
    expect(answer).toMatchObject({
      kind: "retry",
      delayMs: 4 * HOUR,
      lane: "retry",
      charge: { attempts: 1, crashes: 0 },
    });
    expect(answer).toMatchObject({ failure: { class: "stuck", message: "Run stuck for 1.2h - retry 1/4 scheduled" } });
  });

  it("is retried after the backoff where it has no delay of its own", () => {
    expect(judge(job(), stuck())).toMatchObject({ kind: "retry", delayMs: 5_000 });
  });

  it("dies with its last attempt", () => {
    const answer = judge(job({ maxAttempts: 5, attempts: 4 }), stuck(1.1 * HOUR));
    const message = "Run stuck for 1.1h - permanently failed after 4 attempts";
    expect(answer).toMatchObject({
      kind: "dead",
      reason: "stuck",
      charge: { attempts: 1, crashes: 0 },
      failure: { message },
    });
  });

  it.each([
    [0, 0, "dead", "Run stuck for 1.2h - permanently failed after 0 attempts"],
    [2, 0, "retry", "Run stuck for 1.2h - retry 1/2 scheduled"],
    [2, 1, "retry", "Run stuck for 1.2h - retry 2/2 scheduled"],
    [2, 2, "dead", "Run stuck for 1.2h - permanently failed after 2 attempts"],
    [2, 3, "dead", "Run stuck for 1.2h - permanently failed after 2 attempts"],
    [4, 3, "retry", "Run stuck for 1.2h - retry 4/4 scheduled"],
    [9_999, 3, "retry", "Run stuck for 1.2h - retry 4/4 scheduled"],
    [9_999, 4, "dead", "Run stuck for 1.2h - permanently failed after 4 attempts"],
  ])("with a limit of %i and %i attempts behind it is %s", (stuckLimit, attempts, kind, message) => {
    const answer = judge(job({ maxAttempts: 5, stuckLimit, attempts }), stuck());
    expect(answer).toMatchObject({ kind, failure: { message }, ...(kind === "dead" && { reason: "stuck" }) });
  });

  it("leaves the attempts of other failures as they are, whatever its limit", () => {
    expect(judge(job({ maxAttempts: 5, stuckLimit: 1, attempts: 3 }), failed())).toMatchObject({ kind: "retry" });
  });

  it("says how long, from six minutes on to a tenth of an hour", () => {
    const words = [0, 2 * 60_000, 3 * 60_000, HOUR, 1.25 * HOUR, 100 * HOUR].map((ranMs) => {
      const answer = judge(job(), stuck(ranMs));
      return "failure" in answer ? answer.failure.message.split(" ")[3] : "";
    });
    expect(words).toEqual(["0ms", "2m", "3m", "1.0h", "1.3h", "100.0h"]);
  });
});

describe("a lost run", () => {
  it("of a handler in a process of its own charges nobody", () => {
    const answer = judge(job({ crashes: 2 }), { kind: "lost", started: true, worker: "w1", isOutside: true });
    expect(answer).toEqual({ kind: "release", delayMs: 0, reason: "worker_died" });
  });

  it.each([true, false])("that had started (%s) is charged a crash, and an attempt only if so", (started) => {
    const answer = judge(job(), lost(started));
    const charge = { attempts: started ? 1 : 0, crashes: 1 };
    expect(answer).toMatchObject({ kind: "retry", delayMs: 0, lane: "suspect", charge, failure: { class: "crashed" } });
  });

  it("goes to a lane of its own with its last crash left", () => {
    expect(judge(job({ crashes: 1 }), lost(true))).toMatchObject({ kind: "retry", lane: "last" });
    expect(judge(job({ maxCrashes: 2 }), lost(false))).toMatchObject({ kind: "retry", lane: "last" });
  });

  it("dies of its last crash if it had started", () => {
    const answer = judge(job({ crashes: 2 }), lost(true));
    expect(answer).toMatchObject({ kind: "dead", reason: "crashed", charge: { attempts: 1, crashes: 1 } });
  });

  it("is spared its last crash if it had not started, whatever its budget", () => {
    const spared = { kind: "retry", charge: { attempts: 0, crashes: 0 } };
    expect(judge(job({ crashes: 2 }), lost(false))).toMatchObject({ ...spared, lane: "last" });
    expect(judge(job({ maxCrashes: 1 }), lost(false))).toMatchObject({ ...spared, lane: "first" });
  });

  it("dies of its last attempt if it had started, and not otherwise", () => {
    expect(judge(job({ attempts: 2 }), lost(true))).toMatchObject({ kind: "dead", reason: "exhausted" });
    expect(judge(job({ attempts: 2 }), lost(false))).toMatchObject({ kind: "retry" });
  });

  it("says which worker died, and how often that happened", () => {
    const answer = judge(job({ crashes: 1 }), lost(true));
    expect(answer).toMatchObject({ failure: { message: "Worker w1 died while this job was running - crash 2/3" } });
  });

  it("has one cause whatever the worker", () => {
    const prints = ["w1", "w2"].map((worker) => judge(job(), { kind: "lost", started: true, worker }));
    const [a, b] = prints.map((answer) => (answer.kind === "retry" ? answer.failure.fingerprint : null));
    expect(a).toBe(b);
    expect(a).not.toBe(runtimeFailure("stuck", "RunStuck", "").fingerprint);
  });
});

describe("a job without an outcome of a run", () => {
  it("goes back uncharged where it was claimed and never ran", () => {
    expect(unstartedVerdict()).toEqual({ kind: "release", reason: "not_started", delayMs: 0 });
    expect(unstartedVerdict("breaker")).toEqual({ kind: "release", reason: "breaker", delayMs: 0 });
  });

  it("dies where the store will not take its verdict, for an attempt", () => {
    expect(refusedVerdict("complete", "value too long")).toMatchObject({
      kind: "dead",
      reason: "permanent",
      charge: { attempts: 1, crashes: 0 },
      failure: { name: "VerdictRefused", message: "The store refused the complete of this run: value too long" },
    });
  });

  it("dies uncharged where its row cannot be used", () => {
    const dead = unreadableVerdict("breaks the rules of its table");
    expect(dead).toMatchObject({
      kind: "dead",
      reason: "permanent",
      charge: { attempts: 0, crashes: 0 },
      failure: { name: "UnreadableJob", class: "system", severity: "critical", stack: null },
    });
    expect(dead.failure.message).toBe(
      "The job's row breaks the rules of its table; it was set aside with its payload untouched.",
    );
  });
});

describe("terms of a type that the program which enqueued the job does not define", () => {
  const said = { ...USUAL_TERMS, maxAttempts: 5, maxCrashes: 2 };
  const completed: Outcome = { kind: "completed", result: null };

  it("are written with every verdict that judges a run and keeps its job", () => {
    expect(judge(job({ said }), completed)).toEqual({ kind: "complete", result: null, said });
    expect(judge(job({ said }), failed())).toMatchObject({ kind: "retry", said });
    expect(judge(job({ said, cancelRequested: true }), failed())).toEqual({ kind: "cancel", said });
    expect(judge(job(), failed())).not.toHaveProperty("said");
  });

  it("are not written with a release, nor with a job that goes with its run", () => {
    const released: Outcome = { kind: "released", reason: "snooze", delayMs: 5 };
    expect(judge(job({ said }), released)).not.toHaveProperty("said");
    expect(judge(job({ said }), completed, policy({ keepFinishedMs: 0 }))).not.toHaveProperty("said");
  });
});

describe("any verdict", () => {
  const anyJob = fc
    .record({
      attempts: fc.nat(12),
      crashes: fc.nat(5),
      maxAttempts: fc.integer({ min: 1, max: 10 }),
      maxCrashes: fc.integer({ min: 1, max: 4 }),
      deadlineMs: fc.option(fc.integer({ min: 1, max: 10 ** 9 })),
      stuckRetryMs: fc.option(fc.nat(7 * 24 * HOUR)),
      stuckLimit: fc.option(fc.nat(12)),
      dueAt: fc.integer({ min: 0, max: NOW }),
      lastDelayMs: fc.nat(10 ** 9),
      cancelRequested: fc.boolean(),
      failure: fc.constantFrom(null, failure()),
      generation: fc.integer({ min: 1, max: 3 }),
    })
    .map((each): JudgedJob => ({ ...USUAL_TERMS, ...each }));
  const anyFailure = fc
    .record({ class: fc.constantFrom(...FAILURE_CLASSES), retryAfterMs: fc.nat(10 ** 12) }, { requiredKeys: ["class"] })
    .map(failure);
  const anyOutcome: fc.Arbitrary<Outcome> = fc.oneof(
    anyFailure.map((each) => ({ kind: "failed" as const, failure: each })),
    fc.nat(10 ** 9).map(stuck),
    fc.boolean().map(lost),
    fc.constant({ kind: "released" as const, reason: "snooze" as const, delayMs: 5 }),
  );
  const anyBackoff = fc.constantFrom(
    exponential(),
    linear(),
    fixed("1m"),
    immediate(),
    custom(() => Number.NaN),
  );
  const dice = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

  it("leaves an attempt to whoever is retried, delays within bounds, and never retries past its deadline", () => {
    fc.assert(
      fc.property(anyJob, anyOutcome, anyBackoff, dice, (given, outcome, backoff, die) => {
        const answer = verdict(given, outcome, policy({ backoff }), NOW, () => die);
        if (answer.kind !== "retry") return;
        expect(given.attempts + answer.charge.attempts).toBeLessThan(Math.max(given.maxAttempts, given.attempts + 1));
        expect(given.crashes + answer.charge.crashes < given.maxCrashes || answer.charge.crashes === 0).toBe(true);
        expect(Number.isSafeInteger(answer.delayMs) && answer.delayMs >= 0 && answer.delayMs <= MAX_DELAY_MS).toBe(
          true,
        );
        if (outcome.kind !== "lost") expect(pastDeadline(given, NOW + answer.delayMs)).toBe(false);
      }),
      { numRuns: 1_000 },
    );
  });

  it("is the same for the same arguments and dice, and changes none of them", () => {
    fc.assert(
      fc.property(anyJob, anyOutcome, anyBackoff, dice, (given, outcome, backoff, die) => {
        const before = structuredClone({ given, outcome });
        const answers = [1, 2].map(() =>
          verdict(Object.freeze(given), Object.freeze(outcome), policy({ backoff }), NOW, () => die),
        );
        expect(answers[0]).toStrictEqual(answers[1]);
        expect({ given, outcome }).toStrictEqual(before);
      }),
    );
  });
});
