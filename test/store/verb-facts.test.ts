// Which answers of a store promise that what they tell is on disk: those about what people and producers wrote.
import { describe, expect, it } from "vitest";
import type { CellChange } from "../../src/store/cells.ts";
import { type Verb, VERBS } from "../../src/store/verb-facts.ts";

const cell = (kind: string): CellChange => ({ kind, name: "a", holder: "", version: null, value: "{}" });

describe("an answer is sent when everything is on disk", () => {
  it.each(["enqueue", "settle", "cancel", "redrive", "remove", "pause"] satisfies Verb[])("of %s, always", (verb) => {
    const promises = VERBS[verb].promises as (() => boolean) | undefined;
    expect(promises?.()).toBe(true);
  });

  it.each(["schedule", "batch"])("of cells about a %s, alone and among others", (kind) => {
    expect(VERBS.setCells.promises?.([cell(kind)])).toBe(true);
    expect(VERBS.setCells.promises?.([cell("load"), cell(kind)])).toBe(true);
  });

  it("not of cells with what workers see", () => {
    expect(VERBS.setCells.promises?.([cell("load"), cell("rate")])).toBe(false);
  });
});
