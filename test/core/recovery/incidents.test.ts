// Incidents that a person has labelled without knowing the rules of triage: how often the rules say the same, and that
// they never send back the letters of a bug that is still there.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type Advice, triage } from "../../../src/core/recovery/triage.ts";
import type { TriageFacts } from "../../../src/core/recovery/triage-facts.ts";

interface Incident {
  readonly title: string;
  readonly advice: Advice;
  readonly facts: TriageFacts;
}

/** A line of the list: it was written before triage knew of tenants, bouts and the releases that run. */
type Line = Omit<Incident, "facts"> & {
  readonly facts: Omit<TriageFacts, "name" | "code" | "boutAt" | "during" | "alike" | "releases" | "since"> & {
    readonly releases: Pick<TriageFacts["releases"], "failing" | "seen">;
    readonly since: Omit<TriageFacts["since"], "class">;
  };
};

const INCIDENTS = readFileSync(new URL("../../fixtures/incidents.jsonl", import.meta.url), "utf8")
  .trim()
  .split("\n")
  .map((line): Incident => {
    const { facts, ...rest } = JSON.parse(line) as Line;
    const { releases, since, firstAt } = facts;
    // What the list does not tell is unknown; its runs are meant as runs of the same tenants and services.
    const added = { name: "Error", code: null, boutAt: firstAt, during: null };
    const alike = { looked: since.completed, least: since.completed, tenants: since.completed > 0 ? 1 : 0 };
    return {
      ...rest,
      facts: {
        ...facts,
        ...added,
        alike,
        releases: { ...releases, running: [], suspect: null },
        since: { ...since, class: null },
      },
    };
  });

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
