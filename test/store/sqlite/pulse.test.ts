// The heartbeat of the store thread: it beats however much the thread has to write (in time, says pulse.timed.ts), and
// pauses when the event loop of its owner shows no life.
import { describe, expect, it } from "vitest";
import { openShared } from "../../../src/store/liveness-counter.ts";
import { startPulse } from "../../../src/store/sqlite/pulse.ts";
import { realSystem } from "../../../src/system/real.ts";
import { testPath } from "../../support/database-file.ts";
import { signUp } from "../../support/runs.ts";
import { threadedStore } from "../../support/store-processes.ts";

const EVERY_MS = 100;

describe("a pulse", () => {
  it("beats in time although the thread always has something to write and never comes to its timers", () => {
    let now = 0;
    const system = { ...realSystem, monotonic: () => now, after: () => () => undefined };
    const beats: number[] = [];
    const pulse = startPulse(
      {
        number: 1,
        request: { worker: "w", leaseMs: 30_000, everyMs: EVERY_MS, stallMs: 60_000 },
        shared: openShared().shared,
      },
      system,
      ({ verb }) => ({ number: 1, value: verb }) as never,
      () => void beats.push(now),
    );
    for (; now <= 1_000; now += 40) pulse.catchUp();
    pulse.stop();
    expect(beats).toEqual([120, 240, 360, 480, 600, 720, 840, 960]);
  });

  it("pauses when its owner shows no life for longer than the stall limit, and goes on when it does", async () => {
    const store = await threadedStore(testPath());
    const worker = await signUp(store, 30_000);
    let beats = 0;
    let heard = (): void => undefined;
    const pulse = store.pulse?.(
      { worker, leaseMs: 30_000, everyMs: 20, stallMs: 100 },
      {
        answer: () => {
          beats += 1;
          heard();
        },
        failure: () => undefined,
      },
    );
    const quiet = async (ms: number): Promise<number> => {
      const before = beats;
      await new Promise((resolve) => setTimeout(resolve, ms));
      return beats - before;
    };
    await quiet(400);
    expect(await quiet(200)).toBe(0);
    const again = new Promise<void>((resolve) => {
      heard = resolve;
    });
    pulse?.show(1);
    await again;
    pulse?.stop();
  });
});
