// A function of the user that takes too long is ended, even where it loops without waiting.
import { expect, it } from "vitest";
import { TimeBoxError, withinTime } from "../../src/system/time-box.ts";

it("answers what the function answers, at once or later", async () => {
  expect(await withinTime(5_000, () => 1)).toBe(1);
  expect(await withinTime(5_000, async () => "later")).toBe("later");
  expect(await withinTime(5_000, () => undefined)).toBe(undefined);
});

it("passes an error on, of any kind", async () => {
  const error = new Error("no");
  await expect(withinTime(5_000, () => Promise.reject(error))).rejects.toBe(error);
  const thrower = (): never => {
    throw error;
  };
  await expect(withinTime(5_000, thrower)).rejects.toBe(error);
  const nothing = (): never => {
    throw null;
  };
  await expect(withinTime(5_000, nothing)).rejects.toBe(null);
});

it("ends a loop, and a promise that never settles", async () => {
  let turns = 0;
  const loop = (): never => {
    for (;;) turns += 1;
  };
  await expect(withinTime(20, loop)).rejects.toBeInstanceOf(TimeBoxError);
  const before = turns;
  await expect(withinTime(20, () => new Promise(() => undefined))).rejects.toBeInstanceOf(TimeBoxError);
  expect(turns).toBe(before);
  expect(await withinTime(5_000, () => "works again")).toBe("works again");
});
