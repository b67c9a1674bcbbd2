// Policies: the presets table of the mission row by row, the layers and who said what, and what is refused.
import { describe, expect, it } from "vitest";
import { type Backoff, delayBefore, exponential, fixed, immediate } from "../../src/core/backoff.ts";
import { type Policy, type PolicyOptions, PRESETS, type PresetName, resolvePolicy } from "../../src/core/policy.ts";
import { failure } from "../support/verdicts.ts";

const SECOND = 1_000;
const MINUTE = 60_000;
const HOUR = 3_600_000;
const DAY = 86_400_000;
const ALMOST_ONE = 1 - 2 ** -53;

/** The delays before the retries of a policy, with dice that always show the same. */
function series({ backoff, maxAttempts }: { backoff: Backoff; maxAttempts: number }, random: number): number[] {
  const delays: number[] = [];
  for (let attempt = 1; attempt < maxAttempts; attempt++) {
    const previousDelayMs = delays.at(-1) ?? 0;
    delays.push(delayBefore(backoff, { attempt, failure: failure(), previousDelayMs, random: () => random }));
  }
  return delays;
}

const policyOf = (preset: PresetName): Policy => resolvePolicy({ type: { preset } }).policy;
const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);
const bad = (value: unknown): PolicyOptions => value as PolicyOptions;

/** Attempts, delays in seconds with the dice at their lowest and at their highest, and what else the row says. */
type Row = readonly [
  preset: PresetName,
  attempts: number,
  least: readonly number[],
  most: readonly number[],
  other: Partial<Policy>,
];

const RECORDS = [120, 240, 480, 960, 1920];
const TABLE: readonly Row[] = [
  ["default", 10, times(9, 0), [1, 3, 9, 27, 81, 243, 729, 2187, 3600], {}],
  ["handler", 6, times(5, 0.1), [1, 3, 9, 27, 60], { deadlineMs: 300 * SECOND }],
  ["worker", 3, [5, 5], [5, 5], { keepDeadMs: 30 * DAY }],
  ["runs", 5, times(4, 14_400), times(4, 14_400), { stuckMs: HOUR, stuckRetryMs: 4 * HOUR }],
  ["records", 6, RECORDS, RECORDS, {}],
  ["batch", 4, times(3, 0), times(3, 0), {}],
];

describe("presets", () => {
  it.each(TABLE)("%s is as the table says", (preset, attempts, least, most, other) => {
    const policy = policyOf(preset);
    expect(series(policy, 0)).toEqual(least.map((seconds) => seconds * SECOND));
    expect(series(policy, ALMOST_ONE)).toEqual(most.map((seconds) => seconds * SECOND));
    expect(policy).toEqual({
      maxAttempts: attempts,
      maxCrashes: 3,
      backoff: policy.backoff,
      deadlineMs: null,
      timeoutMs: null,
      stuckMs: null,
      stuckRetryMs: null,
      stuckLimit: null,
      keepFinishedMs: DAY,
      keepDeadMs: 7 * DAY,
      ...other,
    });
  });

  it("nothing said means the first row", () => {
    expect(resolvePolicy({}).policy).toEqual(PRESETS.default);
    expect(resolvePolicy({ library: {}, type: {}, job: {} }).policy).toEqual(PRESETS.default);
  });

  it("there are no others", () => {
    expect(Object.keys(PRESETS)).toEqual(TABLE.map(([preset]) => preset));
  });

  it("delays beyond the table stay at their cap", () => {
    expect(series({ ...policyOf("records"), maxAttempts: 50 }, 0.5).at(-1)).toBe(32 * MINUTE);
    expect(series({ ...policyOf("handler"), maxAttempts: 50 }, ALMOST_ONE).at(-1)).toBe(MINUTE);
    expect(series({ ...policyOf("default"), maxAttempts: 50 }, ALMOST_ONE).at(-1)).toBe(HOUR);
  });
});

