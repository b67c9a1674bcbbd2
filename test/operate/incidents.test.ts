// The labelled incidents in the test command: the list is what the figures of `npm run prove -- triage` claim it to be,
// triage is right in nine of ten, and it never advises to send all letters where they would fail again. A failure names
// incidents of the read half only.
import { describe, expect, it } from "vitest";
import { INCIDENTS, type TriagedIncident, triageIncident } from "../support/incidents.ts";

const all = INCIDENTS.map(({ incident }) => incident);

describe("labelled incidents", () => {
  it("are 80 with names of their own, in two halves of 40", () => {
    expect(new Set(all.map(({ name }) => name)).size).toBe(80);
    expect(INCIDENTS.filter(({ half }) => half === "read")).toHaveLength(40);
  });

  it("have one right answer; two in 15 % of them at most", () => {
    expect(all.filter(({ label }) => label.length < 1 || label.length > 2)).toEqual([]);
    expect(all.filter(({ label }) => label.length > 1).length).toBeLessThanOrEqual(12);
  });

  it("never have redrive as the right answer where the bug is still there", () => {
    expect(all.filter(({ label, bugStillThere }) => bugStillThere && label.includes("redrive"))).toEqual([]);
  });

  it("get the right advice in nine of ten, and never to redrive where the bug is still there", {
    timeout: 600_000,
  }, async () => {
    const triaged: TriagedIncident[] = [];
    for (const one of INCIDENTS) triaged.push(await triageIncident(one));
    const names = (some: readonly TriagedIncident[]): string =>
      some.map(({ half, incident, advice }) => (half === "read" ? `${incident.name}: ${advice}` : "unread")).join("; ");
    const harmful = triaged.filter(({ isHarmful }) => isHarmful);
    expect(harmful.length, names(harmful)).toBe(0);
    const wrong = triaged.filter(({ isRight }) => !isRight);
    expect(wrong.length / triaged.length, names(wrong)).toBeLessThanOrEqual(0.1);
  });
});
