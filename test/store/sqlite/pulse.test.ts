// The heartbeat of the store thread: it keeps its time however much the thread has to write, and pauses when the event
// loop of its owner shows no life.
import { describe, expect, it } from "vitest";
import { testPath } from "../../support/database-file.ts";
import { newJob } from "../../support/new-job.ts";
import { signUp } from "../../support/runs.ts";
import { threadedStore } from "../../support/store-processes.ts";

const EVERY_MS = 100;

describe("a pulse", () => {
  it("beats in time while the thread always has something to write", async () => {
    const store = await threadedStore(testPath());
    const worker = await signUp(store, 30_000);
    const beats: number[] = [];
    const pulse = store.pulse?.(
      { worker, leaseMs: 30_000, everyMs: EVERY_MS, stallMs: 60_000 },
      { answer: () => void beats.push(performance.now()), failure: () => undefined },
    );
    const until = performance.now() + 2_000;
    const busy = async (): Promise<void> => {
      while (performance.now() < until) await store.enqueue(Array.from({ length: 200 }, () => newJob()));
    };
    await Promise.all(Array.from({ length: 8 }, busy));
    pulse?.stop();
    // Twenty would be perfect; without catching up there were one or two.
    expect(beats.length).toBeGreaterThanOrEqual(8);
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