describe("layers", () => {
  it("job wins over type, type over library, library over the default, field by field", () => {
    const { policy, origins } = resolvePolicy({
      library: { maxAttempts: 7, timeout: "10s", deadline: "1h" },
      type: { maxAttempts: 8, timeout: "20s", backoff: fixed("2s") },
      job: { maxAttempts: 9 },
    });
    expect(policy).toEqual({
      ...PRESETS.default,
      maxAttempts: 9,
      timeoutMs: 20 * SECOND,
      backoff: fixed("2s"),
      deadlineMs: HOUR,
    });
    expect(origins).toEqual({
      maxAttempts: "job",
      maxCrashes: "default",
      backoff: "type",
      deadlineMs: "library",
      timeoutMs: "type",
      stuckMs: "default",
      stuckRetryMs: "default",
      stuckLimit: "default",
      keepFinishedMs: "default",
      keepDeadMs: "default",
    });
  });

  it("a preset is the word of its layer, under what the layer says itself", () => {
    const { policy, origins } = resolvePolicy({
      library: { maxAttempts: 20 },
      type: { preset: "worker", keep: { dead: "1d" } },
    });
    expect(policy).toEqual({ ...PRESETS.worker, keepDeadMs: DAY });
    expect(new Set(Object.values(origins))).toEqual(new Set(["type"]));
  });

  it("null takes away what a lower layer said", () => {
    const library: PolicyOptions = {
      deadline: "1h",
      timeout: "1m",
      stuck: { after: "1h", retryAfter: "4h", limit: 2 },
    };
    const { policy, origins } = resolvePolicy({ library, job: { deadline: null, timeout: null, stuck: null } });
    expect(policy).toEqual(PRESETS.default);
    expect(origins).toMatchObject({ deadlineMs: "job", timeoutMs: "job", stuckMs: "job", stuckRetryMs: "job" });
    expect(origins.stuckLimit).toBe("job");
  });

  it("whoever says when a run is stuck says what becomes of it as well", () => {
    const { policy } = resolvePolicy({
      library: { stuck: { after: "1h", retryAfter: "4h", limit: 2 } },
      type: { stuck: { after: "2h" } },
    });
    expect(policy).toMatchObject({ stuckMs: 2 * HOUR, stuckRetryMs: null, stuckLimit: null });
    expect(resolvePolicy({ type: { stuck: { after: 1, limit: 0 } } }).policy.stuckLimit).toBe(0);
  });

  it("undefined says nothing", () => {
    const { policy, origins } = resolvePolicy({ type: { maxAttempts: 4 }, job: bad({ maxAttempts: undefined }) });
    expect([policy.maxAttempts, origins.maxAttempts]).toEqual([4, "type"]);
  });

  it("one half of what is kept leaves the other as it was", () => {
    const { policy, origins } = resolvePolicy({ library: { keep: { dead: "3d" } }, type: { keep: { finished: 0 } } });
    expect([policy.keepDeadMs, policy.keepFinishedMs]).toEqual([3 * DAY, 0]);
    expect([origins.keepDeadMs, origins.keepFinishedMs]).toEqual(["library", "type"]);
  });

  it("a function is a backoff", () => {
    const { policy } = resolvePolicy({ type: { backoff: (attempt) => attempt * 7, maxAttempts: 4 } });
    expect(series(policy, 0.5)).toEqual([7, 14, 21]);
  });

  it("the answer cannot be changed, and neither are the options", () => {
    const type = Object.freeze({ maxRetries: 2, backoff: immediate() });
    const resolved = resolvePolicy(Object.freeze({ type }));
    expect([resolved, resolved.policy, resolved.origins].every(Object.isFrozen)).toBe(true);
    expect(Object.isFrozen(resolved.policy.backoff)).toBe(true);
  });
});

describe("maxRetries", () => {
  it.each([
    [0, 1],
    [2, 3],
    [5, 6],
    [9_999, 10_000],
  ])("%i means maxAttempts %i", (maxRetries, maxAttempts) => {
    expect(resolvePolicy({ type: { maxRetries } }).policy.maxAttempts).toBe(maxAttempts);
  });

  it("that agrees with maxAttempts is accepted", () => {
    expect(resolvePolicy({ job: { maxRetries: 2, maxAttempts: 3 } }).policy.maxAttempts).toBe(3);
  });

  it("that contradicts maxAttempts is refused with both numbers", () => {
    const message =
      "job.maxAttempts: expected 3, because maxRetries is 2; got 2; maxAttempts counts the first run too; give one of the two";
    expect(() => resolvePolicy({ job: { maxRetries: 2, maxAttempts: 2 } })).toThrow(
      expect.objectContaining({ code: "invalid_argument", message }),
    );
  });

  it("of one layer replaces maxAttempts of another", () => {
    expect(resolvePolicy({ type: { maxAttempts: 3 }, job: { maxRetries: 7 } }).policy.maxAttempts).toBe(8);
  });
});

