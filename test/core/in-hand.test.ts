// How much a worker may claim ahead and leave unsettled, and when one more suspect may join.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CLAIM_MOST, mayHold, mayTakeSuspect, wantedNow, type WorkInHand } from "../../src/core/in-hand.ts";
import { EMPTY_HANDS as EMPTY, FULL_HANDS as FULL } from "../support/work-in-hand.ts";

const QUICK: WorkInHand = { ...FULL, settled: 500, settling: 500 };

describe("what a worker may hold", () => {
  it.each([
    { settling: 0, most: 200, why: "while nothing is settled, twice the slots" },
    { settling: 1, most: 201, why: "one more for each that a tenth of a second of settling takes" },
    { settling: 3_000, most: 3_200, why: "as many as that" },
    { settling: 5_000, most: 5_200, why: "up to 5,000" },
    { settling: 90_000, most: 5_200, why: "and never more" },
  ])("is $most slots where 100 run at a time and $settling are settled: $why", ({ settling, most }) => {
    expect(mayHold(100, settling)).toBe(most);
  });
});

describe("slots to fill", () => {
  it.each<{ what: string; want: number; inHand: Partial<WorkInHand>; isRemote?: boolean }>([
    { what: "every free one of slow work", want: 10, inHand: EMPTY },
    { what: "none ahead of slow work", want: 0, inHand: FULL },
    { what: "none for what is kept for a suspect", want: 9, inHand: { ...EMPTY, reserved: 1 } },
    { what: "none where only that is free", want: 0, inHand: { ...FULL, free: 1, reserved: 1, held: 9 } },
    { what: "one for a batch that waits for more jobs", want: 1, inHand: { ...FULL, forming: 1 } },
    { what: "ahead of quick work, 20 for each slot", want: 200, inHand: QUICK },
    { what: "40 where the store is a server away", want: 400, inHand: QUICK, isRemote: true },
    { what: "no more ahead than a tenth of a second settles", want: 30, inHand: { ...QUICK, settled: 30 } },
    { what: "what is missing of it", want: 120, inHand: { ...QUICK, ahead: 80, held: 90 } },
    { what: "none while more than half of it is there", want: 0, inHand: { ...QUICK, ahead: 101, held: 111 } },
    {
      what: "all that is missing of it once a slot is free",
      want: 100,
      inHand: { ...QUICK, free: 1, ahead: 101, held: 110 },
    },
    { what: "none beyond what may be held", want: 0, inHand: { ...EMPTY, held: 20 } },
    { what: "what may be held, and no more", want: 3, inHand: { ...EMPTY, held: 17 } },
    { what: "no more ahead of slots that handlers kept", want: 100, inHand: { ...QUICK, slots: 5, held: 5 } },
    { what: "none while others are on their way back", want: 0, inHand: { ...EMPTY, returning: 1 } },
    { what: "1,000 at once", want: 1_000, inHand: { ...QUICK, slots: 100, settled: 9_000, settling: 9_000 } },
  ])("$what: $want", ({ want, inHand, isRemote = false }) => {
    expect(wantedNow({ ...EMPTY, ...inHand }, isRemote)).toBe(want);
  });

  const some = fc.nat({ max: 6_000 });
  const any = fc.record({
    slots: fc.nat({ max: 300 }),
    free: fc.nat({ max: 300 }),
    reserved: fc.nat({ max: 1 }),
    forming: fc.nat({ max: 20 }),
    ahead: some,
    held: some,
    returning: fc.nat({ max: 2 }),
    settled: some,
    settling: some,
  });

  it("are never more than may be held, than a claim takes, or than are free and may be ahead", () => {
    fc.assert(
      fc.property(any, fc.boolean(), (inHand, isRemote) => {
        const { slots, free, forming, ahead, held, settled, settling } = inHand;
        const want = wantedNow(inHand, isRemote);
        expect(want).toBeGreaterThanOrEqual(0);
        expect(want).toBeLessThanOrEqual(CLAIM_MOST);
        if (want === 0) return;
        expect(held + want).toBeLessThanOrEqual(2 * slots + Math.min(5_000, settling));
        expect(ahead + want).toBeLessThanOrEqual(free + forming + Math.min(settled, (isRemote ? 40 : 20) * slots));
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("one more suspect may be taken", () => {
  it.each<{ what: string; may: boolean; inHand: Partial<WorkInHand> }>([
    { what: "where none runs", may: true, inHand: {} },
    { what: "where no slot is free", may: false, inHand: { free: 0 } },
    { what: "into the slot that is kept for it", may: true, inHand: { free: 1, reserved: 1 } },
    { what: "where as much is held as may be", may: false, inHand: { held: 20 } },
    { what: "where one less is held", may: true, inHand: { held: 19 } },
    { what: "beside one that is watched", may: false, inHand: { suspectsMs: [99] } },
    { what: "beside one that has done no harm", may: true, inHand: { suspectsMs: [100] } },
    { what: "beside one that has not and one that is watched", may: false, inHand: { suspectsMs: [100, 99] } },
    { what: "beside two that have not and one that is watched", may: true, inHand: { suspectsMs: [100, 500, 0] } },
  ])("$what: $may", ({ may, inHand }) => {
    expect(mayTakeSuspect({ ...EMPTY, ...inHand })).toBe(may);
  });
});
