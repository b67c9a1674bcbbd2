// How far ahead the clock of a store may have been, by the notes about its steps.
import { expect, it } from "vitest";
import { spansOf } from "./store-clock.ts";

const FOREVER = Number.POSITIVE_INFINITY;

it("is known before and after a step, and one of two while it steps", () => {
  expect(spansOf("")).toEqual([{ ahead: 0, from: 0, until: FOREVER }]);
  expect(spansOf("may 10 500\n")).toEqual([
    { ahead: 0, from: 0, until: FOREVER },
    { ahead: 500, from: 10, until: FOREVER },
  ]);
  expect(spansOf("may 10 500\nis 12 500\nmay 20 -300\nis 25 -300\n")).toEqual([
    { ahead: 0, from: 0, until: 12 },
    { ahead: 500, from: 10, until: 25 },
    { ahead: -300, from: 20, until: FOREVER },
  ]);
});

it("may be that of a step of which nothing more was heard, until the next one", () => {
  expect(spansOf("may 10 500\nmay 20 -300\nis 25 -300\nmay 3").map(({ until }) => until)).toEqual([25, 25, FOREVER]);
});