describe("refused", () => {
  it.each([
    [{ maxAttempt: 3 }, "maxAttempts"],
    [{ maxretries: 3 }, "maxRetries"],
    [{ retries: 3 }, "maxRetries"],
    [{ time_out: "1s" }, "timeout"],
    [{ backof: immediate() }, "backoff"],
    [{ dead_line: "1h" }, "deadline"],
    [{ keeps: {} }, "keep"],
  ])("%j, with the nearest key", (options, nearest) => {
    expect(() => resolvePolicy({ type: bad(options) })).toThrow(
      expect.objectContaining({
        code: "invalid_argument",
        message: expect.stringContaining(`did you mean "${nearest}"?`),
      }),
    );
  });

  it.each([
    ["type.stuck", { stuck: { after: "1h", retry_after: "4h" } }, "retryAfter"],
    ["type.keep", { keep: { death: "1h" } }, "dead"],
  ])("an unknown key of %s, with the nearest", (path, options, nearest) => {
    expect(() => resolvePolicy({ type: bad(options) })).toThrow(
      expect.objectContaining({ message: expect.stringMatching(new RegExp(`^${path}: .*did you mean "${nearest}"`)) }),
    );
  });

  it.each(["__proto__", "constructor", "prototype", "toString"])("%s as a key or a preset", (name) => {
    const options = JSON.parse(`{${JSON.stringify(name)}: 1}`) as PolicyOptions;
    expect(() => resolvePolicy({ job: options })).toThrow(expect.objectContaining({ code: "invalid_argument" }));
    expect(() => resolvePolicy({ job: bad({ preset: name }) })).toThrow(
      /job\.preset: expected default, handler, worker/,
    );
  });

  const whole = [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 10_001, "3", null, true, 3n, {}];
  const spans = [
    -1,
    0.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    "",
    "5",
    "5 s",
    "-5s",
    "soon",
    "1s1m",
    true,
    {},
    [],
    1n,
  ];
  const cases: [path: string, options: unknown][] = [
    ...whole.map((value): [string, unknown] => ["maxAttempts", { maxAttempts: value }]),
    ...[-1, 0.5, 10_000, Number.NaN, "3", null].map((value): [string, unknown] => [
      "maxRetries",
      { maxRetries: value },
    ]),
    ...[0, -1, 1.5, 1_001, "3", null].map((value): [string, unknown] => ["maxCrashes", { maxCrashes: value }]),
    ...[0, ...spans].map((value): [string, unknown] => ["deadline", { deadline: value }]),
    ...[0, ...spans].map((value): [string, unknown] => ["timeout", { timeout: value }]),
    ...[0, undefined, null, ...spans].map((after): [string, unknown] => ["stuck.after", { stuck: { after } }]),
    ...["8d", ...spans].map((retryAfter): [string, unknown] => [
      "stuck.retryAfter",
      { stuck: { after: 1, retryAfter } },
    ]),
    ...[-1, 0.5, 10_000, Number.NaN, "3", null].map((limit): [string, unknown] => [
      "stuck.limit",
      { stuck: { after: 1, limit } },
    ]),
    ...[null, ...spans].map((finished): [string, unknown] => ["keep.finished", { keep: { finished } }]),
    ...[null, ...spans].map((dead): [string, unknown] => ["keep.dead", { keep: { dead } }]),
    ...[1, "1h", []].map((stuck): [string, unknown] => ["stuck", { stuck }]),
    ...[1, null, []].map((keep): [string, unknown] => ["keep", { keep }]),
    ...[1, "exponential", null, {}, [], { kind: "quadratic" }].map((backoff): [string, unknown] => [
      "backoff",
      { backoff },
    ]),
    ...["fast", "", 1, null, "DEFAULT"].map((preset): [string, unknown] => ["preset", { preset }]),
  ];
  it.each(cases)("a bad %s: %o", (path, options) => {
    const start = new RegExp(`^job\\.${path.replace(".", "\\.")}: expected .*; got .*; .+`);
    expect(() => resolvePolicy({ job: bad(options) })).toThrow(
      expect.objectContaining({ code: "invalid_argument", message: expect.stringMatching(start) }),
    );
  });

  it.each(["text", 1, [], true])("options that are no object: %j", (options) => {
    expect(() => resolvePolicy({ type: bad(options) })).toThrow(/^type: expected an object with preset, maxAttempts/);
  });

  it("a backoff whose numbers are out of range", () => {
    const damaged = { ...exponential(), initialMs: -1 } as Backoff;
    expect(() => resolvePolicy({ type: { backoff: damaged } })).toThrow(
      expect.objectContaining({ code: "invalid_argument" }),
    );
  });
});
