// A wait that ends early leaves no timer behind, which would keep a process alive that has nothing left to do.
import { describe, expect, it } from "vitest";
import { fakeSystem, seededDice } from "../../src/testing/fake-system.ts";
import { Timeline } from "../../src/testing/timeline.ts";
import { atMost } from "../../src/worker/wind-down.ts";

describe("a bounded wait", () => {
  it.each([undefined, new AbortController().signal])("ends its timer with the work (%s)", async (hurry) => {
    const timeline = new Timeline(0);
    await atMost(fakeSystem(timeline, seededDice(1, "wait")), Promise.resolve(), 60_000, hurry);
    expect(timeline.nextAt).toBe(Number.POSITIVE_INFINITY);
  });
});
