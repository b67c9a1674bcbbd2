// The meter of a process: what it writes, when, and what becomes of counts that the store did not take.
import { describe, expect, it } from "vitest";
import { openFlowMeter } from "../../src/store/flow-meter.ts";
import type { FlowAddition } from "../../src/store/store.ts";
import { onVirtualTime } from "../support/virtual-time.ts";

const NONE = { enqueued: 0, completed: 0, retried: 0, dead: 0, released: 0, runMs: 0, waitMs: 0 };

describe("a flow meter", () => {
  it("writes the first count at once and further ones a second later, added up by type", async () => {
    await onVirtualTime(async (system) => {
      const written: (readonly [number, FlowAddition["counts"]])[] = [];
      const began = system.monotonic();
      const meter = openFlowMeter(
        { addFlow: async ({ counts }) => void written.push([Math.round(system.monotonic() - began), counts]) },
        system,
      );
      meter.add("a", "enqueued");
      await system.sleep(10);
      for (let n = 0; n < 100; n++) {
        meter.add("a", "completed", 10.25, 1);
        await system.sleep(5);
      }
      meter.add("b", "dead");
      await system.sleep(10_000);
      expect(written).toEqual([
        [0, [{ ...NONE, type: "a", enqueued: 1 }]],
        [
          1_000,
          [
            { ...NONE, type: "a", completed: 100, runMs: 1_025, waitMs: 100 },
            { ...NONE, type: "b", dead: 1 },
          ],
        ],
      ]);
      await meter.end();
      expect(written).toHaveLength(2);
    });
  });

  it("keeps what the store did not take for its next write", async () => {
    await onVirtualTime(async (system) => {
      const written: FlowAddition["counts"][] = [];
      let isDown = true;
      const addFlow = async ({ counts }: FlowAddition): Promise<void> => {
        if (isDown) throw new Error("down");
        written.push(counts);
      };
      const meter = openFlowMeter({ addFlow }, system);
      meter.add("a", "enqueued");
      await system.sleep(5_000);
      isDown = false;
      meter.add("a", "enqueued");
      await meter.end();
      expect(written).toEqual([[{ ...NONE, type: "a", enqueued: 2 }]]);
    });
  });

  it("writes what the store did not take a second later, without a further count", async () => {
    await onVirtualTime(async (system) => {
      const tries: (readonly [number, number | undefined])[] = [];
      const began = system.monotonic();
      const addFlow = async ({ counts }: FlowAddition): Promise<void> => {
        tries.push([Math.round(system.monotonic() - began), counts[0]?.enqueued]);
        if (tries.length < 3) throw new Error("down");
      };
      const meter = openFlowMeter({ addFlow }, system);
      meter.add("a", "enqueued");
      await system.sleep(10_000);
      expect(tries).toEqual([
        [0, 1],
        [1_000, 1],
        [2_000, 1],
      ]);
      await meter.end();
      expect(tries).toHaveLength(3);
    });
  });

  it("tries no more after its end, where the store does not take what is left", async () => {
    await onVirtualTime(async (system) => {
      let tries = 0;
      const addFlow = async (): Promise<void> => {
        tries += 1;
        throw new Error("down");
      };
      const meter = openFlowMeter({ addFlow }, system);
      meter.add("a", "enqueued");
      await meter.end();
      await system.sleep(10_000);
      expect(tries).toBe(1);
    });
  });

  it("writes what is left when it ends, and nothing more", async () => {
    await onVirtualTime(async (system) => {
      const written: FlowAddition["counts"][] = [];
      const meter = openFlowMeter({ addFlow: async ({ counts }) => void written.push(counts) }, system);
      meter.add("a", "released");
      await system.sleep(1);
      meter.add("a", "retried", 3, 4);
      await meter.end();
      await system.sleep(5_000);
      expect(written).toEqual([
        [{ ...NONE, type: "a", released: 1 }],
        [{ ...NONE, type: "a", retried: 1, runMs: 3, waitMs: 4 }],
      ]);
    });
  });
});
