// What `npm run prove -- triage` runs: plays every labelled incident and asks triage about it. It says how many answers are
// right in each half, and lists the wrong ones of the read half only, because the other half is there to stay unread. Not
// named as a test: it judges nothing, it counts.
import { describe, it } from "vitest";
import { INCIDENTS, type TriagedIncident, triageIncident } from "../support/incidents.ts";

describe("npm run prove -- triage", () => {
  it("counts what triage gets right", { timeout: 600_000 }, async () => {
    const triaged: TriagedIncident[] = [];
    for (const one of INCIDENTS) triaged.push(await triageIncident(one));
    const read = triaged.filter(({ half }) => half === "read");
    const unread = triaged.filter(({ half }) => half === "unread");
    for (const each of read.filter(({ isRight }) => !isRight)) process.stdout.write(`${explain(each)}\n`);
    process.stdout.write(
      `triage: ${triaged.length} incidents; goal 90 % right, never redrive where the bug is there\n`,
    );
    for (const [half, some] of Object.entries({ read, unread, whole: triaged })) {
      const right = some.filter(({ isRight }) => isRight).length;
      const percent = ((100 * right) / some.length).toFixed(1);
      const harmful = some.filter(({ isHarmful }) => isHarmful).length;
      process.stdout.write(
        `  ${half.padEnd(6)} right ${right} of ${some.length} = ${percent} %; redrive with the bug still there: ${harmful}\n`,
      );
    }
  });
});

function explain({ incident, advice, reason, isHarmful }: TriagedIncident): string {
  const kind = isHarmful ? "HARMFUL" : "wrong";
  return `${kind}: ${incident.name}: ${advice} (${reason}); should be ${incident.label.join(" or ")}`;
}
