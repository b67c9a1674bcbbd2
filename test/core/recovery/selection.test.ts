// Selections of dead letters: what freezes them, and which may have letters in common.
import { describe, expect, it } from "vitest";
import { freeze, mayOverlap, type Selection, selectionText } from "../../../src/core/recovery/selection.ts";

describe("a frozen selection", () => {
  it("has instants for relative times, and an upper end", () => {
    expect(freeze({ type: "mail", from: { agoMs: 2_000 }, until: 9_000 }, 10_000, 7)).toEqual({
      type: "mail",
      from: 8_000,
      until: 9_000,
      through: 7,
    });
  });

  it("has no time where none was asked for", () => {
    expect(freeze({ ids: ["a"], limit: 3 }, 10_000, 7)).toEqual({ ids: ["a"], limit: 3, through: 7 });
  });
});

describe("two selections", () => {
  it.each<[string, Selection, Selection, boolean]>([
    ["of one cause overlap", { fingerprint: "a" }, { fingerprint: "a" }, true],
    ["of two causes do not", { fingerprint: "a" }, { fingerprint: "b" }, false],
    ["of a cause and a type may", { fingerprint: "a" }, { type: "mail" }, true],
    ["of two types do not", { type: "mail" }, { type: "pay" }, false],
    ["of two tenants do not", { tenant: "x", type: "mail" }, { tenant: "y" }, false],
    ["of two services do not", { service: "x" }, { service: "y" }, false],
    ["of two classes do not", { class: "transient" }, { class: "permanent" }, false],
    ["of two keys do not", { key: "x" }, { key: "y" }, false],
    ["of two texts may", { text: "x" }, { text: "y" }, true],
    ["of disjoint times do not", { until: 10 }, { from: 10 }, false],
    ["of times that touch may", { until: 11 }, { from: 10 }, true],
    ["of one time only may", { until: 10 }, {}, true],
    ["of other ids do not", { ids: ["a", "b"] }, { ids: ["c"] }, false],
    ["of a common id do", { ids: ["a", "b"] }, { ids: ["b"] }, true],
    ["of ids and a type may", { ids: ["a"] }, { type: "mail" }, true],
  ])("%s", (_, a, b, overlap) => {
    expect([mayOverlap(a, b), mayOverlap(b, a)]).toEqual([overlap, overlap]);
  });
});

it("a selection reads as text", () => {
  const text = selectionText({ fingerprint: "7f3a", type: "charge", from: 0, limit: 3 });
  expect(text).toBe("cause 7f3a, type charge, from 1970-01-01T00:00:00.000Z, the first 3");
});
