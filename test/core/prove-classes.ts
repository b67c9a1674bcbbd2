// What `npm run prove -- classes` runs: the rules over the list of errors that libraries throw. It says how many
// classes and retry decisions are right, and lists the others. Not named as a test: it judges nothing, it counts.

import { describe, it } from "vitest";
import { classify, isRetryable } from "../../src/core/classify.ts";
import { allowedClasses, revive, type ThrownCase, thrownCases } from "../support/thrown.ts";

const NOW = Date.parse("2025-01-15T12:00:00Z");

describe("npm run prove -- classes", () => {
  it("counts what the rules get right", () => {
    const judged = thrownCases().map(judge);
    const wrong = judged.filter(({ isClass, isRetry }) => !isClass || !isRetry);
    for (const each of wrong) process.stdout.write(`${explain(each)}\n`);
    const libraries = new Set(judged.map(({ one }) => one.library)).size;
    const right = share(judged.map(({ isClass }) => isClass));
    const decided = share(judged.map(({ isRetry }) => isRetry));
    process.stdout.write(
      `classes ${judged.length} cases of ${libraries} libraries: class right ${right} (goal 95 %), `,
    );
    process.stdout.write(`retry decision right ${decided} (goal 97 %)\n`);
  });
});

function judge(one: ThrownCase) {
  const found = classify(revive(one.error), {}, [], NOW).class;
  return { one, found, isClass: allowedClasses(one).includes(found), isRetry: isRetryable(found) === one.retry };
}

function explain({ one, found, isRetry }: ReturnType<typeof judge>): string {
  const kind = isRetry ? "class" : one.retry ? "RETRY WANTED" : "NO RETRY WANTED";
  return `${kind}: ${one.from}: ${found}, should be ${allowedClasses(one).join(" or ")} (${one.why})`;
}

function share(right: readonly boolean[]): string {
  const count = right.filter(Boolean).length;
  return `${count} = ${((100 * count) / right.length).toFixed(1)} %`;
}
