// The canary: how large its steps are, which letters it picks, and what it proves.
import { describe, expect, it } from "vitest";
import { type Candidate, failingAtMost, pickCanary, stepsFor } from "../../../src/core/recovery/canary.ts";

function letter(given: Partial<Candidate> & { readonly n?: number } = {}): Candidate & { readonly n: number } {
  return { n: 0, type: "mail", tenant: null, group: null, diedAt: 0, ...given };
}

describe("the steps", () => {
  it.each([
    [[5, 50], 1_000, [5, 50]],
    [[5, 50], 55, [5, 50]],
    [[5, 50], 20, [5, 15]],
    [[5, 50], 5, [5]],
    [[5, 50], 3, [3]],
    [[5, 50], 0, []],
    [[], 10, []],
  ])("%j over %d letters are %j", (steps, toSend, cut) => {
    expect(stepsFor(steps, toSend)).toEqual(cut);
  });
});

describe("the picks", () => {
  it("are of every type", () => {
    const many = Array.from({ length: 20 }, (_, n) => letter({ n, diedAt: n }));
    const picked = pickCanary([...many, letter({ type: "pay", diedAt: 3 }), letter({ type: "sms", diedAt: 3 })], 3);
    expect(new Set(picked.map(({ type }) => type))).toEqual(new Set(["mail", "pay", "sms"]));
  });

  it("are of as many tenants as there are", () => {
    const letters = ["a", "a", "a", "a", "b", "c"].map((tenant, n) => letter({ tenant, diedAt: n }));
    expect(new Set(pickCanary(letters, 3).map(({ tenant }) => tenant))).toEqual(new Set(["a", "b", "c"]));
  });

  it("are spread over time", () => {
    const letters = Array.from({ length: 101 }, (_, n) => letter({ diedAt: n }));
    expect(pickCanary(letters, 3).map(({ diedAt }) => diedAt)).toEqual([0, 50, 100]);
  });

  it("are only the oldest of a group", () => {
    const letters = Array.from({ length: 10 }, (_, n) => letter({ n, group: "g", diedAt: n }));
    expect(pickCanary(letters, 5).map(({ n }) => n)).toEqual([0]);
  });

  it("take groups of the same name of two types for two", () => {
    const letters = [letter({ group: "g" }), letter({ group: "g", type: "pay" })];
    expect(pickCanary(letters, 5)).toHaveLength(2);
  });

  it("come in the order of enqueue", () => {
    const letters = [9, 1, 5, 3].map((diedAt, n) => letter({ n, diedAt }));
    expect(pickCanary(letters, 4).map(({ n }) => n)).toEqual([0, 1, 2, 3]);
  });

  it("are all where there are fewer", () => {
    expect(pickCanary([letter(), letter()], 5)).toHaveLength(2);
    expect(pickCanary([], 5)).toEqual([]);
  });
});

it.each([
  [0, 1],
  [5, 0.45],
  [50, 0.06],
  [300, 0.01],
])("%d good ones leave at most a share of %d failing", (good, share) => {
  expect(Math.round(failingAtMost(good) * 100) / 100).toBe(share);
});
