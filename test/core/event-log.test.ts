// What the event log keeps of details, and how the end of an action is found by its beginning.
import { describe, expect, it } from "vitest";
import { eventValue, outcomesIn } from "../../src/core/event-log.ts";
import type { LoggedEvent } from "../../src/store/store.ts";

describe("details of an event", () => {
  it("keep the first items of a list and the beginning of a text", () => {
    const ids = Array.from({ length: 50 }, (_, at) => `id-${at}`);
    const kept = JSON.parse(
      eventValue({ ids, few: ["a", "b"], text: "x".repeat(301), short: "y".repeat(300) }),
    ) as object;
    expect(kept).toEqual({
      ids: ids.slice(0, 20),
      few: ["a", "b"],
      text: `${"x".repeat(300)}…`,
      short: "y".repeat(300),
    });
  });
});

describe("the outcomes of actions", () => {
  it("are found by the number of the intent, which is none itself", () => {
    const event = (details: object, intent: number | null = null): LoggedEvent =>
      ({ value: JSON.stringify(details), intent }) as LoggedEvent;
    const [done, failed] = [event({ step: "done" }, 3), event({ step: "failed" }, 4)];
    const others = [event({ step: "intent" }), event({ count: 1 })];
    expect([...outcomesIn([...others, done, failed])]).toEqual([
      [3, done],
      [4, failed],
    ]);
  });
});
