// The limits that somebody said of a type, and what becomes of them on their way through another program.
import { describe, expect, it } from "vitest";
import { resolvePolicy } from "../../src/core/policy.ts";
import { limitsFrom, declaredLimits } from "../../src/core/declared-limits.ts";

describe("the limits of a type", () => {
  it("are those that a layer said, and no default", () => {
    expect(declaredLimits(resolvePolicy({}))).toEqual({});
    expect(
      declaredLimits(resolvePolicy({ library: { maxCrashes: 7 }, type: { maxAttempts: 4, stuck: null } })),
    ).toEqual({
      maxAttempts: 4,
      maxCrashes: 7,
      stuckMs: null,
      stuckRetryMs: null,
      stuckLimit: null,
    });
  });

  it("come back from JSON as they were", () => {
    const said = declaredLimits(resolvePolicy({ type: { preset: "runs", deadline: "2d" } }));
    expect(said).toMatchObject({ maxAttempts: 5, stuckMs: 3_600_000, deadlineMs: 172_800_000 });
    expect(limitsFrom(JSON.parse(JSON.stringify(said)))).toEqual(said);
  });

  it("leave out what is none", () => {
    for (const odd of [undefined, null, "x", 7, []]) expect(limitsFrom(odd)).toEqual({});
    expect(
      limitsFrom({ maxAttempts: 0, maxCrashes: null, deadlineMs: -1, stuckMs: "1h", stuckLimit: 0, id: 5 }),
    ).toEqual({
      stuckLimit: 0,
    });
  });
});
