// What a worker knows of the lanes after a claim; and that a worker with groups never asks an empty lane without end.
import { describe, expect, it } from "vitest";
import { type ActiveLane, firstLane, laneOfKind } from "../../src/core/lane.ts";
import { type LanesSeen, NEVER, NOTHING_SEEN, seenAfterClaim } from "../../src/core/next-step.ts";

const laneOf = (n: number, group: string | null): ActiveLane => ({
  lane: laneOfKind(firstLane(n, 3), "first"),
  kind: "first",
  type: "mail",
  queue: "default",
  service: null,
  tenant: null,
  group,
  groupConcurrency: 1,
  priority: 3,
  headRunAt: 0,
  room: null,
});
const [PLAIN, OTHER] = [laneOf(1, null), laneOf(2, null)];
const [SHOP, BANK] = [laneOf(3, "shop"), laneOf(4, "bank")];
const seen = (lanes: ActiveLane[], more: Partial<LanesSeen> = {}): LanesSeen => ({
  ...NOTHING_SEEN,
  lanes,
  atMs: 950,
  goodMs: 100,
  ...more,
});
const quotas = (limit: number, ...lanes: ActiveLane[]) => lanes.map(({ lane }) => ({ lane, limit }));
const jobs = (count: number) => Array.from({ length: count }, () => ({ priority: 3 }));

type Row = [string, Parameters<typeof seenAfterClaim>, lanes: ActiveLane[], isOld: boolean];

const ROWS: readonly Row[] = [
  ["all it asked for", [seen([PLAIN]), quotas(2, PLAIN), jobs(2), 2], [PLAIN], false],
  ["less than it asked for", [seen([PLAIN]), quotas(2, PLAIN), jobs(1), 2], [PLAIN], true],
  ["all that the limit allows", [seen([PLAIN, OTHER]), quotas(2, PLAIN, OTHER), jobs(2), 2], [PLAIN, OTHER], false],
  ["a job of a group", [seen([SHOP, BANK]), quotas(1, SHOP), jobs(1), 1], [BANK], false],
  ["a job of the last group", [seen([SHOP]), quotas(1, SHOP), jobs(1), 1], [], false],
  ["none of the last group", [seen([SHOP]), quotas(1, SHOP), [], 1], [], true],
  ["a job of a group beside others", [seen([PLAIN, SHOP]), quotas(1, SHOP), jobs(1), 1], [PLAIN], false],
  [
    "nothing of an empty lane while a group is left",
    [seen([PLAIN, BANK], { dropped: true }), quotas(4, PLAIN), [], 4],
    [BANK],
    false,
  ],
  ["nothing of the only lane beside groups", [seen([PLAIN], { dropped: true }), quotas(4, PLAIN), [], 4], [], true],
];

describe("the lanes after a claim that got", () => {
  it.each(ROWS)("%s", (_, given, lanes, isOld) => {
    const after = seenAfterClaim(...given);
    expect(after.lanes).toEqual(lanes);
    expect(after.atMs).toBe(isOld ? NEVER : 950);
  });

  it("keep the highest priority that a job was taken from", () => {
    const given = [quotas(2, PLAIN), [{ priority: 1 }, { priority: 7 }, { priority: 4 }], 3] as const;
    expect(seenAfterClaim(seen([PLAIN]), ...given).took).toBe(7);
    expect(seenAfterClaim(seen([PLAIN], { took: 9 }), ...given).took).toBe(9);
  });

  it("are looked at again after at most one claim for each, whatever they give", () => {
    let now = seen([PLAIN, OTHER, SHOP, BANK]);
    for (const lane of [SHOP, PLAIN, OTHER, BANK]) now = seenAfterClaim(now, quotas(1, lane), [], 1);
    expect(now).toMatchObject({ lanes: [], atMs: NEVER });
  });
});
