// What may be enqueued: every bound from both sides, and messages that say what to do.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isRedriveError } from "../../src/core/errors.ts";
import { byteLength, checkNewJob, JOB_BOUNDS, type NewJob, tooLarge } from "../../src/core/new-job.ts";
import { newJob } from "../support/new-job.ts";

const LONGEST = JOB_BOUNDS.delayMs;
const NOT_INTEGERS: readonly unknown[] = [
  0.5,
  Number.NaN,
  Infinity,
  -Infinity,
  "5",
  null,
  undefined,
  true,
  5n,
  [5],
  {},
];
const NOT_NAMES: readonly unknown[] = [
  "",
  " ",
  "a b",
  "a/b",
  "ä",
  "a\n",
  "\0",
  "\ud800",
  "x".repeat(129),
  5,
  undefined,
  {},
];
const NOT_TEXTS: readonly unknown[] = ["", "\0", "a\0", "\ud800", "x\udc00", "x".repeat(256), "é".repeat(128), 5, {}];

const refusal = (job: NewJob) => {
  try {
    checkNewJob(job);
    return null;
  } catch (error) {
    return error;
  }
};

const RANGES: readonly [field: keyof NewJob, least: number, most: number, nullable: boolean][] = [
  ["priority", 0, 9, false],
  ["maxAttempts", 1, 10_000, false],
  ["maxCrashes", 1, 1_000, false],
  ["version", 1, 1_000_000, false],
  ["deadlineMs", 1, LONGEST, true],
  ["stuckMs", 1, LONGEST, true],
  ["delayMs", 0, LONGEST, false],
  ["runAt", 0, 8_640_000_000_000_000, true],
];

describe("what becomes of stuck runs", () => {
  it.each([
    { stuckRetryMs: 0, stuckLimit: 0 },
    { stuckRetryMs: 7 * 86_400_000, stuckLimit: 9_999 },
  ])("may be %o", (limits) => {
    expect(refusal(newJob({ stuckMs: 1, ...limits }))).toBeNull();
  });

  it.each([
    ["stuckRetryMs", 7 * 86_400_000],
    ["stuckLimit", 9_999],
  ])("may not be out of range: %s", (field, most) => {
    for (const value of [-1, most + 1, 0.5, "1", undefined]) {
      const error = refusal(newJob({ stuckMs: 1, [field]: value }));
      expect((error as Error).message).toContain(`a whole number from 0 to ${most}`);
    }
  });

  it.each(["stuckRetryMs", "stuckLimit"])("says nothing where no run is ever stuck: %s", (field) => {
    const error = refusal(newJob({ stuckMs: null, [field]: 1 }));
    expect((error as Error).message).toContain("null, because no run of the job is ever stuck");
  });
});

describe.each(RANGES)("%s", (field, least, most, nullable) => {
  it.each([least, most])("may be %d", (value) => {
    expect(refusal(newJob({ [field]: value }))).toBeNull();
  });

  it.each([least - 1, most + 1, ...NOT_INTEGERS])("may not be %s", (value) => {
    if (value === null && nullable) return;
    const error = refusal(newJob({ [field]: value }));
    expect(isRedriveError(error, "invalid_argument")).toBe(true);
    expect((error as Error).message).toContain(`a whole number from ${least} to ${most}`);
  });

  it(`may${nullable ? "" : " not"} be null`, () => {
    expect(refusal(newJob({ [field]: null })) === null).toBe(nullable);
  });
});

describe.each(["type", "queue", "service"] as const)("%s", (field) => {
  it.each(["a", "A.b:c-d_9", "x".repeat(128), "0", "-", "__proto__"])("may be %s", (value) => {
    expect(refusal(newJob({ [field]: value }))).toBeNull();
  });

  it.each(NOT_NAMES)("may not be %j", (value) => {
    expect(isRedriveError(refusal(newJob({ [field]: value as string })), "invalid_argument")).toBe(true);
  });
});

describe.each(["tenant", "key"] as const)("%s", (field) => {
  it.each(["a", " ", "acme & søn", "😀", "\n", "x".repeat(255), "é".repeat(127)])("may be %j", (value) => {
    expect(refusal(newJob({ digest: "d", [field]: value }))).toBeNull();
  });

  it.each(NOT_TEXTS)("may not be %j", (value) => {
    expect(isRedriveError(refusal(newJob({ digest: "d", [field]: value as string })), "invalid_argument")).toBe(true);
  });
});

describe("id", () => {
  it.each(["a", "0190f3a0-7b1c-7def-8abc-0123456789ab", "_-", "x".repeat(64)])("may be %s", (id) => {
    expect(refusal(newJob({ id }))).toBeNull();
  });

  it.each(["", "a b", "a.b", "ä", "a\n", "\0", "x".repeat(65), null, undefined, 5, ["a"]])("may not be %j", (id) => {
    expect(isRedriveError(refusal(newJob({ id: id as string })), "invalid_argument")).toBe(true);
  });
});

describe("a new job", () => {
  it("needs a digest with its key, and none without", () => {
    expect(refusal(newJob({ key: null, digest: null }))).toBeNull();
    expect(isRedriveError(refusal(newJob({ key: "k", digest: null })), "invalid_argument")).toBe(true);
  });

  it("may carry 16 MiB and not a byte more", () => {
    const most = JOB_BOUNDS.payloadBytesMost;
    expect(refusal(newJob({ payload: "x".repeat(most) }))).toBeNull();
    expect(isRedriveError(refusal(newJob({ payload: "x".repeat(most + 1) })), "payload_too_large")).toBe(true);
    expect(isRedriveError(refusal(newJob({ payload: `x${"é".repeat(most / 2)}` })), "payload_too_large")).toBe(true);
  });

  it("is refused with the field, what was expected and what came", () => {
    const error = refusal(newJob({ queue: "no spaces please" }));
    expect(error).toMatchObject({ name: "RedriveError", code: "invalid_argument" });
    const { message } = error as Error;
    for (const part of ["queue", "1 to 128 letters", "no spaces please"]) expect(message).toContain(part);
  });

  it("is refused with a short message however long the value is", () => {
    expect((refusal(newJob({ type: "y".repeat(1_000_000) })) as Error).message.length).toBeLessThan(300);
  });

  it("is left as it is by the checks", () => {
    const job = Object.freeze(newJob({ key: "k", priority: 3 }));
    const before = structuredClone(job);
    checkNewJob(job);
    expect(job).toStrictEqual(before);
  });

  it("says what to do when it is too large", () => {
    const error = tooLarge("payload", 10, 11);
    expect(error.message).toMatch(/^payload may have at most 10 bytes; got 11\. .*reference/);
  });
});

describe("byteLength", () => {
  it("equals what UTF-8 encoding gives, lone surrogates included", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(byteLength(text)).toBe(Buffer.byteLength(text));
      }),
      { numRuns: 500 },
    );
    const units = fc.array(fc.constantFrom("a", "é", "€", "\ud83d", "\ude00", "\udbff", "\udfff", "\0"));
    fc.assert(
      fc.property(units, (list) => {
        expect(byteLength(list.join(""))).toBe(Buffer.byteLength(list.join("")));
      }),
    );
  });
});
