// Jobs that were in the hands of workers that died.
import { claimBy, signUp } from "./runs.ts";
import { crashed } from "./verdicts.ts";
import type { Bench } from "./worker-bench.ts";

/** Jobs with so many crashes on their record. */
export async function suspects(bench: Bench, count: number, crashes: number, type = "thumbnail"): Promise<string[]> {
  const ids = await bench.addMany(count, type);
  for (let n = 1; n <= crashes; n++) {
    const worker = await signUp(bench.store);
    const { jobs } = await claimBy(bench.store, worker, { only: (lane) => lane.type === type });
    const verdict = crashed({ charge: { attempts: 0, crashes: 1 }, lane: n === 2 ? "last" : "suspect" });
    await bench.store.settle({ settlements: jobs.map(({ id, epoch, nonce }) => ({ id, epoch, nonce, verdict })) });
    await bench.store.leave(worker);
  }
  return ids;
}
