// What a drain notes of itself, and how long its work may have to wait.
import { describe, expect, it } from "vitest";
import { drainBegun, type DrainRecord, drainFrom, intervalsByType, usualIntervalMs } from "../../src/core/drains.ts";

const drain = (...starts: number[]): DrainRecord => ({ types: ["mail"], starts, endedAt: null });

describe("the usual interval", () => {
  it.each<[string, number[], number | null]>([
    ["no start", [], null],
    ["one start", [5], null],
    ["two starts, which may be by hand", [0, 10], null],
    ["the middle of two intervals", [0, 10, 30], 15],
    ["one long night among them", [0, 10, 20, 1_000, 1_010, 1_020], 10],
    ["a clock that went back", [10, 0, 0], 0],
  ])("of %s", (_name, starts, ms) => expect(usualIntervalMs(drain(...starts))).toBe(ms));
});

describe("the notes", () => {
  it("keep six starts, sort the types, and are open until the end", () => {
    let record: DrainRecord | null = null;
    for (let at = 1; at <= 9; at += 1) record = drainBegun(record && { ...record, endedAt: at }, ["b", "a"], at);
    expect(record).toEqual({ types: ["a", "b"], starts: [4, 5, 6, 7, 8, 9], endedAt: null });
  });

  it.each([
    "",
    "[]",
    "{}",
    '{"types":[1],"starts":[]}',
    '{"types":[],"starts":["x"]}',
    '{"types":[],"starts":[],"endedAt":"x"}',
  ])("are nothing where another version wrote %s", (text) => expect(drainFrom(text)).toBeNull());

  it("come back as they were written", () => expect(drainFrom(JSON.stringify(drain(1, 2)))).toEqual(drain(1, 2)));
});

describe("the wait for the next drain", () => {
  const by = { everyMs: null, lateMs: 5, now: 30 };

  it("is the longest interval of those that come on time", () => {
    const other = { ...drain(0, 15, 30), types: ["mail", "media"] };
    expect([...intervalsByType([drain(0, 10, 20), other], by)]).toEqual([
      ["mail", 15],
      ["media", 15],
    ]);
  });

  it("is none of a drain that is overdue itself, or has no interval", () => {
    expect(intervalsByType([drain(0, 10, 14), drain(25), drain()], by).size).toBe(0);
    expect(intervalsByType([drain(5, 10, 20)], by).size).toBe(1);
  });

  it("is what the config says, from the first start on", () => {
    expect([...intervalsByType([drain(25)], { ...by, everyMs: 60 })]).toEqual([["mail", 60]]);
  });
});
