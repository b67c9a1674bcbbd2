// What a worker's published load says about its slots.
import { expect, it } from "vitest";
import { slotsTaken, type WorkerLoad } from "../../src/core/load.ts";

const load = {
  concurrency: 4,
  queues: null,
  types: [{ type: "mail" }, { type: "bulk", batch: 10 }],
} as unknown as WorkerLoad;

it.each([
  { running: 3, mail: 3, bulk: 0, slots: 3 },
  { running: 25, mail: 5, bulk: 20, slots: 7 },
  { running: 21, mail: 0, bulk: 21, slots: 3 },
  { running: 2, mail: 0, bulk: 30, slots: 1 },
  { running: 0, mail: 0, bulk: 0, slots: 0 },
])(
  "$running running jobs, $bulk of them in batches of ten, take at least $slots slots",
  ({ running, mail, bulk, slots }) => {
    expect(
      slotsTaken(
        load,
        running,
        new Map([
          ["mail", mail],
          ["bulk", bulk],
        ]),
      ),
    ).toBe(slots);
  },
);
