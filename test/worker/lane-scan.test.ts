// Looks at more lanes than one look takes: what a look shows at the end of a priority that has work.
import { expect, it } from "vitest";
import { memoryWorld } from "../support/worlds.ts";
import { newJob } from "../support/new-job.ts";
import { LaneScan } from "../../src/worker/lane-scan.ts";

/** The lanes of the first two looks by a claim of one job. */
const TWO_LOOKS = 1_000;

it("shows the beginning of a priority after its end, before the one lane below that the look reached", async () => {
  const { store } = await memoryWorld();
  const high = Array.from({ length: TWO_LOOKS - 1 }, (_, n) => newJob({ type: "a", tenant: `t${n}`, priority: 6 }));
  const low = Array.from({ length: 3 }, (_, n) => newJob({ type: "a", tenant: `t${n}`, priority: 2 }));
  await store.enqueue([...high, ...low]);
  const scan = new LaneScan(store, { serves: new Set(["a"]), queues: null });
  const first = await scan.look(1, { turn: 0, took: null });
  expect(first.lanes).toHaveLength(TWO_LOOKS / 2);
  const { lanes } = await scan.look(1, { turn: TWO_LOOKS / 2, took: 6 });
  const below = lanes.findIndex(({ priority }) => priority === 2);
  const again = lanes.findIndex(({ lane }) => lane === first.lanes[0]?.lane);
  expect(below).toBe(TWO_LOOKS - 1);
  expect(again).toBe(TWO_LOOKS / 2 - 1);
});
