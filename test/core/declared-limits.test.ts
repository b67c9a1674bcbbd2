// The limits that somebody said of a type, and what becomes of them on their way through another program.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type JobKeep,
  KEEP_NAMES,
  LIMIT_NAMES,
  putTerms,
  TERM_NAMES,
  TERMS,
  type Terms,
  USUAL_TERMS,
} from "../../src/core/job.ts";
import { resolvePolicy } from "../../src/core/policy.ts";
import {
  limitsFrom,
  type DeclaredLimits,
  declaredLimits,
  type JobTerms,
  termsFor,
  termsForAll,
} from "../../src/core/declared-limits.ts";

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

describe("the terms of a job", () => {
  const own = { ...USUAL_TERMS, maxAttempts: 3 };
  const kept = { keepFinishedMs: 1_000, keepDeadMs: 2_000 };
  const limits = { maxAttempts: 9 };

  it("are those of its type where its own limits are only the usual ones", () => {
    expect(termsFor({ ...own, ...kept, limited: false }, { limits })).toEqual({ ...own, ...kept, maxAttempts: 9 });
  });

  it("are its own where it was given limits, but it is kept as its type says", () => {
    const job = { ...own, ...kept, limited: true };
    const keep = { keepFinishedMs: 5_000, keepDeadMs: 6_000 };
    expect(termsFor(job, { limits })).toBeNull();
    expect(termsFor(job, { limits, keep })).toEqual({ ...own, ...keep });
  });
});

describe("the terms of many jobs", () => {
  const count = fc.integer({ min: 1, max: 2 });
  const valueOf = (name: keyof Terms) => (TERMS[name].mayBeNull ? fc.option(count) : count);
  const all = <N extends keyof Terms>(names: readonly N[]) =>
    Object.fromEntries(names.map((name) => [name, valueOf(name)])) as { [K in N]: fc.Arbitrary<Terms[K]> };
  const jobs = fc.array(fc.record({ ...all(TERM_NAMES), limited: fc.boolean() }) as fc.Arbitrary<JobTerms>, {
    maxLength: 20,
  });
  const declared = fc.record({
    limits: fc.record(all(LIMIT_NAMES), { requiredKeys: [] }) as fc.Arbitrary<DeclaredLimits>,
    keep: fc.option(fc.record(all(KEEP_NAMES)) as fc.Arbitrary<JobKeep>),
  });

  it("are those of each job by itself, whichever came before it", () => {
    fc.assert(
      fc.property(jobs, declared, (all, { limits, keep }) => {
        const word = { limits, keep: keep ?? undefined };
        const termsOf = termsForAll(word);
        for (const job of all) expect(termsOf(job)).toEqual(termsFor(job, word));
      }),
      { numRuns: 300 },
    );
  });

  it("are all put into a job", () => {
    const terms = Object.fromEntries(TERM_NAMES.map((name, at) => [name, at])) as unknown as Terms;
    const job = Object.fromEntries(TERM_NAMES.map((name) => [name, -1])) as unknown as Terms;
    putTerms(job, terms);
    expect(job).toEqual(terms);
  });

  it("are made once for jobs that carry the same", () => {
    const job: JobTerms = { ...resolvePolicy({}).policy, limited: true };
    const termsOf = termsForAll({ limits: {}, keep: { keepFinishedMs: 7, keepDeadMs: 7 } });
    const first = termsOf(job);
    expect(first).toMatchObject({ keepFinishedMs: 7 });
    expect(termsOf({ ...job })).toBe(first);
  });
});
