// What `npm run prove -- classes` runs: the rules over the list of errors that libraries throw. It says how many
// classes and retry decisions are right in each half of the list, and lists the wrong ones of the tuned half only,
// because the other half is there to stay unread. Not named as a test: it judges nothing, it counts.

import { describe, it } from "vitest";
import { explain, judgeCase, share } from "../support/judged-cases.ts";
import { halfOf, thrownCases } from "../support/thrown.ts";

describe("npm run prove -- classes", () => {
  it("counts what the rules get right", () => {
    const judged = thrownCases().map(judgeCase);
    const tuned = judged.filter(({ one }) => halfOf(one) === "tuned");
    const unseen = judged.filter(({ one }) => halfOf(one) === "unseen");
    for (const each of tuned.filter(({ isClass }) => !isClass)) process.stdout.write(`${explain(each)}\n`);
    const libraries = new Set(judged.map(({ one }) => one.library)).size;
    process.stdout.write(`classes: ${judged.length} cases of ${libraries} libraries; goal 95 % class, 97 % retry\n`);
    for (const [half, cases] of Object.entries({ tuned, unseen, whole: judged })) {
      const right = share(cases.map(({ isClass }) => isClass));
      const decided = share(cases.map(({ isRetry }) => isRetry));
      process.stdout.write(
        `  ${half.padEnd(6)} ${cases.length} cases: class right ${text(right)}, retry decision right ${text(decided)}\n`,
      );
    }
  });
});

function text({ count, percent }: ReturnType<typeof share>): string {
  return `${count} = ${percent.toFixed(1)} %`;
}
