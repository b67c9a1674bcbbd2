// What a worker costs when there is nothing to do, as a real process. Judged by the clock: `npm run prove -- timed`.
import { describe, expect, it } from "vitest";
import { createSite, type Message, type WorkerProcess } from "../support/worker-processes.ts";

/**
 * What a worker costs in the best of up to four windows of this length. On a loaded machine the same work takes more of
 * a processor's time, and a window may be spoilt; a worker that does too much does so in every one of them.
 */
async function cheapest(worker: WorkerProcess, ms: number): Promise<Required<Pick<Message, "share" | "heapGrowth">>> {
  const costs = (): Message[] => worker.messages.filter(({ share }) => share !== undefined);
  const best = { share: Number.POSITIVE_INFINITY, heapGrowth: Number.POSITIVE_INFINITY };
  for (let n = 1; n <= 4 && !(best.share < 0.01 && best.heapGrowth < 1_000_000); n++) {
    worker.order("cost", ms);
    await worker.hears(() => costs().length === n, ms + 15_000);
    const { share = best.share, heapGrowth = best.heapGrowth } = costs()[n - 1] as Message;
    best.share = Math.min(best.share, share);
    best.heapGrowth = Math.min(best.heapGrowth, heapGrowth);
  }
  return best;
}

describe("an idle worker", () => {
  it("uses less than one percent of a processor, and its memory stays flat", async () => {
    const site = await createSite();
    const worker = await site.start();
    // Others who come and go leave rows behind and write to the log; that must not cost either.
    for (let n = 0; n < 5; n++) {
      const guest = await site.start({ options: { lease: "1s" } });
      guest.child.kill("SIGKILL");
      await guest.ended;
    }
    for (let n = 0; n < 20; n++) await site.add("quick");
    await worker.tells("job.completed", 20);
    const { share, heapGrowth } = await cheapest(worker, 5_000);
    expect(share).toBeLessThan(0.01);
    expect(heapGrowth).toBeLessThan(1_000_000);
  }, 60_000);
});
