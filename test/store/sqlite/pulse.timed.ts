// The heartbeat of the store thread keeps its time however much the thread has to write. Judged by the clock:
// `npm run prove -- timed`.
import { expect, it } from "vitest";
import { testPath } from "../../support/database-file.ts";
import { newJob } from "../../support/new-job.ts";
import { signUp } from "../../support/runs.ts";
import { threadedStore } from "../../support/store-processes.ts";

const EVERY_MS = 100;

it("a pulse beats in time while the thread always has something to write", async () => {
  const store = await threadedStore(testPath());
  const worker = await signUp(store, 30_000);
  let beats = 0;
  const pulse = store.pulse?.(
    { worker, leaseMs: 30_000, everyMs: EVERY_MS, stallMs: 60_000 },
    { answer: () => void (beats += 1), failure: () => undefined },
  );
  const until = performance.now() + 2_000;
  const busy = async (): Promise<void> => {
    while (performance.now() < until) await store.enqueue(Array.from({ length: 200 }, () => newJob()));
  };
  await Promise.all(Array.from({ length: 8 }, busy));
  pulse?.stop();
  // Twenty would be perfect; without catching up there were one or two.
  expect(beats).toBeGreaterThanOrEqual(8);
});
