// Which worker may reserve itself for a job with its last crash left, and what it does then.
import { describe, expect, it } from "vitest";
import { mayReserve, reservationFrom, type Reserved, reservedStep } from "../../src/core/reservation.ts";

const NOW = 1_700_000_000_000;

describe("a worker may reserve itself", () => {
  const other = { worker: "other", until: NOW + 1, isWaiting: true };
  it.each([
    { what: "where none has", current: null, isIdle: false, may: true },
    { what: "where one has and waits", current: other, isIdle: false, may: false },
    { what: "in the place of one that waits, with empty hands", current: other, isIdle: true, may: true },
    { what: "in the place of one whose job runs", current: { ...other, isWaiting: false }, isIdle: true, may: false },
    { what: "after one that does not renew it", current: { ...other, until: NOW }, isIdle: false, may: true },
    {
      what: "after one from before the clock stepped back",
      current: { ...other, until: NOW + 3_600_000 },
      isIdle: false,
      may: true,
    },
    { what: "again", current: { ...other, worker: "own", isWaiting: false }, isIdle: false, may: true },
  ])("$what: $may", ({ current, isIdle, may }) => {
    expect(mayReserve(current, { worker: "own", isIdle }, NOW)).toBe(may);
  });

  it("where the store holds something else", () => {
    for (const text of ["", "[]", "{}", '{"worker":1,"until":2}', '{"worker":"a","until":"x"}'])
      expect(reservationFrom(text)).toBeNull();
    expect(reservationFrom(JSON.stringify(other))).toEqual(other);
  });
});

describe("a worker that has reserved itself", () => {
  const waiting: Reserved = { heldMs: 0, aloneMs: null, isIdle: false, dueMs: 0, hasRunBeside: false };
  const MIN = 60_000;
  it.each([
    { what: "waits for its runs", step: "keep", heldMs: MIN - 1 },
    { what: "hands over after a minute", step: "let go", heldMs: MIN, dueMs: 149_999 },
    { what: "runs a job beside them that has waited too long", step: "run beside", heldMs: MIN, dueMs: 150_000 },
    { what: "waits a moment for a slot", step: "run beside", heldMs: MIN + 9_999, dueMs: 150_000 },
    { what: "lets go where no slot comes free", step: "let go", heldMs: MIN + 10_000, dueMs: 150_000 },
    { what: "does so once", step: "let go", heldMs: MIN, dueMs: 150_000, hasRunBeside: true },
    { what: "waits first, however long the job has been due", step: "keep", heldMs: 0, dueMs: 3_600_000 },
    { what: "runs one after another with empty hands", step: "keep", heldMs: MIN - 1, isIdle: true },
    { what: "does other work after a minute of them", step: "let go", heldMs: MIN, isIdle: true, dueMs: 150_000 },
    { what: "lets go where none is due", step: "let go", dueMs: null },
    { what: "stays alone with its job", step: "keep", heldMs: 10 * MIN, aloneMs: MIN - 1, dueMs: null },
    { what: "takes other work beside it after a minute", step: "let go", aloneMs: MIN, dueMs: 200_000 },
  ])("$what", ({ step, ...known }) => {
    expect(reservedStep({ ...waiting, ...known })).toBe(step);
  });
});
