// The advice of triage on incidents that were labelled without knowledge of its rules: what a person on call should do.
// `also` names advice that is right as well. Wait means: the reason is still there; unknown: nothing is known.
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { triage, type TriageFacts } from "../../../src/core/recovery/triage.ts";

interface Incident {
  readonly title: string;
  readonly advice: string;
  readonly also?: readonly string[];
  readonly facts: TriageFacts;
}

const lines = readFileSync(new URL("../../fixtures/incidents.jsonl", import.meta.url), "utf8")
  .trim()
  .split("\n");
const incidents = lines.map((line) => JSON.parse(line) as Incident);
const judged = incidents.map(({ title, advice, also = [], facts }) => {
  const given = triage(facts);
  return {
    title,
    advice,
    given: given.advice,
    reason: given.reason,
    isRight: [advice, ...also].includes(given.advice),
  };
});

it("is right in at least 90 % of the incidents", () => {
  const wrong = judged.filter(({ isRight }) => !isRight);
  expect(incidents.length).toBeGreaterThanOrEqual(40);
  expect(wrong.length, JSON.stringify(wrong, null, 1)).toBeLessThanOrEqual(incidents.length * 0.1);
});

it("never advises to send everything where nothing speaks for a fix", () => {
  const rash = judged.filter(({ given, isRight }) => given === "redrive" && !isRight);
  expect(rash).toEqual([]);
});
