// Incidents that a person has labelled without knowing the rules of triage: how often the rules say the same, and that
// they never send back the letters of a bug that is still there.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type Advice, triage, type TriageFacts } from "../../../src/core/recovery/triage.ts";

interface Incident {
  readonly title: string;
  readonly advice: Advice;
  readonly facts: TriageFacts;
}

const INCIDENTS = readFileSync(new URL("../../fixtures/incidents.jsonl", import.meta.url), "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Incident);

describe("triage of labelled incidents", () => {
  it("is right in nine of ten", () => {
    const wrong = INCIDENTS.filter(({ advice, facts }) => triage(facts).advice !== advice);
    expect(INCIDENTS.length).toBeGreaterThanOrEqual(40);
    expect(wrong.length / INCIDENTS.length, wrong.map(({ title }) => title).join("\n")).toBeLessThanOrEqual(0.1);
  });

  it.each(INCIDENTS.filter(({ advice }) => advice !== "redrive"))("does not redrive: $title", ({ facts }) => {
    expect(triage(facts).advice).not.toBe("redrive");
  });
});
