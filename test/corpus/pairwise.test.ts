// Pairs counted by hand, against the counts of pairwise.ts.

import { describe, expect, it } from "vitest";
import { type Grouped, pairwise, recognised } from "./pairwise.ts";

const grouped = (...texts: string[]): Grouped[] =>
  texts.map((text) => ({ label: text.slice(0, 1), group: text.slice(1) }));

describe("pairwise", () => {
  it("is 1 where every label has its group", () =>
    expect(pairwise(grouped("a1", "a1", "b2", "b2"))).toEqual({ precision: 1, recall: 1, f1: 1 }));
  it("loses recall where a label is split", () => {
    // Of the three pairs of label a, one shares a group.
    expect(pairwise(grouped("a1", "a1", "a2"))).toEqual({ precision: 1, recall: 1 / 3, f1: 0.5 });
  });
  it("loses precision where labels share a group", () => {
    // Six pairs share group 1; two of them have one label.
    const { precision, recall, f1 } = pairwise(grouped("a1", "a1", "b1", "b1"));
    expect([precision, recall]).toEqual([1 / 3, 1]);
    expect(f1).toBeCloseTo(0.5);
  });
  it("counts both mistakes", () => {
    // In groups: a1 a1, a1 b1 twice, so 1 of 3; of labels: aa aa aa bb, so 1 of 4.
    const { precision, recall, f1 } = pairwise(grouped("a1", "a1", "a2", "b1", "b3"));
    expect([precision, recall]).toEqual([1 / 3, 1 / 4]);
    expect(f1).toBeCloseTo(2 / 7);
  });
  it("is 0 where no pair was found, and 1 where there is none", () => {
    expect(pairwise(grouped("a1", "a2"))).toEqual({ precision: 1, recall: 0, f1: 0 });
    expect(pairwise(grouped("a1"))).toEqual({ precision: 1, recall: 1, f1: 1 });
  });
  it("does not mix up a label and a group that read alike", () => {
    const alike = [
      { label: "a", group: "bc" },
      { label: "ab", group: "c" },
    ];
    expect(pairwise([...alike, ...grouped("x1", "x1")])).toEqual({ precision: 1, recall: 1, f1: 1 });
  });
});

describe("recognised", () => {
  it("is the share of pairs with the rest of the label that share a group", () => {
    const things = grouped("a1", "a1", "a2", "b3");
    const [first] = things;
    expect(recognised(things, (thing) => thing === first)).toBe(1 / 2);
    expect(recognised(things, ({ label }) => label === "b")).toBe(1);
  });
});
