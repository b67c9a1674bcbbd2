// What a long-lived Redrive keeps of calls that are over and of workers that have stopped: nothing.
import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { createRedrive, defineJob } from "../../src/index.ts";
import { QueueWorker } from "../../src/worker/worker.ts";
import { grownBy } from "../support/live-objects.ts";

const quick = defineJob("quick", { run: (n: number) => n });
const CALLS = 200;

/** How many signals Node remembers to have been made of this one. */
function dependants(signal: AbortSignal): number {
  const symbol = Object.getOwnPropertySymbols(signal).find(({ description }) => description === "kDependantSignals");
  const known = symbol && (signal as unknown as Record<symbol, { readonly size: number } | undefined>)[symbol];
  return known?.size ?? 0;
}

describe("a Redrive", () => {
  it("leaves nothing on the signal of a run that is over", async () => {
    await using redrive = await createRedrive({ store: "memory:", jobs: [quick], log: "silent" });
    await redrive.worker().start();
    const { signal } = new AbortController();
    await Promise.all(Array.from({ length: CALLS }, (_, n) => redrive.run(quick, n, { signal })));
    expect([getEventListeners(signal, "abort").length, dependants(signal)]).toEqual([0, 0]);
    // Node keeps a note of every signal that was made of this one, as long as this one lives.
    AbortSignal.any([signal]);
    expect(dependants(signal)).toBe(1);
  });

  it("lets go of workers that have stopped, that have drained, and that were never started", async () => {
    await using redrive = await createRedrive({ store: "memory:", jobs: [quick], log: "silent" });
    const grown = await grownBy([QueueWorker], async () => {
      for (let n = 0; n < CALLS / 10; n++) {
        const worker = redrive.worker();
        await worker.start();
        await worker.stop();
        await redrive.worker().drain({ grace: 0 });
        redrive.worker();
      }
    });
    expect(grown[0]).toBeLessThan(5);
  });

  it("stops the workers that run when it is closed, and starts none after that", async () => {
    const redrive = await createRedrive({ store: "memory:", jobs: [quick], log: "silent" });
    const [running, waiting] = [redrive.worker(), redrive.worker()];
    await running.start();
    await expect.poll(() => running.isReady, { timeout: 30_000 }).toBe(true);
    await redrive.close();
    expect(running.isReady).toBe(false);
    await expect(waiting.start()).rejects.toMatchObject({ code: "closed" });
    await expect(waiting.drain()).rejects.toMatchObject({ code: "closed" });
  });
});
